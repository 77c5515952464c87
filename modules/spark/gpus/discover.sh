#!/bin/sh
# Tells Spark's worker which GPUs it has, as its resource discovery wants it: those of CUDA_VISIBLE_DEVICES, counted from
# 0, as the programs count them that find the same variable.
set -eu
case ${CUDA_VISIBLE_DEVICES:--1} in
  -1) echo 'CUDA_VISIBLE_DEVICES names no GPU: the role of the workers needs gpus.' >&2 && exit 1 ;;
esac
count=$(printf '%s\n' "$CUDA_VISIBLE_DEVICES" | tr ',' '\n' | grep -c .)
printf '{"name": "gpu", "addresses": ["%s"]}\n' "$(seq -s '", "' 0 $((count - 1)))"
