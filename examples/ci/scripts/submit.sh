tf init -input=false
# Plan and apply wait for the lock while others apply.
tf plan -input=false -lock-timeout=10m -out="$work/plan"
tf show -json "$work/plan" >"$work/plan.json"

# The provider's program follows the log of this apply's run to its end, and exits with its exit code.
providers=${TF_DATA_DIR:-.terraform}/providers
program=$(find -L "$providers" -type f -name 'terraform-provider-trainyard*' | sort -V | tail -n 1)
set -- logs --plan "$work/plan.json" ${TRAINYARD_GROUP:+"$TRAINYARD_GROUP"}
set -- "$@" ${TRAINYARD_JUMP_HOST:+--jump-host "$TRAINYARD_JUMP_HOST"}
"$program" "$@"
"$program" "$@" --follow --applied "$work/applied" &
follower=$!

applied=0
tf apply -input=false -lock-timeout=10m "$work/plan" || applied=$?
# After a successful apply, the follower has to find the run. After a failed one, it may never start; if it
# has already failed, its exit code is still used.
if [ "$applied" = 0 ]; then
  : >"$work/applied"
else
  kill "$follower" 2>/dev/null || true
fi
followed=0
wait "$follower" || followed=$?
[ "$followed" != 0 ] || followed=$applied
exit "$followed"
