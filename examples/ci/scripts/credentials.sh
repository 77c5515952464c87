set -eu
umask 077
work=$(mktemp -d)
agent=
terraform=
follower=
resume=
finish() {
  rm -rf "$work"
  [ -z "$agent" ] || kill "$agent" 2>/dev/null || true
  [ -z "$resume" ] || echo "::$resume::"
}
trap finish EXIT

# If the pipeline is cancelled, Terraform stops and unlocks the state. A second signal would prevent that.
stop() {
  trap '' INT TERM
  kill $terraform $follower 2>/dev/null || true
  wait
  exit 143
}
trap stop INT TERM

# Terraform runs in the background, as a shell acts on signals only while it waits, and in its own session, as
# GitLab's shell executor signals the whole process group.
tf() {
  $(command -v setsid) "${TRAINYARD_TERRAFORM:-terraform}" "$@" &
  terraform=$!
  code=0
  wait "$terraform" || code=$?
  terraform=
  return "$code"
}

# More variables, such as credentials for the backend: one NAME=value per line.
number=0
while IFS= read -r line; do
  line=${line%"$(printf '\r')"}
  number=$((number + 1))
  case $line in
  '' | '#'*) continue ;;
  *=*) name=${line%%=*} ;;
  *) name= ;;
  esac
  case $name in
  '' | [0-9]* | *[!A-Za-z0-9_]*)
    echo "TRAINYARD_ENV: line $number must be NAME=value; NAME has letters, digits and _, no digit first" >&2
    exit 1
    ;;
  esac
  # A mask for a short value, such as 1 or true, would make the log unreadable.
  setting=${line#*=}
  if [ -n "${GITHUB_ACTIONS:-}" ] && [ "${#setting}" -ge 8 ]; then
    printf '::add-mask::%s\n' "$setting" | sed 's/%/%25/g'
  fi
  export "${line?}"
done <<END
${TRAINYARD_ENV:-}
END
unset TRAINYARD_ENV

# Until the script ends, GitHub runs no commands: members can write them to their logs.
if [ -n "${GITHUB_ACTIONS:-}" ]; then
  resume=$(od -An -N16 -tx1 /dev/urandom | tr -d ' \n')
  echo "::stop-commands::$resume"
fi

# On GitLab, a variable of type "File" is the path of a file with the value.
value() {
  if [ -f "$1" ]; then set -- "$(cat "$1")"; fi
  printf '%s\n' "$1"
}

# The SSH key stays in the memory of an agent, which ends with the script, and host keys are verified.
if [ -n "${TRAINYARD_SSH_KEY:-}" ]; then
  ssh-agent -s >"$work/agent"
  . "$work/agent" >/dev/null
  agent=$SSH_AGENT_PID
  value "$TRAINYARD_SSH_KEY" | ssh-add -q -
fi
unset TRAINYARD_SSH_KEY
if [ -n "${TRAINYARD_KNOWN_HOSTS:-}" ]; then
  mkdir -p ~/.ssh
  value "$TRAINYARD_KNOWN_HOSTS" | while IFS= read -r line; do
    grep -sqxF -e "$line" ~/.ssh/known_hosts || printf '%s\n' "$line" >>~/.ssh/known_hosts
  done
fi
