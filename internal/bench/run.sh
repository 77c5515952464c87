#!/usr/bin/env bash
# Prints the benchmark tables: the cost of plans, applies, the provider's start, supervision and autoscaling on this
# machine, and the results of scaling policies on jobs and loads, with pictures. The parts swarm and hosts start
# machines of their own, as root; hosts also installs Ansible from PyPI into the user's cache folder, and continues
# without it if that fails.
# The parts for reference systems run only if named, take long, and use the real software, which is installed likewise:
# ps-worker and multiworker train with TensorFlow, on this machine, on hosts and on a Swarm, spark uses Spark and
# XGBoost, experiments trains agents with NumPy on a card of a fake driver, and kafka runs a day of Kafka's brokers for
# each rule.
#
#   run.sh [-runs N] [-only plan,apply,start,supervise,agent,scaling,reaction,sweeps,swarm,hosts,policies] [-trace load.csv or folder] [-curves folder]
#   run.sh -runs 5 -only ps-worker,multiworker,spark,experiments,kafka [-training 20s] [-day 30m]
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

# Visible to the hosts of the part hosts, unlike /tmp.
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
# From here on the program removes the folder, even if it is interrupted.
exec "$work/bench" -tf "$TF" -provider "$PROVIDER" -bare "$work/bare" -agent "$work/agent" -member "$work/member" -trainer "$work/trainer" -work "$work" "$@"
