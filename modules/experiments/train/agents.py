"""Two agents that learn which action is best in which state: Q-learning with a table, and DQN with a network."""

import numpy as np

BINS = 5  # per component of an observation, in the table


class QTable:
    """Q-learning: a row for each bin of the observations, a column for each action."""

    arrays = ("values",)

    def __init__(self, parts, actions, learning, random):
        self.random, self.gamma, self.rate = random, learning["gamma"], learning["learning_rate"]
        self.parts, self.actions = parts, actions
        self.values = np.zeros((BINS**parts, actions))

    def _row(self, observation):
        row = 0
        for part in observation:
            row = row * BINS + min(int(part * BINS), BINS - 1)
        return row

    def best(self, observation):
        return int(np.argmax(self.values[self._row(observation)]))

    def learn(self, observation, action, reward, after):
        row = self._row(observation)
        target = reward + self.gamma * self.values[self._row(after)].max()
        self.values[row, action] += self.rate * (target - self.values[row, action])


class DQN:
    """Deep Q-learning: a network of two hidden layers, a replay buffer, and a target network that follows it."""

    arrays = ("weights", "target", "moments", "seen", "updates", "states", "actions_taken", "rewards", "followers")

    def __init__(self, parts, actions, learning, random):
        self.random, self.gamma, self.rate = random, learning["gamma"], learning["learning_rate"]
        self.actions, self.batch = actions, learning["batch_size"]
        self.size, self.begin = learning["replay_size"], learning["replay_start"]
        self.follow = learning["target_frames"]

        units = learning["hidden_units"]
        self.shapes = [(parts, units), (units,), (units, units), (units,), (units, actions), (actions,)]
        self.weights = np.concatenate([
            (random.normal(0, (2 / shape[0]) ** 0.5, shape) if len(shape) == 2 else np.zeros(shape)).ravel()
            for shape in self.shapes
        ]).astype(np.float32)
        self.target = self.weights.copy()
        self.moments = np.zeros((2, self.weights.size), dtype=np.float32)
        self.seen = self.updates = np.array(0)

        self.states = np.zeros((self.size, parts), dtype=np.float32)
        self.followers = np.zeros((self.size, parts), dtype=np.float32)
        self.actions_taken = np.zeros(self.size, dtype=np.int64)
        self.rewards = np.zeros(self.size, dtype=np.float32)

    def _layers(self, flat):
        at, layers = 0, []
        for shape in self.shapes:
            count = int(np.prod(shape))
            layers.append(flat[at:at + count].reshape(shape))
            at += count
        return layers

    def _forward(self, flat, inputs):
        w1, b1, w2, b2, w3, b3 = self._layers(flat)
        hidden1 = np.maximum(inputs @ w1 + b1, 0)
        hidden2 = np.maximum(hidden1 @ w2 + b2, 0)
        return hidden1, hidden2, hidden2 @ w3 + b3

    def best(self, observation):
        return int(np.argmax(self._forward(self.weights, observation[None])[2][0]))

    def learn(self, observation, action, reward, after):
        at = int(self.seen) % self.size
        self.states[at], self.actions_taken[at] = observation, action
        self.rewards[at], self.followers[at] = reward, after
        self.seen = self.seen + 1
        if self.seen >= self.begin:
            self._update()
        if self.seen % self.follow == 0:
            self.target = self.weights.copy()

    def _update(self):
        chosen = self.random.integers(0, min(int(self.seen), self.size), self.batch)
        inputs, taken, each = self.states[chosen], self.actions_taken[chosen], np.arange(self.batch)
        aims = self.rewards[chosen] + self.gamma * self._forward(self.target, self.followers[chosen])[2].max(1)

        hidden1, hidden2, values = self._forward(self.weights, inputs)
        slope = np.zeros_like(values)
        slope[each, taken] = np.clip(values[each, taken] - aims, -1, 1) / self.batch  # of the Huber loss
        _, _, w2, _, w3, _ = self._layers(self.weights)
        slope2 = (slope @ w3.T) * (hidden2 > 0)
        slope1 = (slope2 @ w2.T) * (hidden1 > 0)
        gradient = np.concatenate([
            part.ravel()
            for layer, back in ((inputs, slope1), (hidden1, slope2), (hidden2, slope))
            for part in (layer.T @ back, back.sum(0))
        ])

        # Adam
        self.updates = self.updates + 1
        turn = int(self.updates)
        mean, square = self.moments
        mean += 0.1 * (gradient - mean)
        square += 0.001 * (gradient * gradient - square)
        self.weights -= self.rate * (mean / (1 - 0.9**turn)) / (np.sqrt(square / (1 - 0.999**turn)) + 1e-8)


AGENTS = {"q_learning": QTable, "dqn": DQN}
