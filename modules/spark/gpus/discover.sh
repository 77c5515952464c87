#!/bin/sh
# Reports the GPUs of Spark's worker in the format of its resource discovery: those in CUDA_VISIBLE_DEVICES, counted
# from 0, as programs with the same variable count them.
set -eu
case ${CUDA_VISIBLE_DEVICES:--1} in
  -1) echo 'CUDA_VISIBLE_DEVICES names no GPU: the role of the workers needs gpus.' >&2 && exit 1 ;;
esac
count=$(printf '%s\n' "$CUDA_VISIBLE_DEVICES" | tr ',' '\n' | grep -c .)
printf '{"name": "gpu", "addresses": ["%s"]}\n' "$(seq -s '", "' 0 $((count - 1)))"
