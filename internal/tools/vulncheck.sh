#!/usr/bin/env bash
# Reports the known vulnerabilities in everything that is linked, even if never called, and fails for those that are
# called, unless they are accepted below. Queries vuln.go.dev, or the database in GOVULNDB; fails if it can't.
set -euo pipefail

# In Docker's daemon, which is in the same module as the client. No version of that module has a fix.
readonly accepted=(GO-2026-4883 GO-2026-4887)

cd "$(dirname "$0")/../.."
report=$(mktemp)
trap 'rm -f "$report"' EXIT

status=0
go tool -modfile=internal/tools/go.mod govulncheck ${GOVULNDB:+-db "$GOVULNDB"} -show verbose ./... >"$report" || status=$?
cat "$report"
((status == 3)) || exit "$status" # 3 means that something vulnerable is called

called=$(sed -n '/^=== Symbol Results/,/^=== Package Results/s/^Vulnerability #[0-9]*: //p' "$report")
new=$(grep -vxF -f <(printf '%s\n' "${accepted[@]}") <<<"$called" || true)
if [[ -z $called || -n $new ]]; then
  echo "Vulnerable and called: ${new:-see above}" >&2
  exit 1
fi
echo "Called, and accepted: ${accepted[*]}"
