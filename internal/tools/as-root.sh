#!/usr/bin/env bash
# Runs a command as root, with sudo where it must, and says why: as-root.sh "Installing packages" apt-get install …
# The environment stays the caller's, but for home, cache and temporary folders: root's files would be in the way there.
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
