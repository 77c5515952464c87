# Without it, the first finding would be lost.
if [ -z "${SLACK_WEBHOOK_URL:-}" ]; then
  echo 'SLACK_WEBHOOK_URL is not set: pass the URL of an incoming webhook, as a secret' >&2
  exit 1
fi

status=0
{
  tf init -input=false && tf plan -input=false -lock-timeout=10m -detailed-exitcode -out="$work/plan"
} || status=$?

# The message says what changes, without values, since those may be secret.
case $status in
0) exit 0 ;;
2)
  found='differs from its configuration'
  changes=$(tf show -no-color "$work/plan" | awk '
    /^Plan:/ { summary = $0 "\n" }
    /^  # [^(]/ && !/ will be read during apply$/ && ++count <= 20 { resources = resources $0 "\n" }
    /^Changes to Outputs:/ { ending = 1 }
    ending && /^  [-+~] / { outputs = outputs " " $2 }
    END {
      printf "%s%s", summary, resources
      if (count > 20) print "  and " (count - 20) " more"
      if (outputs) print "Outputs:" outputs
    }') || changes=
  [ -z "$changes" ] || found="$found:
$changes"
  ;;
*) found="could not be planned, or is not well: see the log" ;;
esac
text=$(printf '%s %s\n%s' "${TRAINYARD_NAME:-Terraform}" "$found" "${TRAINYARD_JOB_URL:-}" |
  sed -e 's/&/\&amp;/g; s/</\&lt;/g; s/>/\&gt;/g; s/\\/\\\\/g; s/"/\\"/g' | tr '\t\r' '  ' |
  awk '{ printf "%s%s", sep, $0; sep = "\\n" }')
printf '{"text":"%s"}' "$text" >"$work/message"

# The URL is a secret, so it is not an argument, which all users of the machine could see.
printf 'url = "%s"\n' "$SLACK_WEBHOOK_URL" |
  curl --config - --silent --show-error --fail --max-time 30 --retry 3 --output "$work/answer" \
    --header 'Content-Type: application/json' --data "@$work/message"
exit "$status"
