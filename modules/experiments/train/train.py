"""An agent learns to set the prices of a market: one experiment, from a JSON config to results.

TRAINYARD_CONFIG is the config, with every parameter; TRAINYARD_RESULTS is the folder for results, where the next
attempt finds the checkpoint, and TensorBoard the events; STARTED_BY says who started it; SAVE_SECONDS is the interval
of checkpoints. The log is JSON lines.
"""

import hashlib
import json
import os
import signal
import sys
import time

import numpy as np

from agents import AGENTS
from events import Writer, cut
from market import Market

EVALUATED = 20  # episodes, with other seeds than in training


def say(**fields):
    # In a single write: libraries write to the same log.
    print(json.dumps(fields) + "\n", end="", flush=True)


def now():
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())


def replace(path, write, mode):
    """Writes a file atomically: a process killed meanwhile leaves the previous one."""
    with open(path + ".new", mode) as file:
        write(file)
    os.replace(path + ".new", path)


def lines_until(path, episode):
    """Returns the lines of a file of metrics up to an episode. A line written only in part ends them."""
    lines = []
    if os.path.exists(path):
        with open(path, errors="replace") as file:
            for line in file:
                try:
                    if not line.endswith("\n") or json.loads(line)["episode"] > episode:
                        break
                except ValueError:
                    break
                lines.append(line)
    return lines


class Experiment:
    def __init__(self, config, folder):
        self.config, self.folder = config, folder
        self.episodes = config["environment"]["episodes"]
        self.learning = config["learning"]
        seed = config["environment"]["seed"]
        self.random = np.random.default_rng([seed, 1])
        self.market = Market(config["market"], [seed, 2])
        parts = len(self.market.reset()[0])
        self.agent = AGENTS[config["environment"]["agent"]](parts, self.market.actions, self.learning, self.random)
        self.episode, self.frames, self.rewards = 0, 0, []
        self.stopped = False

    # A checkpoint belongs to one config: another config starts from scratch.
    def _mark(self):
        return hashlib.sha256(json.dumps(self.config, sort_keys=True).encode()).hexdigest()

    def _checkpoint(self):
        return os.path.join(self.folder, "checkpoint.npz")

    def save(self):
        randoms = json.dumps([self.random.bit_generator.state, self.market.random.bit_generator.state])
        arrays = {name: getattr(self.agent, name) for name in self.agent.arrays}
        progress = {"mark": self._mark(), "episode": self.episode, "frames": self.frames, "random": randoms}
        rewards = np.array(self.rewards)
        replace(self._checkpoint(), lambda file: np.savez(file, rewards_since=rewards, **progress, **arrays), "wb")

    def resume(self):
        """Continues where the previous attempt was, and reports whether there was one."""
        if not os.path.exists(self._checkpoint()):
            return False
        with np.load(self._checkpoint()) as saved:
            if saved["mark"] != self._mark():
                return False
            for name in self.agent.arrays:
                setattr(self.agent, name, saved[name])
            self.episode, self.frames = int(saved["episode"]), int(saved["frames"])
            self.rewards = list(saved["rewards_since"])
            self.random.bit_generator.state, self.market.random.bit_generator.state = json.loads(str(saved["random"]))
        return True

    def epsilon(self):
        begin, end, frames = (self.learning[name] for name in ("epsilon_start", "epsilon_final", "epsilon_frames"))
        return max(end, begin - (begin - end) * self.frames / frames)

    def _play(self):
        observation, _ = self.market.reset()
        total, ended = 0.0, False
        while not ended:
            if self.random.random() < self.epsilon():
                action = int(self.random.integers(self.market.actions))
            else:
                action = self.agent.best(observation)
            after, reward, _, ended, _ = self.market.step(action)
            self.agent.learn(observation, action, reward / self.market.customers, after)
            observation, total, self.frames = after, total + reward, self.frames + 1
        self.episode += 1
        self.rewards.append(total)

    def train(self, report):
        every = min(max(1, self.episodes // 100), 100)
        saved, pause = time.monotonic(), float(os.environ.get("SAVE_SECONDS", "20"))
        while self.episode < self.episodes and not self.stopped:
            self._play()
            if self.episode % every == 0 or self.episode == self.episodes:
                report(episode=self.episode, reward=round(float(np.mean(self.rewards)), 2),
                       epsilon=round(self.epsilon(), 4), frames=self.frames)
                self.rewards = []
            if time.monotonic() - saved > pause:
                self.save()
                saved, pause = time.monotonic(), float(os.environ.get("SAVE_SECONDS", "20"))

    def evaluate(self, choose):
        """Returns the mean reward per episode with this choice of actions."""
        market, totals = Market(self.config["market"]), []
        for seed in range(EVALUATED):
            observation, _ = market.reset([self.config["environment"]["seed"], 3, seed])
            ended = False
            totals.append(0.0)
            while not ended:
                observation, reward, _, ended, _ = market.step(choose(observation))
                totals[-1] += reward
        return round(float(np.mean(totals)), 2)


def main():
    with open(os.environ["TRAINYARD_CONFIG"]) as file:
        config = json.load(file)
    folder = os.environ["TRAINYARD_RESULTS"]
    os.makedirs(folder, exist_ok=True)
    known = {"started_by": os.environ.get("STARTED_BY", "")}
    for field, name in (("experiments", "GROUP"), ("run", "RUN"), ("attempt", "ATTEMPT"), ("host", "HOST")):
        known[field] = os.environ.get("TRAINYARD_" + name, "")
    known.update(gpus=os.environ.get("NVIDIA_VISIBLE_DEVICES", ""), started_at=now(), config=config)

    def note(**state):
        known.update(state)
        text = json.dumps(known, indent=2) + "\n"
        replace(os.path.join(folder, "run.json"), lambda file: file.write(text), "w")

    experiment = Experiment(config, folder)
    signal.signal(signal.SIGTERM, lambda *_: setattr(experiment, "stopped", True))
    begin = time.monotonic()
    resumed = experiment.resume()
    note(state="running", resumed_at_episode=experiment.episode if resumed else None)
    if resumed:
        say(resumed_at_episode=experiment.episode)

    # What earlier attempts reported after the checkpoint is reported again.
    path = os.path.join(folder, "metrics.jsonl")
    lines = lines_until(path, experiment.episode)
    replace(path, lambda file: file.writelines(lines), "w")
    metrics = open(path, "a")
    cut(os.path.join(folder, "events"), experiment.episode)
    events = Writer(os.path.join(folder, "events"))

    def report(**fields):
        say(**fields)
        metrics.write(json.dumps(fields) + "\n")
        metrics.flush()
        events.scalars(fields["episode"], reward=fields["reward"], epsilon=fields["epsilon"])

    experiment.train(report)
    experiment.save()
    if experiment.stopped:
        note(state="stopped", ended_at=now(), episode=experiment.episode)
        say(stopped_at_episode=experiment.episode)
        sys.exit(128 + signal.SIGTERM)

    agent = experiment.agent
    guess = np.random.default_rng([config["environment"]["seed"], 4])
    result = {
        "final_reward": experiment.evaluate(agent.best),
        "random_reward": experiment.evaluate(lambda _: int(guess.integers(experiment.market.actions))),
        "episodes": experiment.episode,
        "seconds": round(time.monotonic() - begin, 2),
    }
    weights = {name: getattr(agent, name) for name in agent.arrays[:1]}
    replace(os.path.join(folder, "weights.npz"), lambda file: np.savez(file, **weights), "wb")
    note(state="finished", ended_at=now(), result=result)
    say(**result)
    os.remove(os.path.join(folder, "checkpoint.npz"))  # last: without it, the next attempt would start over


if __name__ == "__main__":
    main()
