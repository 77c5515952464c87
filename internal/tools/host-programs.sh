#!/usr/bin/env bash
# Builds the programs that the engine systemd installs on hosts, for each architecture, under the names that the
# provider looks for in its own folder: host-programs.sh VERSION FOLDER. The agent for the other architecture needs its
# C compiler.
set -euo pipefail

version=$1
mkdir -p "$2"
folder=$(cd "$2" && pwd)
cd "$(dirname "$0")/../.."

export GOOS=linux
for arch in amd64 arm64; do
  build=(build -buildvcs=false -trimpath)
  flags="-s -w -X main.version=$version"
  GOARCH=$arch CGO_ENABLED=0 go "${build[@]}" -ldflags "$flags" -o "$folder/trainyard_linux_$arch" ./internal/program/trainyard-agent
  # Lazy binding of NVIDIA's symbols: the library is not loaded at startup, but before their first use.
  GOARCH=$arch internal/tools/cgo.sh \
    "${build[@]}" -ldflags "$flags -extldflags=-Wl,-z,lazy" -o "$folder/trainyard-agent_linux_$arch" ./internal/program/trainyard-agent
done
unset GOOS
go run ./internal/agent/libc/check 2.31 "$folder"/trainyard*_linux_*
