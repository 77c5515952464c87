"""Trains a small network to read handwritten digits, with DistributedDataParallel.

The program knows nothing about Trainyard: init_process_group finds MASTER_ADDR, MASTER_PORT, WORLD_SIZE and RANK in
the environment. It logs JSON lines. The images are UCI's Optical Recognition of Handwritten Digits, as included in
scikit-learn.
"""

import argparse
import datetime
import json
import os
import socket
import time
import zlib

import torch
import torch.distributed as dist
from sklearn.datasets import load_digits
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset

HELD_OUT = 297  # of the 1797 images


# A rank with a GPU sees only that one: Trainyard sets CUDA_VISIBLE_DEVICES.
DEVICE = "cuda" if torch.cuda.is_available() else "cpu"


def load():
    """Returns the images to train on and those held out, the same for all ranks."""
    digits = load_digits()
    images = torch.tensor(digits.data / 16, dtype=torch.float32, device=DEVICE)
    labels = torch.tensor(digits.target, device=DEVICE)
    order = torch.randperm(len(labels), generator=torch.Generator().manual_seed(1)).to(DEVICE)
    images, labels = images[order], labels[order]
    return (
        TensorDataset(images[HELD_OUT:], labels[HELD_OUT:]),
        TensorDataset(images[:HELD_OUT], labels[:HELD_OUT]),
    )


def train(model, dataset, epochs, log):
    """Trains on this rank's share of the images, and returns their number."""
    sampler = DistributedSampler(dataset, seed=1)
    loader = DataLoader(dataset, batch_size=32, sampler=sampler)
    optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)
    seen = 0
    for epoch in range(epochs):
        sampler.set_epoch(epoch)
        loss_sum = 0.0
        for images, labels in loader:
            optimizer.zero_grad()
            loss = nn.functional.cross_entropy(model(images), labels)
            loss.backward()  # averages the gradients of all ranks
            optimizer.step()
            loss_sum += loss.item() * len(labels)
            seen += len(labels)
        log("epoch", epoch=epoch, loss=round(loss_sum / len(sampler), 4))
    return seen


def evaluate(model, dataset):
    """Returns the model's accuracy on the images."""
    images, labels = dataset.tensors
    with torch.no_grad():
        return (model(images).argmax(1) == labels).float().mean().item()


def checksum(model):
    """Returns a checksum of the parameters."""
    return zlib.crc32(b"".join(p.detach().cpu().numpy().tobytes() for p in model.parameters()))


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--epochs", type=int, default=20)
    parser.add_argument("--timeout", type=float, default=600, help="seconds to wait for the other ranks")
    options = parser.parse_args()

    backend = "nccl" if DEVICE == "cuda" else "gloo"
    dist.init_process_group(backend, timeout=datetime.timedelta(seconds=options.timeout))
    rank, ranks = dist.get_rank(), dist.get_world_size()

    def log(event, **values):
        # In a single write: libraries write to the same log.
        print(json.dumps({"event": event, "rank": rank, "world_size": ranks, **values}) + "\n", end="", flush=True)

    visible = {name: os.environ.get(name) for name in ("CUDA_VISIBLE_DEVICES", "NVIDIA_VISIBLE_DEVICES")}
    log("joined", host=socket.gethostname(), device=DEVICE, **visible)
    training, held_out = load()
    torch.manual_seed(1)
    model = nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 10)).to(DEVICE)

    begin = time.monotonic()
    images = train(DistributedDataParallel(model), training, options.epochs, log)
    seconds = time.monotonic() - begin
    accuracy = evaluate(model, held_out)
    log("trained", accuracy=round(accuracy, 4), images=images, seconds=round(seconds, 2), checksum=checksum(model))
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
