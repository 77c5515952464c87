"""Fits a line by gradient descent, and fails with exit code 3 if the loss stays above TARGET."""

import os
import random
import sys

random.seed(1)
points = [(x, 3 * x + 1 + random.gauss(0, 0.01)) for x in (random.uniform(-1, 1) for _ in range(200))]
slope, offset, rate = 0.0, 0.0, 0.3

print(f"commit {os.environ['COMMIT']}")
for epoch in range(1, 41):
    errors = [(x, slope * x + offset - y) for x, y in points]
    loss = sum(e * e for _, e in errors) / len(errors)
    slope -= rate * sum(2 * e * x for x, e in errors) / len(errors)
    offset -= rate * sum(2 * e for _, e in errors) / len(errors)
    if epoch % 10 == 0:
        print(f"epoch {epoch} loss {loss:.6f}")

if loss > float(os.environ["TARGET"]):
    print(f"the loss is {loss:.6f}, above {os.environ['TARGET']}", file=sys.stderr)
    sys.exit(3)
print(f"slope {slope:.2f} offset {offset:.2f}")
