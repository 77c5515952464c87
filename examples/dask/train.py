"""Trains a model to read handwritten digits on the workers of a Dask cluster, by averaging what each has learnt.

The program knows nothing about Trainyard: Client finds the scheduler through DASK_SCHEDULER_ADDRESS. It logs JSON
lines. The images are UCI's Optical Recognition of Handwritten Digits, as included in scikit-learn.
"""

import argparse
import json
import os
import time
import zlib

import numpy as np
from distributed import Client, get_worker
from sklearn.datasets import load_digits

HELD_OUT = 297  # of the 1797 images
PARTS = 6  # of the others: a worker trains on one at a time
RATE = 0.2


def log(event, **values):
    # In a single write: libraries write to the same log.
    print(json.dumps({"event": event, **values}) + "\n", end="", flush=True)


def load():
    """Returns the images to train on and those held out, the same for all workers."""
    digits = load_digits()
    order = np.random.default_rng(1).permutation(len(digits.target))
    images, labels = np.c_[digits.data / 16, np.ones(len(order))][order], digits.target[order]
    return (images[HELD_OUT:], labels[HELD_OUT:]), (images[:HELD_OUT], labels[:HELD_OUT])


def probabilities(weights, images):
    powers = np.exp(images @ weights - (images @ weights).max(axis=1, keepdims=True))
    return powers / powers.sum(axis=1, keepdims=True)


def learn(weights, turn, part):
    """Returns the weights after training on a part of the images, the loss on it, and the worker."""
    images, labels = (values[part::PARTS] for values in load()[0])
    wanted = np.eye(10)[labels]
    loss = -np.mean(np.log(probabilities(weights, images)[np.arange(len(labels)), labels]))
    for _ in range(10):  # epochs
        for batch in np.array_split(np.random.default_rng([turn, part]).permutation(len(labels)), 10):
            error = probabilities(weights, images[batch]) - wanted[batch]
            weights = weights - RATE * images[batch].T @ error / len(batch)
    return weights, loss, get_worker().name, os.getpid()


def evaluate(weights):
    """Returns the model's accuracy on the held-out images."""
    images, labels = load()[1]
    return float(np.mean(probabilities(weights, images).argmax(axis=1) == labels))


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=20)
    options = parser.parse_args()

    with Client() as client:
        log("joined", scheduler=client.scheduler.address)
        weights = np.zeros((65, 10))
        begin = time.monotonic()
        for turn in range(options.rounds):
            # Dask gives each part to a free worker, and to another one if that one dies.
            learnt = client.gather([client.submit(learn, weights, turn, part) for part in range(PARTS)])
            weights = np.mean([part[0] for part in learnt], axis=0)
            log(
                "round",
                round=turn,
                loss=round(float(np.mean([part[1] for part in learnt])), 4),
                checksum=zlib.crc32(weights.tobytes()),
                workers={name: pid for _, _, name, pid in learnt},
            )
        log(
            "trained",
            accuracy=round(evaluate(weights), 4),
            checksum=zlib.crc32(weights.tobytes()),
            seconds=round(time.monotonic() - begin, 2),
        )


if __name__ == "__main__":
    main()
