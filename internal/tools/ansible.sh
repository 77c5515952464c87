#!/usr/bin/env bash
# Prints the folder with the programs of Ansible, with which the benchmarks compare. It is installed from PyPI, once into the
# user's cache folder, at the versions of ansible.txt. Messages go to standard error.
#
# ansible.txt is written by: echo ansible-core | uv pip compile --universal --python-version 3.11 --generate-hashes --no-header - -o ansible.txt
set -euo pipefail

here=$(cd "$(dirname "$0")" && pwd)
lock=$here/ansible.txt
key=$(sha256sum <"$lock")
folder=${XDG_CACHE_HOME:-$HOME/.cache}/trainyard/ansible-${key:0:12}

if [[ ! -e $folder/complete ]]; then # a virtual environment can't be moved
  rm -rf "$folder"
  mkdir -p "$(dirname "$folder")"
  {
    python3 -m venv "$folder"
    "$folder/bin/pip" install --quiet --disable-pip-version-check --require-hashes --only-binary :all: --requirement "$lock"
  } >&2
  touch "$folder/complete"
fi
printf '%s\n' "$folder/bin"
