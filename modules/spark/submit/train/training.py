"""What both programs share: generate rows, train a model with all workers, and evaluate it on rows it has not seen.

WORKERS is the number of workers; ROWS, ROUNDS, MAX_DEPTH and SEED control the training; MODEL is where the model is
saved. The log is JSON lines.
"""

import json
import os
import time

from pyspark.sql import SparkSession


def say(**fields):
    # In a single write: libraries write to the same log.
    print(json.dumps(fields) + "\n", end="", flush=True)


def setting(name, value):
    return int(os.environ.get(name, value))


class Job:
    """A job in its own Spark application."""

    def __init__(self, name):
        self.begin = time.time()
        self.name, self.workers, self.seed = name, setting("WORKERS", 2), setting("SEED", 2021)
        self.rows, self.rounds, self.depth = setting("ROWS", 100000), setting("ROUNDS", 50), setting("MAX_DEPTH", 6)
        # spark-submit determines the name and the executors.
        self.spark = SparkSession.builder.getOrCreate()
        self.spark.sparkContext.setLogLevel("WARN")
        self.gpus = self.spark.conf.get("spark.task.resource.gpu.amount", None) is not None
        say(event="started", job=name, workers=self.workers, rows=self.rows, gpus=self.gpus)
        self.spark.range(1).count()  # the first task: Spark starts it when all executors have registered
        self.first_task = time.time()

    def frames(self, make):
        """Returns the rows to train on, in memory, and others to evaluate on."""
        training = make(self.spark, self.rows, self.seed, self.workers).persist()
        training.count()
        say(event="prepared", rows=self.rows, seconds=self.elapsed())
        return training, make(self.spark, max(self.rows // 5, 1), self.seed + 1, self.workers)

    def settings(self):
        """Returns the parameters of an xgboost.spark estimator."""
        return {
            "num_workers": self.workers,
            "n_estimators": self.rounds,
            "max_depth": self.depth,
            "tree_method": "hist",
            "random_state": self.seed,
            "device": "cuda" if self.gpus else "cpu",
        }

    def elapsed(self):
        """Returns the seconds since the program's start, including Spark's own start and the wait for executors."""
        return round(time.time() - self.begin, 1)

    def train(self, estimator, training):
        begin = time.time()
        model = estimator.fit(training)
        say(event="trained", rounds=self.rounds, seconds=round(time.time() - begin, 1))
        if os.environ.get("MODEL"):
            model.write().overwrite().save(os.environ["MODEL"])
        return model

    def end(self, **figures):
        times = {"seconds": self.elapsed(), "since_first_task": round(time.time() - self.first_task, 1)}
        say(event="evaluated", job=self.name, workers=self.workers, **times, **figures)
        self.spark.stop()
