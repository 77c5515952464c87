"""The members of a training, and a watchdog for their joining. Doesn't use TensorFlow."""

import json
import os
import re
import select
import signal
import socket
import sys

USAGE = 2  # the exit code of failures that a restart won't fix


def fail(code, message):
    print(f"train.py: {message}", file=sys.stderr, flush=True)
    os._exit(code)


def task():
    """Returns this worker's rank and all addresses. Without addresses, TensorFlow would train alone."""
    try:
        config = json.loads(os.environ["TF_CONFIG"])
        addresses, kind, rank = config["cluster"]["worker"], config["task"]["type"], config["task"]["index"]
    except (KeyError, TypeError, ValueError) as problem:
        fail(USAGE, f"TF_CONFIG has no workers, or no task among them ({problem!r}): nobody trains alone unasked")
    if kind != "worker" or not 0 <= rank < len(addresses):
        fail(USAGE, f"TF_CONFIG has {kind} {rank} and {len(addresses)} workers: this program is for workers alone")
    return rank, addresses


class Watch:
    """Ends this process if the others have not joined in time, or if it is asked to end before that.

    TensorFlow waits forever for the others, blocks all other threads meanwhile, and handles SIGTERM itself, so the
    watchdog is a separate process, started before TensorFlow is loaded.
    """

    def __init__(self, rank, addresses, timeout):
        watched, joined = os.pipe()
        parent = os.getpid()
        self.joined = joined
        self.child = os.fork()
        if self.child > 0:
            os.close(watched)
            return
        os.close(joined)
        signal.signal(signal.SIGTERM, lambda *_: end(parent, signal.SIGKILL))
        if not select.select([watched], [], [], seconds(timeout))[0]:
            missing = [address for other, address in enumerate(addresses) if other != rank and not answers(address)]
            print(
                f"train.py: {len(addresses)} workers have to take part, and not all joined within {timeout}."
                f" These do not answer: {', '.join(missing) or 'none, so that one of them has not finished its start'}",
                file=sys.stderr, flush=True,
            )
            end(parent, signal.SIGKILL)
        os._exit(0)  # all have joined, or this process has ended

    def over(self):
        os.close(self.joined)
        os.waitpid(self.child, 0)
        signal.signal(signal.SIGTERM, signal.SIG_DFL)


def end(parent, number):
    if os.getppid() == parent:
        os.kill(parent, number)
    os._exit(0)


def answers(address):
    host, _, port = address.rpartition(":")
    try:
        socket.create_connection((host, int(port)), timeout=2).close()
    except OSError:
        return False
    return True


def seconds(duration):
    """Returns the seconds of a duration such as 1m30s."""
    units = {"ms": 0.001, "s": 1, "m": 60, "h": 3600}
    return sum(float(number) * units[unit] for number, unit in re.findall(r"([0-9.]+)(ms|s|m|h)", duration))
