"""Trains a small network to read handwritten digits, on the devices of all processes together.

The program knows nothing about Trainyard: it gets the coordinator's address, the number of processes and its own
number from the environment. It logs JSON lines. The images are UCI's Optical Recognition of Handwritten Digits, as
included in scikit-learn.
"""

import argparse
import json
import os
import socket
import time
import zlib

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import NamedSharding, PartitionSpec
from sklearn.datasets import load_digits

HELD_OUT = 297  # of the 1797 images
BATCH = 32  # images per process and step
RATE, MOMENTUM = 0.1, 0.9


def load():
    """Returns the images to train on and those held out, the same for all processes."""
    digits = load_digits()
    order = np.random.default_rng(1).permutation(len(digits.target))
    images, labels = (digits.data / 16).astype(np.float32)[order], digits.target[order]
    return (images[HELD_OUT:], labels[HELD_OUT:]), (images[:HELD_OUT], labels[:HELD_OUT])


def initial_parameters():
    hidden, out = jax.random.split(jax.random.key(1))
    return {
        "hidden": {"w": jax.random.normal(hidden, (64, 64)) / 8, "b": jnp.zeros(64)},
        "out": {"w": jax.random.normal(out, (64, 10)) / 8, "b": jnp.zeros(10)},
    }


def logits(parameters, images):
    hidden = jax.nn.relu(images @ parameters["hidden"]["w"] + parameters["hidden"]["b"])
    return hidden @ parameters["out"]["w"] + parameters["out"]["b"]


def mean_loss(parameters, images, labels):
    return -jnp.mean(jnp.sum(jax.nn.log_softmax(logits(parameters, images)) * jax.nn.one_hot(labels, 10), axis=1))


@jax.jit
def step(parameters, velocity, images, labels):
    """Takes a step of gradient descent. The mean is over the images of all processes, among which they are sharded."""
    loss, gradients = jax.value_and_grad(mean_loss)(parameters, images, labels)
    velocity = jax.tree.map(lambda v, g: MOMENTUM * v - RATE * g, velocity, gradients)
    return jax.tree.map(jnp.add, parameters, velocity), velocity, loss


def train(dataset, epochs, log):
    """Trains on this process's share of the images. Returns the parameters, the last loss, and the number of images."""
    mesh = jax.make_mesh((jax.device_count(),), ("data",))
    spread, everywhere = NamedSharding(mesh, PartitionSpec("data")), NamedSharding(mesh, PartitionSpec())

    rank, ranks = jax.process_index(), jax.process_count()
    images, labels = (values[rank::ranks] for values in dataset)
    steps = len(dataset[1]) // ranks // BATCH  # equal for all processes, since they take each step together

    parameters = jax.jit(initial_parameters, out_shardings=everywhere)()
    velocity = jax.jit(lambda p: jax.tree.map(jnp.zeros_like, p), out_shardings=everywhere)(parameters)
    order = np.random.default_rng(rank)
    loss = None
    for epoch in range(epochs):
        for batch in np.array_split(order.permutation(len(labels))[: steps * BATCH], steps):
            parameters, velocity, loss = step(
                parameters,
                velocity,
                jax.make_array_from_process_local_data(spread, images[batch]),
                jax.make_array_from_process_local_data(spread, labels[batch]),
            )
        log("epoch", epoch=epoch, loss=float(loss))
    return jax.device_get(parameters), float(loss), epochs * steps * BATCH


def evaluate(parameters, dataset):
    """Returns the model's accuracy on the images."""
    images, labels = dataset
    return float(np.mean(np.argmax(logits(parameters, images), axis=1) == labels))


def checksum(parameters):
    """Returns a checksum of the parameters."""
    return zlib.crc32(b"".join(np.asarray(leaf).tobytes() for leaf in jax.tree.leaves(parameters)))


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--epochs", type=int, default=20)
    parser.add_argument("--timeout", type=int, default=600, help="seconds to wait for the other processes")
    options = parser.parse_args()

    jax.distributed.initialize(
        coordinator_address=os.environ["JAX_COORDINATOR_ADDRESS"],
        num_processes=int(os.environ["JAX_NUM_PROCESSES"]),
        process_id=int(os.environ["JAX_PROCESS_ID"]),
        initialization_timeout=options.timeout,
    )
    rank, ranks = jax.process_index(), jax.process_count()

    def log(event, **values):
        # In a single write: libraries write to the same log.
        entry = {"event": event, "rank": rank, "world_size": ranks, **values}
        print(json.dumps(entry) + "\n", end="", flush=True)

    log("joined", host=socket.gethostname(), platform=jax.default_backend(), devices=jax.local_device_count(), of=jax.device_count())
    training, held_out = load()

    begin = time.monotonic()
    parameters, loss, images = train(training, options.epochs, log)
    seconds = time.monotonic() - begin
    log(
        "trained",
        accuracy=round(evaluate(parameters, held_out), 4),
        loss=loss,
        images=images,
        seconds=round(seconds, 2),
        checksum=checksum(parameters),
    )
    jax.distributed.shutdown()  # waits for the others


if __name__ == "__main__":
    main()
