#!/usr/bin/env bash
# Installs those of these Debian or Ubuntu packages whose programs are missing: packages.sh gcc docker.io …
# It says what is missing and why it is needed, and uses sudo if necessary.
set -euo pipefail

PATH=$PATH:/usr/local/sbin:/usr/sbin:/sbin # not in every user's PATH

# what PACKAGE: sets `program` to the file that shows that a package is installed, and `use` to its purpose.
what() {
  case $1 in
  ca-certificates)
    program=/etc/ssl/certs/ca-certificates.crt use="for Go to download modules"
    command -v apt-get >/dev/null || program=true # other systems have certificates elsewhere
    ;;
  gcc) program=gcc use="to build what reads GPUs, with cgo" ;;
  gcc-aarch64-linux-gnu) program=aarch64-linux-gnu-gcc use="to build what reads GPUs for hosts of the architecture arm64" ;;
  gcc-x86-64-linux-gnu) program=x86_64-linux-gnu-gcc use="to build what reads GPUs for hosts of the architecture amd64" ;;
  libc6-dev-arm64-cross) program=/usr/aarch64-linux-gnu/include/stdlib.h use="for gcc-aarch64-linux-gnu" ;;
  libc6-dev-amd64-cross) program=/usr/x86_64-linux-gnu/include/stdlib.h use="for gcc-x86-64-linux-gnu" ;;
  libc6-dev) program=/usr/include/stdlib.h use="for gcc" ;;
  docker.io) program=dockerd use="for the tests' own Docker Engines" ;;
  iptables) program=iptables use="for Docker Engines" ;;
  debootstrap) program=debootstrap use="to install the Debian systems of test machines into a cache folder" ;;
  prometheus) program=prometheus use="for tests that ask one" ;;
  default-jre-headless) program=java use="to run Spark and Kafka" ;;
  maven) program=mvn use="to install Kafka's jars from Maven Central" ;;
  chromium) program=chromium use="for tests of reports in a browser" ;;
  redis-server) program=redis-server use="for tests that measure queues" ;;
  python3-venv)
    program=python3-venv use="to install Python's packages from PyPI into environments of their own"
    ! python3 -c 'import ensurepip, venv' 2>/dev/null || program=true
    ;;
  python3-torch) program=/usr/lib/python3/dist-packages/torch/version.py use="for tests that train with PyTorch" ;;
  python3-sklearn) program=/usr/lib/python3/dist-packages/sklearn/__init__.py use="for the images of tests that train with PyTorch" ;;
  curl) program=curl use="for tests of pipelines that send messages" ;;
  python3) program=python3 use="for tests of examples in Python" ;;
  git) program=git use="for tests that compare with what it ignores" ;;
  *)
    printf 'packages.sh knows no package %s.\n' "$1" >&2
    exit 2
    ;;
  esac
}

missing=()
for package in "$@"; do
  what "$package"
  command -v "$program" >/dev/null || [[ -f $program ]] || missing+=("$package")
done
((${#missing[@]})) || exit 0

echo "Packages are missing:" >&2
for package in "${missing[@]}"; do
  what "$package"
  printf '  %-22s %s\n' "$package" "$use" >&2
done

by_hand() {
  printf '%s Install them by hand (%s), and run make again.\n' "$1" "apt-get install ${missing[*]}" >&2
  exit 1
}

command -v apt-get >/dev/null || by_hand "This system has no apt-get, and may call them by other names."
# Tests start what they need, so packages start no services, unless the machine has its own policy.
as_root=$(dirname "$0")/as-root.sh
"$as_root" "Installing them" bash -euo pipefail -s - "${missing[@]}" <<'ROOT' || by_hand "They could not be installed."
policy=/usr/sbin/policy-rc.d
if [[ ! -e $policy ]]; then
  trap 'rm -f "$policy"' EXIT
  printf '#!/bin/sh\nexit 101\n' | install -m 755 /dev/stdin "$policy"
fi
export DEBIAN_FRONTEND=noninteractive
# Retries failed downloads, and waits for another installation to end, as on new machines.
options=(-qq -o Acquire::Retries=5 -o DPkg::Lock::Timeout=600)
apt-get "${options[@]}" update </dev/null
apt-get "${options[@]}" install -y --no-install-recommends "$@" </dev/null
ROOT
