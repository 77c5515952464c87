"""Searches for the settings with which a small network reads handwritten digits best, on a Ray cluster.

The program knows nothing about Trainyard: ray.init finds the cluster through RAY_ADDRESS. It logs JSON lines. The
images are UCI's Optical Recognition of Handwritten Digits, as included in scikit-learn.
"""

import argparse
import json
import time

import numpy as np
import ray
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split
from sklearn.neural_network import MLPClassifier

AT_ONCE = 32  # trials submitted to Ray at a time: the maximum number of busy workers


def log(event, **values):
    # In a single write: libraries write to the same log.
    print(json.dumps({"event": event, **values}) + "\n", end="", flush=True)


def load():
    """Returns the images to train on, those to compare settings with, and those for the final test."""
    digits = load_digits()
    images, labels = digits.data / 16, digits.target
    images, last, labels, last_labels = train_test_split(images, labels, test_size=297, random_state=1)
    images, compared, labels, compared_labels = train_test_split(images, labels, test_size=300, random_state=1)
    return (images, labels), (compared, compared_labels), (last, last_labels)


def drawn(trials):
    """Yields the settings of this many trials, the same each time."""
    draw = np.random.default_rng(1)
    for _ in range(trials):
        yield {
            "hidden": int(draw.choice([16, 32, 64, 128])),
            "rate": float(f"{10 ** draw.uniform(-4, -1.5):.3g}"),
            "decay": float(f"{10 ** draw.uniform(-6, -1):.3g}"),
        }


def fit(settings, epochs, images, labels):
    """Returns a network trained with these settings."""
    network = MLPClassifier(
        hidden_layer_sizes=(settings["hidden"],),
        learning_rate_init=settings["rate"],
        alpha=settings["decay"],
        max_iter=epochs,
        n_iter_no_change=epochs,  # all trials take the same number of epochs
        random_state=1,
    )
    return network.fit(images, labels)


@ray.remote(num_cpus=1)
def trial(settings, epochs, training, compared):
    """Returns the accuracy with these settings, and the Ray node that computed it. Ray retries if a node dies."""
    accuracy = fit(settings, epochs, *training).score(*compared)
    return round(float(accuracy), 4), ray.get_runtime_context().get_node_id()


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--trials", type=int, default=16)
    parser.add_argument("--epochs", type=int, default=60)
    options = parser.parse_args()

    ray.init(log_to_driver=False)
    log("joined", trials=options.trials)
    training, compared, last = load()

    begin = time.monotonic()
    held = [ray.put(part) for part in (training, compared)]
    settings, accuracies, nodes, pending = {}, {}, set(), {}
    for index, settings[index] in enumerate(drawn(options.trials)):
        pending[trial.remote(settings[index], options.epochs, *held)] = index
        while len(pending) == AT_ONCE or pending and index + 1 == options.trials:
            (ended,), _ = ray.wait(list(pending))
            number = pending.pop(ended)
            accuracies[number], node = ray.get(ended)
            nodes.add(node)
            log("trial", trial=number, accuracy=accuracies[number], node=node, **settings[number])

    best = max(accuracies, key=accuracies.get)
    both = [np.concatenate(parts) for parts in zip(training, compared)]
    log(
        "searched",
        trials=len(accuracies),
        nodes=len(nodes),
        best=settings[best],
        accuracy=round(float(fit(settings[best], options.epochs, *both).score(*last)), 4),
        seconds=round(time.monotonic() - begin, 2),
    )


if __name__ == "__main__":
    main()
