"""Calls an example's save while another process saves to the same file, and while writing fails, without libraries."""

import contextlib
import importlib.util
import pathlib
import sys
from unittest import mock

sys.dont_write_bytecode = True  # the examples are left alone
program, folder = pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2])
for name in ("numpy", "sklearn.datasets", "torch.distributed", "torch.nn.parallel", "torch.utils.data"):
    while name:
        sys.modules[name] = mock.MagicMock()
        name = name.rpartition(".")[0]
spec = importlib.util.spec_from_file_location("example", program)
example = importlib.util.module_from_spec(spec)
spec.loader.exec_module(example)
file = folder / "checkpoint"
midway = []  # what happens in the middle of the next write


def write(target, content):
    with contextlib.nullcontext(target) if hasattr(target, "write") else open(target, "wb") as out:
        out.write(content[:1])
        out.flush()
        if midway:
            midway.pop()()
        out.write(content[1:])


def save(content):
    if hasattr(example, "torch"):
        example.torch.save = lambda state, target: write(target, state["content"])
        example.save(file, content=content)
    else:
        example.np.savez = lambda target, epoch, content: write(target, content)
        example.save(file, 1, {"content": content})


def fail():
    raise OSError("no space left")


midway.append(lambda: save(b"other"))
with contextlib.suppress(FileNotFoundError):  # if the other one took the file away
    save(b"this")
assert file.read_bytes() == b"this", file.read_bytes()
midway.append(fail)
with contextlib.suppress(OSError):
    save(b"half")
assert file.read_bytes() == b"this", file.read_bytes()
assert [path.name for path in folder.iterdir()] == ["checkpoint"], list(folder.iterdir())
