#!/usr/bin/env bash
# Builds what the engine systemd brings to hosts, for each of their architectures, under the names by which the provider finds
# it beside itself: host-programs.sh VERSION FOLDER. The agent for the other architecture takes its C compiler.
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
  # NVIDIA's symbols are found when they are first used: the library is loaded before that, and not at the start.
  GOARCH=$arch internal/tools/cgo.sh \
    "${build[@]}" -ldflags "$flags -extldflags=-Wl,-z,lazy" -o "$folder/trainyard-agent_linux_$arch" ./internal/program/trainyard-agent
done
unset GOOS
go run ./internal/agent/libc/check 2.31 "$folder"/trainyard*_linux_*
