"""Latencies of a storage system, from the tables that `hybridsim surrogate` wrote.

    drive = Surrogate("drive.json", "steady")
    drive.closed("read", read_share=1, size=65536, depth=16).mean  # microseconds
    latency = drive.open("write", read_share=0.7, size=4096, iops=20_000)
    latency.quantile(0.99), latency.quantile(random.random())  # the second draws one
    drive.iops(read_share=1, size=65536, depth=16)

A load outside the tables is a ValueError.
"""

import bisect
import json
import math
import sys

AXES = ("read_share", "bytes", "load")


class Latency:
    """A distribution in microseconds: quantiles, and the means of the bands between them."""

    def __init__(self, probabilities, values):
        self.probabilities, count = probabilities, len(probabilities)
        self.quantiles, self.means = values[:count], values[count:]

    @property
    def mean(self):
        p = self.probabilities
        return sum((p[i + 1] - p[i]) * mean for i, mean in enumerate(self.means))

    def quantile(self, probability):
        """The latency at a probability; at a random number, one drawn at random."""
        p, probability = self.probabilities, min(max(probability, 0.0), 1.0)
        i = min(max(bisect.bisect_left(p, probability), 1), len(p) - 1)
        least, most, mean = self.quantiles[i - 1], self.quantiles[i], self.means[i - 1]
        power = max(most - mean, 0.0) / max(mean - least, sys.float_info.min)
        return least + (most - least) * ((probability - p[i - 1]) / (p[i] - p[i - 1])) ** power


class Surrogate:
    """The tables of one state of a system."""

    def __init__(self, path, state):
        with open(path) as file:
            document = json.load(file)
        if document["format"] != "hybridsim-surrogate" or document["version"] != 1:
            raise ValueError(f"{path}: not version 1 of hybridsim-surrogate")
        self.probabilities, self.tables = document["probabilities"], document["states"][state]

    def closed(self, op, read_share, size, depth):
        """Latency of requests of `size` bytes, `depth` of them outstanding."""
        return self._at("closed", op, (read_share, size, depth), math.log)

    def iops(self, read_share, size, depth):
        """Requests per second of such a load, by Little's law."""
        shares = {"read": read_share, "write": 1 - read_share}
        used = [(share, op) for op, share in shares.items() if share > 0]
        means = (share * self.closed(op, read_share, size, depth).mean for share, op in used)
        return depth * 1e6 / sum(means)

    def open(self, op, read_share, size, iops):
        """Latency of requests of `size` bytes that arrive at random, `iops` per second."""
        load = iops / self.iops(read_share, size, self.tables["closed"]["load"][-1])
        return self._at("open", op, (read_share, size, load), lambda load: -math.log1p(-load))

    def _at(self, loop, op, load, axis):
        table, corners = self.tables[loop], [(0, 1.0)]
        for name, at, scale in zip(AXES, load, (float, math.log, axis), strict=True):
            knots = table[name]
            near = min(max(at, knots[0]), knots[-1])
            if not abs(at - near) <= 1e-9 * near:  # rounding, of rates
                raise ValueError(f"{name} {at:g} is not between {knots[0]:g} and {knots[-1]:g}")
            at = near
            i = bisect.bisect_left(knots, at)
            sides = [(i, 1.0)]
            if knots[i] != at:
                below, above = scale(knots[i - 1]), scale(knots[i])
                part = (scale(at) - below) / (above - below)
                sides = [(i, part), (i - 1, 1 - part)]
            corners = [(c * len(knots) + k, w * part) for c, w in corners for k, part in sides]
        if any(table[op][corner] is None for corner, _ in corners):
            raise ValueError(f"there is too little to {op} at a read share of {load[0]:g}")
        knots = zip(*(table[op][corner] for corner, _ in corners), strict=True)
        weights = [weight for _, weight in corners]
        values = [math.prod(map(pow, values, weights)) for values in knots]
        return Latency(self.probabilities, values)
