"""Trains a small network to read handwritten digits, with a number of ranks that may change.

The program knows nothing about Trainyard: torchrun restarts it on all members whenever one is added or removed, and it
continues from its last checkpoint. It logs JSON lines. The images are UCI's Optical Recognition of Handwritten Digits,
as included in scikit-learn.
"""

import argparse
import json
import os
import pathlib
import uuid

import torch
import torch.distributed as dist
from sklearn.datasets import load_digits
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset

HELD_OUT = 297  # of the 1797 images


def load():
    """Returns the images to train on and those held out, the same for all ranks."""
    digits = load_digits()
    images = torch.tensor(digits.data / 16, dtype=torch.float32)
    labels = torch.tensor(digits.target)
    order = torch.randperm(len(labels), generator=torch.Generator().manual_seed(1))
    images, labels = images[order], labels[order]
    return TensorDataset(images[HELD_OUT:], labels[HELD_OUT:]), (images[:HELD_OUT], labels[:HELD_OUT])


def save(file, **state):
    """Replaces the last checkpoint atomically: if the program dies meanwhile, one of the two is complete."""
    part = file.with_name(f".{file.name}.{uuid.uuid4().hex}")  # its own: an earlier run may still be saving
    try:
        torch.save(state, part)
        os.replace(part, file)
    finally:
        part.unlink(missing_ok=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--epochs", type=int, default=20)
    parser.add_argument("--folder", type=pathlib.Path, required=True, help="where checkpoints are, for all ranks")
    options = parser.parse_args()

    dist.init_process_group("gloo")
    rank, ranks = dist.get_rank(), dist.get_world_size()

    def log(event, **values):
        # In a single write: libraries write to the same log.
        print(json.dumps({"event": event, "rank": rank, "world_size": ranks, **values}) + "\n", end="", flush=True)

    options.folder.mkdir(parents=True, exist_ok=True)
    file = options.folder / "digits.pt"
    training, (images, labels) = load()
    torch.manual_seed(1)
    model = DistributedDataParallel(nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 10)))
    optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)
    done = 0
    if file.exists():
        saved = torch.load(file)
        model.load_state_dict(saved["model"])
        optimizer.load_state_dict(saved["optimizer"])
        done = saved["epochs"]
    dist.barrier()  # no rank saves before all have read
    log("joined", epochs=done)

    sampler = DistributedSampler(training, seed=1)
    loader = DataLoader(training, batch_size=32, sampler=sampler)
    for epoch in range(done, options.epochs):
        sampler.set_epoch(epoch)
        total = torch.zeros(2)
        for batch, wanted in loader:
            optimizer.zero_grad()
            loss = nn.functional.cross_entropy(model(batch), wanted)
            loss.backward()  # averages the gradients of all ranks
            optimizer.step()
            total += torch.tensor([loss.item() * len(wanted), len(wanted)])
        if rank == 0:
            save(file, model=model.state_dict(), optimizer=optimizer.state_dict(), epochs=epoch + 1)
        log("epoch", epochs=epoch + 1, loss=round((total[0] / total[1]).item(), 4))
    with torch.no_grad():
        accuracy = (model.module(images).argmax(1) == labels).float().mean().item()
    log("trained", epochs=max(done, options.epochs), accuracy=round(accuracy, 4))
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
