"""Trains a small network to read handwritten digits, on all ranks together.

The program knows nothing about Trainyard: mpi4py joins the ranks that mpiexec has started. It logs JSON lines. The
images are UCI's Optical Recognition of Handwritten Digits, as included in scikit-learn.
"""

import argparse
import json
import os
import time
import zlib

import numpy as np
from mpi4py import MPI
from sklearn.datasets import load_digits

HELD_OUT = 297  # of the 1797 images
HIDDEN, BATCH = 64, 32  # BATCH: images per rank and step
RATE, MOMENTUM = 0.1, 0.9
SHAPES = [(64, HIDDEN), (HIDDEN,), (HIDDEN, 10), (10,)]
SIZES = [int(np.prod(shape)) for shape in SHAPES]


def load():
    """Returns the images to train on and those held out, the same for all ranks."""
    digits = load_digits()
    order = np.random.default_rng(1).permutation(len(digits.target))
    images, labels = digits.data[order] / 16, digits.target[order]
    return (images[HELD_OUT:], labels[HELD_OUT:]), (images[:HELD_OUT], labels[:HELD_OUT])


def parts(vector):
    """Returns views of a vector as the weights and biases of two layers."""
    return [part.reshape(shape) for part, shape in zip(np.split(vector, np.cumsum(SIZES)[:-1]), SHAPES)]


def initial():
    draw = np.random.default_rng(1)
    parameters = np.zeros(sum(SIZES))
    for part in parts(parameters):
        if part.ndim == 2:
            part[:] = draw.normal(0, part.shape[0] ** -0.5, part.shape)
    return parameters


def predict(parameters, images):
    w1, b1, w2, b2 = parts(parameters)
    hidden = np.maximum(images @ w1 + b1, 0)
    scores = np.exp(hidden @ w2 + b2)
    return hidden, scores / scores.sum(axis=1, keepdims=True)


def gradient(parameters, images, labels):
    """Returns the gradient of the mean loss on these images, followed by the loss, as one vector."""
    hidden, chances = predict(parameters, images)
    error = (chances - np.eye(10)[labels]) / len(labels)
    back = error @ parts(parameters)[2].T * (hidden > 0)
    loss = -np.log(chances[np.arange(len(labels)), labels]).mean()
    return np.concatenate(
        [(images.T @ back).ravel(), back.sum(axis=0), (hidden.T @ error).ravel(), error.sum(axis=0), [loss]]
    )


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--epochs", type=int, default=20)
    options = parser.parse_args()

    world = MPI.COMM_WORLD
    rank, ranks = world.Get_rank(), world.Get_size()

    def log(event, **values):
        print(json.dumps({"event": event, "rank": rank, "world_size": ranks, **values}) + "\n", end="", flush=True)

    log("joined", member=os.environ.get("WORKER"), library=MPI.Get_library_version().split("\n")[0])
    training, (held_images, held_labels) = load()
    images, labels = (values[rank::ranks] for values in training)
    steps = len(training[1]) // ranks // BATCH  # equal for all ranks, since they take each step together

    begin = time.monotonic()
    parameters, velocity, order = initial(), 0, np.random.default_rng(rank)
    for epoch in range(options.epochs):
        for batch in np.array_split(order.permutation(len(labels))[: steps * BATCH], steps):
            total = world.allreduce(gradient(parameters, images[batch], labels[batch]), op=MPI.SUM) / ranks
            velocity = MOMENTUM * velocity - RATE * total[:-1]
            parameters = parameters + velocity
        log("epoch", epoch=epoch, loss=float(total[-1]))
    log(
        "trained",
        member=os.environ.get("WORKER"),
        accuracy=round(float(np.mean(predict(parameters, held_images)[1].argmax(axis=1) == held_labels)), 4),
        loss=float(total[-1]),
        images=options.epochs * steps * BATCH,
        seconds=round(time.monotonic() - begin, 2),
        checksum=zlib.crc32(parameters.tobytes()),
    )


if __name__ == "__main__":
    main()
