#!/usr/bin/env bash
# Builds what the engine systemd brings to hosts, for each of their architectures, under the names by which the provider finds
# it beside itself: host-programs.sh VERSION FOLDER. The agents are linked against this machine's C library, and that for
# the other architecture takes its C compiler.
set -euo pipefail

version=$1
mkdir -p "$2"
folder=$(cd "$2" && pwd)
cd "$(dirname "$0")/../.."

export GOOS=linux
for arch in amd64 arm64; do
  compiler=gcc
  if [[ $arch != "$(go env GOHOSTARCH)" ]]; then
    compiler=$([[ $arch == arm64 ]] && echo aarch64-linux-gnu-gcc || echo x86_64-linux-gnu-gcc)
  fi
  build=(go build -buildvcs=false -trimpath)
  flags="-s -w -X main.version=$version"
  GOARCH=$arch CGO_ENABLED=0 "${build[@]}" -ldflags "$flags" -o "$folder/trainyard_linux_$arch" ./internal/program/trainyard-agent
  # NVIDIA's symbols are found when they are first used: the library is loaded before that, and not at the start.
  GOARCH=$arch CGO_ENABLED=1 CC=$compiler CGO_CFLAGS="-g -O2 -Wno-deprecated-declarations" \
    "${build[@]}" -ldflags "$flags -extldflags=-Wl,-z,lazy" -o "$folder/trainyard-agent_linux_$arch" ./internal/program/trainyard-agent
done
