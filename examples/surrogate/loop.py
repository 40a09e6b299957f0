"""Prompts that load key-value blocks from a drive, in SimPy: by table and by simulation.

    hybridsim surrogate drive.toml --states fresh --sizes 64KiB --read-shares 1 --out drive.json
    python loop.py drive.json fresh drive.toml

Prompts arrive at random. Each loads 64 blocks of 64 KiB; the storage engine has at most 16 reads
outstanding. Prints the mean time that a load takes with the drive as a table, and with the drive
itself as `hybridsim.Session` steps it: `drive.toml` has to prepare the drive as the state does.
"""

import random
import sys

import hybridsim
import simpy
from surrogate import Surrogate

BLOCK, BLOCKS, DEPTH, PROMPTS = 65536, 64, 16, 300


class Table:
    """The drive as a table: the latency depends on how many reads are outstanding."""

    def __init__(self, env, surrogate):
        self.env, self.surrogate, self.outstanding = env, surrogate, 0
        self.random = random.Random(2)

    def read(self, offset):
        self.outstanding += 1
        latency = self.surrogate.closed("read", 1, BLOCK, self.outstanding)
        yield self.env.timeout(1000 * latency.quantile(self.random.random()))
        self.outstanding -= 1


class Drive:
    """The drive itself: an event of the queue that moves whenever its next event does."""

    def __init__(self, env, scenario):
        self.env, self.session = env, hybridsim.Session(scenario)
        self.ended, self.submitted = {}, env.event()
        env.process(self.advance())

    def read(self, offset):
        at = round(self.env.now)
        number = self.session.submit("read", offset, BLOCK, at_ns=at).number
        self.ended[number] = self.env.event()
        self.submitted.succeed()
        self.submitted = self.env.event()
        yield self.ended[number]

    def advance(self):
        while True:
            next_event = self.session.next_event()
            if next_event is None:
                yield self.submitted
                continue
            wait = self.env.timeout(max(0, next_event - self.env.now))
            yield wait | self.submitted
            for completion in self.session.advance_to(round(self.env.now)):
                self.ended.pop(completion.number).succeed()


def run(make_drive, capacity, prompts_per_second):
    """Returns the mean time of a load in microseconds."""
    env = simpy.Environment()  # of nanoseconds
    drive, engine = make_drive(env), simpy.Resource(env, DEPTH)
    choice, times = random.Random(1), []

    def block(offset):
        with engine.request() as slot:
            yield slot
            yield from drive.read(offset)

    def prompt():
        began = env.now
        offsets = [choice.randrange(capacity // BLOCK) * BLOCK for _ in range(BLOCKS)]
        yield env.all_of([env.process(block(offset)) for offset in offsets])
        times.append(env.now - began)

    def arrivals():
        for _ in range(PROMPTS):
            yield env.timeout(choice.expovariate(prompts_per_second / 1e9))
            env.process(prompt())

    env.process(arrivals())
    env.run()
    return sum(times) / len(times) / 1000


def main():
    """Runs both and prints them."""
    tables, state, scenario = sys.argv[1:]
    surrogate = Surrogate(tables, state)
    capacity = hybridsim.Session(scenario).capacity_bytes
    # Half of what the drive can serve.
    rate = surrogate.iops(1, BLOCK, DEPTH) / BLOCKS / 2
    table = run(lambda env: Table(env, surrogate), capacity, rate)
    drive = run(lambda env: Drive(env, scenario), capacity, rate)
    print(f"mean load: {table:.1f} us by table, {drive:.1f} us by the drive")
    print(f"difference {100 * (table / drive - 1):+.1f} %")


if __name__ == "__main__":
    main()
