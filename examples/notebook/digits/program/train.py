"""Trains a small network to read handwritten digits, and continues from its last checkpoint if there is one."""

import json
import os
import sys
import time
from pathlib import Path

import joblib
import numpy as np
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split
from sklearn.neural_network import MLPClassifier

EPOCHS = int(os.environ.get("EPOCHS", "20"))
LEARNING_RATE = float(os.environ.get("LEARNING_RATE", "0.01"))
HIDDEN_UNITS = int(os.environ.get("HIDDEN_UNITS", "32"))
OUTPUT = os.environ.get("OUTPUT_DIR")


def say(**values):
    print(json.dumps(values), flush=True)


def restore(checkpoint):
    """Returns the model and the number of epochs that it was trained for."""
    if checkpoint and checkpoint.exists():
        return joblib.load(checkpoint)
    return MLPClassifier(hidden_layer_sizes=[HIDDEN_UNITS], learning_rate_init=LEARNING_RATE, random_state=1), 0


def save(checkpoint, model, epochs):
    """Replaces the checkpoint atomically: a program killed here leaves the previous one."""
    if checkpoint:
        new = checkpoint.with_suffix(".new")
        joblib.dump((model, epochs), new)
        new.replace(checkpoint)


def main():
    checkpoint = Path(OUTPUT, "checkpoint.joblib") if OUTPUT else None
    digits = load_digits()
    train_x, test_x, train_y, test_y = train_test_split(digits.data / 16, digits.target, random_state=1)

    model, done = restore(checkpoint)
    began = time.monotonic()
    for epoch in range(done, EPOCHS):
        model.partial_fit(train_x, train_y, classes=np.arange(10))
        save(checkpoint, model, epoch + 1)
        say(epoch=epoch + 1, loss=round(float(model.loss_), 4))

    accuracy = float(model.score(test_x, test_y))
    say(accuracy=round(accuracy, 4), resumed_at=done, seconds=round(time.monotonic() - began, 1))
    return 0 if accuracy > 0.9 else 1  # a model that has learnt nothing is a failure


if __name__ == "__main__":
    sys.exit(main())
