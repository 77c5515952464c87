#!/usr/bin/env bash
# Runs each fuzz test for a while, one at a time, since go test accepts only one: fuzz.sh 30s [FOLDER]…
# Failing inputs are written to testdata/fuzz beside the test, where go test uses them as seeds.
set -euo pipefail

cd "$(dirname "$0")/../.."
time=$1 folders=("${@:2}")
if ((!${#folders[@]})); then
  mapfile -t folders < <(grep -rl --include='*_test.go' '^func Fuzz' . | xargs dirname | sort -u)
fi
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cache=$(go env GOCACHE)/fuzz

# fuzz CORPUS TARGET: runs the package's test binary. When time is up, it may fail without a failing input
# (go.dev/issue/75804, fixed in Go 1.27), which is not a finding.
fuzz() {
  "$work/test" -test.run '^$' -test.fuzz "^$2\$" -test.fuzztime "$time" -test.fuzzminimizetime 1s -test.fuzzcachedir "$1" </dev/null 2>&1 | tee "$work/output" ||
    { grep -q '^ *context deadline exceeded$' "$work/output" && ! grep -q 'Failing input written' "$work/output"; }
}

count=0 failed=()
for folder in "${folders[@]}"; do
  go test -c -fuzz . -o "$work/test" "$folder"
  package=$(go list "$folder")
  pushd "$folder" >/dev/null
  targets=$("$work/test" -test.list '^Fuzz' | grep '^Fuzz')
  for target in $targets; do
    echo "$target of $folder"
    fuzz "$cache/$package" "$target" || failed+=("$target of $folder")
    count=$((count + 1))
  done
  popd >/dev/null
done

echo "Ran $count fuzz tests in $SECONDS s."
if ((${#failed[@]})); then
  printf 'Failed: %s\n' "${failed[@]}" >&2
  exit 1
fi
