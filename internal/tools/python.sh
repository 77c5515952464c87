#!/usr/bin/env bash
# Prints the folder with the programs of a Python environment: python.sh ansible, which benchmarks compare with, or
# python.sh tensorflow, with which reference systems train. It is installed from PyPI, once into the user's cache
# folder, with the versions in NAME.txt, whose digests are verified. Messages go to standard error.
#
# To update NAME.txt: printf '%s\n' PACKAGES | uv pip compile --universal --python-version 3.11 --generate-hashes
# --no-header - -o NAME.txt
#   ansible     ansible-core
#   dask        distributed scikit-learn
#   jax         'jax[cpu]' scikit-learn
#   rl          numpy tensorboard 'setuptools<81' (TensorBoard needs its pkg_resources)
#   spark       pyspark xgboost-cpu 'pandas<3' pyarrow scikit-learn setuptools (which builds pyspark)
#   mpi         mpi4py mpich scikit-learn
#   ray         ray scikit-learn
#   tensorflow  tensorflow-cpu tensorboard 'setuptools<81' (TensorBoard needs its pkg_resources)
set -euo pipefail

here=$(cd "$(dirname "$0")" && pwd)
source "$here/once.sh"

name=${1:?the name of an environment, such as tensorflow}
lock=$here/$name.txt
if [[ ! -f $lock ]]; then
  say "python.sh knows no environment $name: there is no $lock."
  exit 2
fi

# A virtual environment can't be moved, so it is created in its final place.
install_packages() {
  python3 -m venv "$1"
  local install=("$1/bin/pip" install --quiet --disable-pip-version-check --no-cache-dir --require-hashes --only-binary :all:)
  # PyPI has pyspark only as source. It is built with the file's setuptools, not with the latest.
  if grep -q '^pyspark==' "$lock"; then
    awk '/^[^ ]/ { this = /^setuptools==/ } this' "$lock" >"$1/setuptools.txt"
    again "${install[@]}" --requirement "$1/setuptools.txt"
    install+=(--no-build-isolation --no-binary pyspark)
  fi
  again "${install[@]}" --requirement "$lock"
}

folder=$(once "$name" PyPI "$lock" install_packages)
printf '%s\n' "$folder/bin"
