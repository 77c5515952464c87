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
  [ -z "$resume" ] || echo "$resume"
}
trap finish EXIT

# If the pipeline is cancelled, Terraform stops and unlocks the state. After a second signal, it would do neither.
stop() {
  trap '' INT TERM
  kill $terraform $follower 2>/dev/null || true
  wait
  exit 143
}
trap stop INT TERM

# Runs Terraform where a signal interrupts the shell's wait, and in a session that signals to the shell's don't reach.
tf() {
  $(command -v setsid) "${TRAINYARD_TERRAFORM:-terraform}" "$@" &
  terraform=$!
  code=0
  wait "$terraform" || code=$?
  terraform=
  return "$code"
}

# More variables, such as credentials for the backend: one NAME=value per line.
while IFS= read -r line; do
  case $line in
  [A-Za-z_]*=*)
    if [ -n "${GITHUB_ACTIONS:-}" ] && [ -n "${line#*=}" ]; then printf '::add-mask::%s\n' "${line#*=}"; fi
    export "${line?}"
    ;;
  esac
done <<END
${TRAINYARD_ENV:-}
END
unset TRAINYARD_ENV

# Until the script ends, GitHub only shows lines that look like its commands: members can write them to their logs.
if [ -n "${GITHUB_ACTIONS:-}" ]; then
  token=$(od -An -N16 -tx1 /dev/urandom | tr -d ' \n')
  resume="::$token::"
  echo "::stop-commands::$token"
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
  value "$TRAINYARD_KNOWN_HOSTS" >>~/.ssh/known_hosts
fi
