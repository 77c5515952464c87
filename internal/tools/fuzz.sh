#!/usr/bin/env bash
# Runs each fuzz test for a time, one after the other, as go test takes one a call: fuzz.sh 30s [PACKAGE]…
# What fails is written to testdata/fuzz beside the test, which go test then runs as one more seed.
set -euo pipefail

cd "$(dirname "$0")/../.."
time=$1 packages=("${@:2}")
if ((!${#packages[@]})); then
  mapfile -t packages < <(grep -rl --include='*_test.go' '^func Fuzz' . | xargs dirname | sort -u)
fi

# targets: lines "PACKAGE TARGET". go test lists the targets of a package, and then the package.
targets=$(go test -list '^Fuzz' "${packages[@]}" |
  awk '/^Fuzz/ { found[n++] = $1 } /^ok/ { for (i = 0; i < n; i++) print $2, found[i]; n = 0 }')

output=$(mktemp)
trap 'rm -f "$output"' EXIT

# fuzz PACKAGE TARGET. At the end of the time go test may fail without a failing input (go.dev/issue/75804, mended in Go 1.27): that is no finding.
fuzz() {
  go test -run '^$' -fuzz "^$2\$" -fuzztime "$time" -fuzzminimizetime 1s -timeout 0 "$1" </dev/null 2>&1 | tee "$output" ||
    { grep -q '^ *context deadline exceeded$' "$output" && ! grep -q 'Failing input written' "$output"; }
}

count=0 failed=()
while read -r package target; do
  echo "$target of $package"
  fuzz "$package" "$target" || failed+=("$target of $package")
  count=$((count + 1))
done <<<"$targets"

echo "Ran $count fuzz tests in $SECONDS s."
if ((${#failed[@]})); then
  printf 'Failed: %s\n' "${failed[@]}" >&2
  exit 1
fi
