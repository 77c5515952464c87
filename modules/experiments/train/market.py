"""A market of a circular economy with one seller: products are sold new, come back used, and are sold refurbished.

In each period the seller sets two prices. Each customer buys a new product, a refurbished one from storage, or
nothing. Some owners then return their product, which costs nothing and fills the storage, or throw it away.
The interface is that of Gymnasium: reset, and step with (observation, reward, terminated, truncated, info).
"""

import numpy as np

USED_QUALITY = 0.55  # of a refurbished product, relative to a new one
PART_SHARE = 0.1  # of the owners, per period
RETURN_SHARE = 0.6  # of those who part with their product; the others throw it away


class Market:
    def __init__(self, settings, seed=0):
        self.storage_size = settings["max_storage"]
        self.periods = settings["episode_length"]
        self.max_price = settings["max_price"]
        self.quality = settings["max_quality"]
        self.customers = settings["customers"]
        self.production_price = settings["production_price"]
        self.storage_cost = settings["storage_cost"]
        self.random = np.random.default_rng(seed)
        self.actions = self.max_price**2  # an integer price from 1 on for each kind of product
        self.most_owned = self.customers * self.periods  # as if all customers bought a new one each time

    def reset(self, seed=None):
        if seed is not None:
            self.random = np.random.default_rng(seed)
        self.period, self.stored, self.owned = 0, 0, 5 * self.customers
        return self._observation(), {}

    def _observation(self):
        return np.array([self.stored / self.storage_size, self.owned / self.most_owned], dtype=np.float32)

    def prices(self, action):
        """Returns the prices of a new and of a refurbished product."""
        return 1 + action // self.max_price, 1 + action % self.max_price

    def choices(self, price_new, price_used):
        """Returns the probabilities that a customer buys a new product, a refurbished one, and nothing."""
        utilities = []
        for quality, price in ((self.quality, price_new), (USED_QUALITY * self.quality, price_used)):
            bearable = quality / 6  # few pay more
            utilities.append(quality / 5 / price - np.exp(min(price - bearable, 50)))
        weights = np.exp(np.array([*utilities, 1.0]) - max(*utilities, 1.0))
        return weights / weights.sum()

    def step(self, action):
        price_new, price_used = self.prices(action)
        new, used, _ = self.random.multinomial(self.customers, self.choices(price_new, price_used))
        used = min(used, self.stored)  # customers who find the storage empty get none
        self.stored -= used
        self.owned = min(self.owned + new + used, self.most_owned)

        parted = self.random.binomial(self.owned, PART_SHARE)
        self.owned -= parted
        self.stored = min(self.stored + self.random.binomial(parted, RETURN_SHARE), self.storage_size)

        profit = new * (price_new - self.production_price) + used * price_used - self.storage_cost * self.stored
        self.period += 1
        sold = {"new": int(new), "used": int(used)}
        return self._observation(), float(profit), False, self.period >= self.periods, sold
