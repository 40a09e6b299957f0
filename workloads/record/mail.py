"""A mail server's file traffic, after Postmark, with the fsync calls a mail server makes.

Each worker owns some mailboxes (directories of message files). `fill` delivers the first messages;
`serve` then does transactions: one of read or append, followed by one of deliver or delete. A
delivery writes a temporary file, flushes it, renames it into place and flushes the directory, as
maildir servers do; an append flushes the file. Transactions start at exponentially distributed
times, or as soon as the worker is free.
"""

import argparse
import os
import random
import time
from multiprocessing import Process

MAILBOXES = 25  # per worker
SMALLEST, LARGEST = 500, 200_000  # bytes of a message, logarithmically uniform
BLOCK = os.urandom(LARGEST)


class Worker:
    def __init__(self, number, seed):
        self.random = random.Random(f"{seed}/{number}")
        self.boxes = [f"worker{number}/box{i}" for i in range(MAILBOXES)]
        self.messages = []
        self.delivered = 0
        for box in self.boxes:
            os.makedirs(box, exist_ok=True)

    def size(self):
        return int(SMALLEST * (LARGEST / SMALLEST) ** self.random.random())

    def new_name(self):
        self.delivered += 1
        return f"{self.random.choice(self.boxes)}/{self.delivered:08}"

    def deliver(self, durable=True):
        name = self.new_name()
        with open(name + ".new", "wb") as file:
            file.write(BLOCK[: self.size()])
            if durable:
                flush(file)
        os.rename(name + ".new", name)
        if durable:
            flush_directory(os.path.dirname(name))
        self.messages.append(name)

    def pick(self):
        """The index of a message; recent ones are wanted more often."""
        age = int(self.random.paretovariate(0.3)) - 1
        if age < len(self.messages) and self.random.random() < 0.5:
            return len(self.messages) - 1 - age
        return self.random.randrange(len(self.messages))

    def read(self):
        with open(self.messages[self.pick()], "rb") as file:
            file.read()

    def append(self):
        with open(self.messages[self.pick()], "ab") as file:
            file.write(BLOCK[: self.size() // 4])
            flush(file)

    def delete(self):
        os.unlink(self.messages.pop(self.pick()))

    def fill(self, count):
        for _ in range(count):
            self.deliver(durable=False)

    def serve(self, present, transactions, rate):
        # The same seed draws the same deliveries again: they say which messages there are.
        for _ in range(present):
            self.messages.append(self.new_name())
            self.size()
        due = time.monotonic()
        for _ in range(transactions):
            due += self.random.expovariate(rate)
            time.sleep(max(0, due - time.monotonic()))
            if self.random.random() < 0.7:
                self.read()
            else:
                self.append()
            if self.random.random() < 0.5 or len(self.messages) < 2:
                self.deliver()
            else:
                self.delete()


def flush(file):
    file.flush()
    os.fsync(file.fileno())


def flush_directory(path):
    directory = os.open(path, os.O_RDONLY)
    os.fsync(directory)
    os.close(directory)


def work(number, options):
    worker = Worker(number, options.seed)
    messages = options.messages // options.workers
    if options.phase == "fill":
        worker.fill(messages)
    else:
        transactions = options.transactions // options.workers
        worker.serve(messages, transactions, options.rate / options.workers)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("phase", choices=["fill", "serve"])
    parser.add_argument("--workers", type=int, required=True)
    parser.add_argument("--messages", type=int, required=True)
    parser.add_argument("--transactions", type=int, default=0)
    parser.add_argument("--rate", type=float, default=100.0, help="transactions a second")
    parser.add_argument("--seed", type=int, required=True)
    options = parser.parse_args()
    workers = [Process(target=work, args=(n, options)) for n in range(options.workers)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    if any(worker.exitcode for worker in workers):
        raise SystemExit("a worker failed")


if __name__ == "__main__":
    main()
