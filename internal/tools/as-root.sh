#!/usr/bin/env bash
# Runs a command as root, with sudo if necessary, and says why: as-root.sh "Installing packages" apt-get install …
# The environment stays the caller's, except for home, cache and temporary folders, where root's files would get in the
# way.
set -euo pipefail

why=$1
shift
((EUID)) || exec "$@"
if ! command -v sudo >/dev/null; then
  printf '%s takes root, and there is no sudo: run make as root.\n' "$why" >&2
  exit 1
fi
printf '%s takes root: running it with sudo.\n' "$why" >&2
exec sudo --preserve-env --set-home env --unset=XDG_CACHE_HOME --unset=TMPDIR "PATH=$PATH" "$@"
