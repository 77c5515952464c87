"""Trains a small network to read handwritten digits, and continues from its last checkpoint wherever it is started.

The program knows nothing about Trainyard: checkpoints are in a folder, which the next run must find again. It logs
JSON lines. The images are UCI's Optical Recognition of Handwritten Digits, as included in scikit-learn.
"""

import argparse
import json
import os
import pathlib
import uuid
import zlib

import numpy as np
from sklearn.datasets import load_digits

HELD_OUT = 297  # of the 1797 images
HIDDEN, BATCH, RATE, MOMENTUM = 32, 32, 0.05, 0.9


def log(event, **values):
    # In a single write: libraries write to the same log.
    print(json.dumps({"event": event, **values}) + "\n", end="", flush=True)


def load():
    """Returns the images to train on and those held out, the same each time."""
    digits = load_digits()
    order = np.random.default_rng(1).permutation(len(digits.target))
    images, labels = digits.data[order] / 16, digits.target[order]
    return (images[HELD_OUT:], labels[HELD_OUT:]), (images[:HELD_OUT], labels[:HELD_OUT])


def begin():
    """Returns the initial state of a training: weights, and their velocities."""
    draw = np.random.default_rng(1)
    weights = {
        "w1": draw.normal(0, 1 / 8, (64, HIDDEN)),
        "b1": np.zeros(HIDDEN),
        "w2": draw.normal(0, HIDDEN**-0.5, (HIDDEN, 10)),
        "b2": np.zeros(10),
    }
    return weights | {f"v_{name}": np.zeros_like(values) for name, values in weights.items()}


def save(file, epoch, state):
    """Replaces the last checkpoint atomically: if the program dies meanwhile, one of the two is complete."""
    part = file.with_name(f".{file.name}.{uuid.uuid4().hex}")  # its own: an earlier run may still be saving
    try:
        with part.open("xb") as out:
            np.savez(out, epoch=epoch, **state)
            out.flush()
            os.fsync(out.fileno())
        os.replace(part, file)
    finally:
        part.unlink(missing_ok=True)


def restore(file):
    """Returns the number of completed epochs, and the state after them."""
    if not file.exists():
        return 0, begin()
    with np.load(file) as saved:
        state = dict(saved)
    return int(state.pop("epoch")), state


def predict(state, images):
    hidden = np.maximum(images @ state["w1"] + state["b1"], 0)
    scores = np.exp(hidden @ state["w2"] + state["b2"])
    return hidden, scores / scores.sum(axis=1, keepdims=True)


def learn(state, epoch, images, labels):
    """Trains on all images once, in an order that depends on the epoch, and returns the mean loss."""
    losses = []
    order = np.random.default_rng([1, epoch]).permutation(len(labels))
    for batch in np.array_split(order, len(order) // BATCH):
        x, y = images[batch], labels[batch]
        hidden, chances = predict(state, x)
        losses.append(-np.log(chances[np.arange(len(y)), y]).mean())
        error = (chances - np.eye(10)[y]) / len(y)
        back = error @ state["w2"].T * (hidden > 0)
        gradients = {"w1": x.T @ back, "b1": back.sum(axis=0), "w2": hidden.T @ error, "b2": error.sum(axis=0)}
        for name, gradient in gradients.items():
            state[f"v_{name}"] = MOMENTUM * state[f"v_{name}"] - RATE * gradient
            state[name] = state[name] + state[f"v_{name}"]
    return float(np.mean(losses))


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--epochs", type=int, default=20)
    parser.add_argument("--folder", type=pathlib.Path, required=True, help="where checkpoints are")
    options = parser.parse_args()

    options.folder.mkdir(parents=True, exist_ok=True)
    file = options.folder / "digits.npz"
    training, (images, labels) = load()
    done, state = restore(file)
    log("resumed" if done else "began", epoch=done)

    def checksum():
        return zlib.crc32(b"".join(state[name].tobytes() for name in sorted(state)))

    for epoch in range(done, options.epochs):
        loss = learn(state, epoch, *training)
        save(file, epoch + 1, state)
        log("saved", epoch=epoch + 1, loss=round(loss, 4), checksum=checksum())
    accuracy = float(np.mean(predict(state, images)[1].argmax(axis=1) == labels))
    log("trained", epoch=max(done, options.epochs), accuracy=round(accuracy, 4), checksum=checksum())


if __name__ == "__main__":
    main()
