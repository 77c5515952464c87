"""Prints which GPU each executor has, if any, keeps shuffled data until the file GO exists and an executor has gone, and then
prints the data's sum.

It also prints how many numbers were generated for it: each once, if no shuffled data got lost.
"""

import json
import os
import time

from pyspark import BarrierTaskContext, SparkContext, TaskContext


def say(**fields):
    # In a single write: libraries write to the same log.
    print(json.dumps(fields) + "\n", end="", flush=True)


def device(_):
    BarrierTaskContext.get().barrier()  # both tasks run in parallel, on one executor each
    gpus = TaskContext.get().resources().get("gpu")
    yield os.environ["CUDA_VISIBLE_DEVICES"] + " " + ",".join(gpus.addresses) if gpus else "none"


def executors():
    """Returns how many executors the driver knows. It counts itself and the shared storage among them."""
    return context._jsc.sc().getExecutorMemoryStatus().size()


context = SparkContext.getOrCreate()
say(event="devices", devices=sorted(context.parallelize(range(2), 2).barrier().mapPartitions(device).collect()))

made = context.accumulator(0)


def pair(n):
    made.add(1)
    return n % 100, n


pairs = context.parallelize(range(20000), 4).map(pair).reduceByKey(lambda a, b: a + b, 4)
keys, before = pairs.count(), executors()
say(event="shuffled", keys=keys, made=made.value)
while not os.path.exists(os.environ["GO"]) or executors() == before:
    time.sleep(0.1)
total = pairs.values().sum()
say(event="summed", sum=total, made=made.value)
context.stop()
