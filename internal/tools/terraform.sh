#!/usr/bin/env bash
# Prints the path of the Terraform-compatible binary that TF selects. Messages go to standard error.
#
#   TF unset      terraform from PATH, else tofu from PATH, else OpenTofu built from source
#   TF=tofu       tofu from PATH, else OpenTofu built from source
#   TF=NAME|PATH  that binary, or an error
#
# OpenTofu is built with only the Go toolchain, once, into the user's cache folder.
set -euo pipefail

readonly opentofu_version=v1.12.6

say() { printf '%s\n' "$*" >&2; }

cached_tofu() {
  local dir="${XDG_CACHE_HOME:-$HOME/.cache}/trainyard/bin/opentofu-$opentofu_version"
  if [[ ! -x $dir/tofu ]]; then
    say "No $1 on PATH: building OpenTofu $opentofu_version into $dir (once; some minutes)."
    build_tofu "$dir"
    say "OpenTofu $opentofu_version is built."
  fi
  printf '%s\n' "$dir/tofu"
}

# `go install module@version` refuses modules whose go.mod replaces a dependency, as OpenTofu's does, so `go install`
# runs inside the downloaded (checksum-verified) module. Without dev=no the binary would call itself a prerelease, which
# no `required_version = ">= …"` accepts. The rename makes the binary appear completely or not at all.
build_tofu() {
  local dir=$1 source
  export GOWORK=off GOFLAGS=
  source=$(cd / && go mod download -json "github.com/opentofu/opentofu@$opentofu_version" |
    sed -n 's/^[[:space:]]*"Dir": "\(.*\)",\{0,1\}$/\1/p')
  if [[ ! -d $source ]]; then
    say "Cannot download OpenTofu $opentofu_version: check the network and GOPROXY, or put terraform or tofu on PATH."
    exit 1
  fi
  mkdir -p "$dir"
  staging=$(mktemp -d "$dir/build.XXXXXX")
  trap 'rm -rf "$staging"' EXIT
  if ! (cd "$source" && CGO_ENABLED=0 GOBIN=$staging go install -trimpath \
    -ldflags '-s -w -X github.com/opentofu/opentofu/version.dev=no' ./cmd/tofu) 2> >(grep -v '^go: downloading ' >&2); then
    say "Cannot build OpenTofu $opentofu_version: see above, or put terraform or tofu on PATH."
    exit 1
  fi
  mv "$staging/tofu" "$dir/tofu"
}

case ${TF:-} in
'') command -v terraform || command -v tofu || cached_tofu 'terraform or tofu' ;;
tofu) command -v tofu || cached_tofu tofu ;;
*)
  path=$(command -v "$TF") || {
    say "TF=$TF: no such command. Use terraform, tofu (built from source where it is missing) or the path of either."
    exit 1
  }
  realpath -s "$path"
  ;;
esac
