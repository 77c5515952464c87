#!/usr/bin/env bash
# Applies this example from the source tree, shows the result, and destroys it again.
#
#   run.sh          a job: the apply waits until the model is trained
#   run.sh service  a service: it keeps training after Terraform has exited, until it is destroyed
#   run.sh swarm    the job, as containers on several hosts
#   run.sh systemd  the job, as systemd units on several hosts, over SSH only
#
# TF        terraform, tofu or the path of either, as for the make targets (default: the first one found)
# PROVIDER  the provider's binary (default: built from this tree)
# HOSTS     for swarm and systemd: the hosts, as in "ssh://ops@gpu1 ssh://ops@gpu2", or with names, as in
#           "gpu1=ssh://ops@10.0.0.1 gpu2=ssh://ops@10.0.0.2"; the first is manager, unless they already form a Swarm
#           (default: three Docker Engines, or three machines with systemd, started on this machine, as root)
# KEY       private key file for HOSTS (default: the keys that ssh and its agent would use)
# KNOWN_HOSTS  file with the host keys of HOSTS (default: ~/.ssh/known_hosts)
#
# All files, including the provider's state directory, are in a temporary folder that is kept only after a failure.
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
root=$(cd "$here/../.." && pwd)
engine=process completion=chief
case ${1:-job} in
job) ;;
service) completion=never ;;
swarm | systemd) engine=$1 ;;
*)
  sed -n '2,/^set /{s/^# \{0,1\}//p;}' "${BASH_SOURCE[0]}" >&2
  exit 2
  ;;
esac
if [[ ! -d /proc/self ]]; then
  echo "This script needs Linux. Elsewhere, run terraform in a copy of its folder, with engine = \"swarm\" or \"systemd\" and hosts of yours." >&2
  exit 1
fi

TF=$("$root/internal/tools/terraform.sh")
if [[ -n ${PROVIDER:-} ]]; then
  PROVIDER=$(realpath "$PROVIDER")
fi

work=$(mktemp -d "${TMPDIR:-/tmp}/trainyard-quickstart.XXXXXX")
work=$(cd "$work" && pwd -P)
state=$work/state
log=$work/log
standing= # set from the first apply to the end of the destroy
bed=      # process of the hosts started here, while they run
key=${KEY:+$(realpath "$KEY")}
known_hosts=${KNOWN_HOSTS:+$(realpath "$KNOWN_HOSTS")}

# ---- printing

bold='' red='' plain=''
if [[ -t 1 && -z ${NO_COLOR:-} ]]; then
  bold=$'\e[1m' red=$'\e[31m' plain=$'\e[0m'
fi

# step NAME DESCRIPTION COMMAND…: runs the command with output to the log, and prints one line with the time it took.
step() {
  local name=$1 description=$2 begin=${EPOCHREALTIME//[!0-9]/} elapsed
  shift 2
  printf '  %s%-8s%s %-62s' "$bold" "$name" "$plain" "$description"
  printf '\n=== %s: %s\n' "$name" "$*" >>"$log"
  if ! "$@" >>"$log" 2>&1; then
    printf ' %sfailed%s\n' "$red" "$plain"
    fail "$name"
  fi
  elapsed=$(((${EPOCHREALTIME//[!0-9]/} - begin) / 10000))
  printf ' %4d.%02d s\n' $((elapsed / 100)) $((elapsed % 100))
}

# fail STEP: shows the end of the log; the exit trap cleans up.
fail() {
  printf '\nThe step "%s" failed. The end of its log:\n\n' "$1" >&2
  tac "$log" | sed '/^=== /q' | tac | tail -n 60 | sed 's/^/    /' >&2
  exit 1
}

# ---- Terraform

tf() {
  env -u TF_DATA_DIR -u TF_WORKSPACE -u TF_CLI_ARGS -u TF_REATTACH_PROVIDERS \
    TF_CLI_CONFIG_FILE="$work/cli.tfrc" TF_IN_AUTOMATION=1 TF_INPUT=0 CHECKPOINT_DISABLE=1 \
    TRAINYARD_STATE_DIR="$state" "$TF" -chdir="$work/config" "$@"
}

# show EXPRESSION: prints an expression that is text or lines. It reads only the last state, no live system.
show() {
  local shown
  printf '\n=== show: %s\n' "$1" >>"$log"
  shown=$(tr '\n' ' ' <<<"$1" | tf console 2>>"$log") || fail show
  sed -e '/^<<-\{0,1\}EOT$/d' -e '/^EOT$/d' -e 's/^"\(.*\)"$/\1/' -e 's/^/  /' <<<"$shown"
}

build() {
  (cd "$root" && CGO_ENABLED=0 go build -o "$work/trainer" ./examples/quickstart/trainer) || return
  if [[ -n ${PROVIDER:-} ]]; then
    cp "$PROVIDER" "$work/provider"
  else
    (cd "$root" && CGO_ENABLED=0 go build -o "$work/provider" .)
  fi
}

# The provider is installed into a filesystem mirror with a version above all released ones, for Terraform and OpenTofu.
init() {
  local host package version=999.0.0
  for host in registry.terraform.io registry.opentofu.org; do
    package=$work/mirror/$host/trainyard/trainyard/$version/$(go env GOOS)_$(go env GOARCH)
    mkdir -p "$package" || return
    cp "$work/provider" "$package/terraform-provider-trainyard_v$version" || return
  done
  mkdir "$work/config" && cp "$here"/{*.tf,Dockerfile,.dockerignore} "$work/config/" && cp "$work/trainer" "$work/config/digits-trainer" || return
  printf 'provider_installation {\n  filesystem_mirror {\n    path = "%s"\n  }\n}\n' "$work/mirror" >"$work/cli.tfrc"
  printf 'engine     = "%s"\ncompletion = "%s"\n' "$engine" "$completion" >"$work/config/terraform.tfvars"
  if [[ $engine != process ]]; then
    describe_hosts >>"$work/config/terraform.tfvars"
  fi
  tf init -no-color
}

# describe_hosts: the values of the variables hosts and ssh. After its address, a host may have another one for the
# other hosts: gpu1=ssh://ops@gpu1=10.0.0.1.
describe_hosts() {
  local host name address inside role='role = "manager"'
  echo 'hosts = {'
  for host in $HOSTS; do
    [[ $host == *=* ]] || host=$(name_of "$host")=$host
    IFS== read -r name address inside <<<"$host"
    printf '  "%s" = { address = "%s", %s%s }\n' "$name" "$address" "${inside:+advertise_address = \"$inside\", }" "$role"
    role=
  done
  echo '}'
  if [[ -n $key$known_hosts ]]; then
    printf 'ssh = { %s%s }\n' "${key:+identity_files = [\"$key\"]}" "${known_hosts:+${key:+, }known_hosts_files = [\"$known_hosts\"]}"
  fi
}

# name_of ADDRESS: a host's name, made from its address: the host name, or an IP address with hyphens.
name_of() {
  local host=${1#*://}
  host=${host#*@} host=${host%%[:/]*}
  if [[ $host =~ ^[0-9.]+$ ]]; then
    echo "host-${host//./-}"
  else
    tr '[:upper:]' '[:lower:]' <<<"${host%%.*}"
  fi
}

# make_hosts: starts a test bed, and sets HOSTS to its nodes.
make_hosts() {
  local of=(-managers 0)
  [[ $engine == swarm ]] || of=(-hosts 3)
  (cd "$root" && go build -o "$work/testbed" ./internal/acctest/testbed/keep) || return
  "$work/testbed" "${of[@]}" >"$work/hosts" 2>&1 &
  bed=$!
  until grep -q Ctrl-C "$work/hosts"; do
    if ! kill -0 "$bed" 2>/dev/null; then
      cat "$work/hosts"
      bed=
      return 1
    fi
    sleep 0.1
  done
  if [[ $engine == swarm ]]; then
    HOSTS=$(awk '/^node/ { name = $1 } /DOCKER_HOST=/ { sub(/.*DOCKER_HOST=/, ""); print name "=" $0 }' "$work/hosts")
    return
  fi
  # host1  10.200.0.1
  #   ssh -p 40001 -i KEY -o UserKnownHostsFile=FILE root@127.0.0.1
  HOSTS=$(awk '/^host/ { name = $1; inside = $2 } $1 == "ssh" { print name "=ssh://ops@127.0.0.1:" $3 "=" inside ":22" }' "$work/hosts")
  key=$(awk '$1 == "ssh" { print $5; exit }' "$work/hosts")
  known_hosts=$(sed -n 's/.*UserKnownHostsFile=\([^ ]*\) .*/\1/p' "$work/hosts" | head -n 1)
}

end_hosts() {
  kill "$bed" && wait "$bed" && bed=
}

apply() {
  standing=yes
  tf apply -auto-approve -no-color "$@"
}

plan() {
  local code=0
  tf plan -detailed-exitcode -no-color || code=$?
  if ((code == 2)); then
    echo "The plan shows changes, though nothing was changed."
  fi
  return "$code"
}

destroy() {
  tf destroy -auto-approve -no-color && standing=
}

# leftovers: the processes of this run, recognised by their binary, arguments or environment, and the files of the
# provider's state.
leftovers() {
  local proc pid
  for proc in /proc/[0-9]*; do
    pid=${proc#/proc/}
    if [[ $(readlink "$proc/exe" 2>/dev/null || true) == "$work"/* ]] ||
      grep -qsF "$work" "$proc/cmdline" "$proc/environ"; then
      printf 'process %s: %s\n' "$pid" "$(tr '\0' ' ' 2>/dev/null <"$proc/cmdline" || true)"
    fi
  done
  if [[ -d $state ]]; then
    find "$state" ! -type d -printf 'file %p\n'
  fi
}

nothing_left() {
  local left
  left=$(leftovers)
  if [[ -n $left ]]; then
    printf 'Still there after the destroy:\n%s\n' "$left"
    return 1
  fi
}

# clean_up: runs on every exit. After a failure it destroys what exists, and kills what then still runs.
clean_up() {
  local code=$? left
  trap - EXIT
  trap '' INT TERM
  if [[ -n $standing ]]; then
    echo "Destroying what was created." >&2
    destroy >>"$log" 2>&1 || echo "The destroy failed, too." >&2
  fi
  if [[ -n $bed ]]; then
    end_hosts >>"$log" 2>&1 || echo "The hosts that were made here did not end well." >&2
  fi
  left=$(leftovers | sed -n 's/^process \([0-9]*\):.*/\1/p')
  if [[ -n $left ]]; then
    echo "Ending by force what is still running:" $left >&2
    kill -KILL $left 2>/dev/null || true
  fi
  if ((code == 0)); then
    rm -rf "$work"
  else
    printf 'Kept for a closer look: %s (log: %s)\n' "$work" "$log" >&2
  fi
  exit "$code"
}
trap clean_up EXIT
trap 'echo; exit 130' INT
trap 'echo; exit 143' TERM

# ---- the run

printf '\n%sTrainyard quickstart%s: 2 parameter servers and 4 workers learn to read handwritten digits\n\n' "$bold" "$plain"
step build "the trainer and the provider" build
made="three Docker Engines"
[[ $engine == swarm ]] || made="three machines with systemd"
if [[ $engine != process && -z ${HOSTS:-} ]]; then
  step hosts "$made on this machine" make_hosts
fi
step init "$(CHECKPOINT_DISABLE=1 "$TF" version 2>/dev/null | sed -n 1p), with the provider that was built" init
if [[ $completion == chief ]]; then
  step apply "cluster lab, group digits; waits until the model is trained" apply
else
  step apply "cluster lab, group digits; waits until all members run" apply
  step read "the data sources again, now that Terraform has ended once" apply -refresh-only
fi

printf '\n'
show 'join("\n", [
  "phase      ${data.trainyard_group.digits.phase}",
  try(format("accuracy   %.1f %% of %d held-out images", 100 * local.evaluation.accuracy, local.evaluation.examples),
    "last log   ${reverse(data.trainyard_logs.chief.lines)[0]}", "accuracy   none yet")
])'
printf '\n%s' "$bold"
show 'format("%-16s %-10s %4s  %8s  %-21s  %5s  %9s", "MEMBER", "STATE", "EXIT", "RESTARTS", "ADDRESS", "CPUS", "MEMORY")'
printf '%s' "$plain"
show 'join("\n", [for name, m in data.trainyard_group.digits.members :
  format("%-16s %-10s %4s  %8d  %-21s  %5s  %9s", name, m.state,
    try(format("%d", m.exit_code), "-"), m.restarts, m.address,
    try(format("%.2f", data.trainyard_utilisation.now.members[name].cpus_used), "-"),
    try(format("%.0f MiB", data.trainyard_utilisation.now.members[name].memory_used_mib), "-"))
])'
printf '\n%s' "$bold"
show 'format("%-16s %-15s  %-22s  %s", "HOST", "CPUS USED", "MEMORY USED", "SAMPLED AT")'
printf '%s' "$plain"
show 'join("\n", [for name, h in data.trainyard_utilisation.now.hosts :
  format("%-16s %-15s  %-22s  %s", name,
    try(format("%.2f of %g", h.cpus_used, h.cpus), "-"),
    try(format("%.0f of %.0f MiB", h.memory_used_mib, h.memory_mib), "-"),
    try(format("%s", h.sampled_at), "-"))
])'
printf '\n'

step plan "a second plan finds nothing to do" plan
step destroy "group and cluster" destroy
if [[ -n $bed ]]; then
  step hosts "${made#three } end" end_hosts
fi
step check "no process and no state is left" nothing_left
printf '\n'
