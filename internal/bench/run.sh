#!/usr/bin/env bash
# Prints the benchmark tables: what plans, applies, the provider's start, supervision and autoscaling cost on this
# machine, and what scaling policies make of jobs and loads, with pictures of that. The parts swarm and hosts start
# machines of their own, as root; hosts also installs Ansible from PyPI, into the user's cache folder, and does without
# where that fails.
# Parts of reference systems, which are run by their names alone, take the real software, which is installed likewise, and long:
# ps-worker and multiworker train with TensorFlow, on this machine, on hosts and on a Swarm, spark with Spark and XGBoost,
# and kafka has brokers of Kafka carry a day by each rule.
#
#   run.sh [-runs N] [-only plan,apply,start,supervise,agent,scaling,reaction,sweeps,swarm,hosts,policies] [-trace load.csv or folder] [-curves folder]
#   run.sh -runs 5 -only ps-worker,multiworker,spark,kafka [-training 20s] [-day 30m]
#
# Paths are relative to the root of the repository.
#
# TF        terraform, tofu or the path of either, as for the make targets (default: the first that is found)
# PROVIDER  the provider's binary (default: built from this tree, stripped as for a release)
set -euo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
TF=$("$root/internal/tools/terraform.sh")
if [[ -n ${PROVIDER:-} ]]; then
  PROVIDER=$(realpath "$PROVIDER")
fi

# The hosts of the part hosts see it, but no /tmp.
work=$(mktemp -d "${TMPDIR:-/var/tmp}/trainyard-bench.XXXXXX")
work=$(cd "$work" && pwd -P)
trap 'rm -rf "$work"' EXIT
cd "$root"
go build -o "$work/bench" ./internal/bench
CGO_ENABLED=0 go build -o "$work/member" ./internal/engine/enginetest/member
CGO_ENABLED=0 go build -o "$work/trainer" ./examples/quickstart/trainer
CGO_ENABLED=0 go build -trimpath -ldflags '-s -w' -o "$work/bare" ./internal/bench/bare
CGO_ENABLED=1 go build -trimpath -ldflags '-s -w -extldflags=-Wl,-z,lazy' -o "$work/agent" ./internal/program/trainyard-agent
if [[ -z ${PROVIDER:-} ]]; then
  PROVIDER=$work/provider
  CGO_ENABLED=0 go build -trimpath -ldflags '-s -w' -o "$PROVIDER" .
fi
# From here on the program answers for the folder, also when it is interrupted.
exec "$work/bench" -tf "$TF" -provider "$PROVIDER" -bare "$work/bare" -agent "$work/agent" -member "$work/member" -trainer "$work/trainer" -work "$work" "$@"
