"""Inserts, updates, look-ups and range scans on one SQLite database, in small transactions."""

import argparse
import random
import sqlite3
import time

DATABASE = "app.db"
CACHE_KIB = 2000  # SQLite's default
STATEMENTS = 6  # per transaction
SCHEMA = """
    create table item (id integer primary key, owner integer, changed integer, body blob);
    create index item_owner on item (owner, changed);
"""


def body(rng):
    return rng.randbytes(rng.randrange(50, 500))


def fill(options, rng):
    database = sqlite3.connect(DATABASE)
    database.executescript(SCHEMA)
    rows = ((i, rng.randrange(10_000), i, body(rng)) for i in range(options.rows))
    database.executemany("insert into item values (?, ?, ?, ?)", rows)
    database.commit()


def statement(cursor, rng, rows, now):
    """One statement: 45 % look-ups, 10 % scans, 25 % updates, 15 % inserts, 5 % deletes."""
    kind = rng.random()
    # Half of all accesses go to the newest tenth.
    oldest = rows * 9 // 10 if rng.random() < 0.5 else 0
    item = rng.randrange(oldest, rows)
    if kind < 0.45:
        cursor.execute("select * from item where id = ?", (item,)).fetchall()
    elif kind < 0.55:
        owner = rng.randrange(10_000)
        cursor.execute(
            "select * from item where owner = ? order by changed desc limit 20", (owner,)
        ).fetchall()
    elif kind < 0.80:
        cursor.execute("update item set changed = ?, body = ? where id = ?", (now, body(rng), item))
    elif kind < 0.95:
        cursor.execute(
            "insert into item (owner, changed, body) values (?, ?, ?)",
            (rng.randrange(10_000), now, body(rng)),
        )
    else:
        cursor.execute("delete from item where id = ?", (item,))


def use(options, rng):
    database = sqlite3.connect(DATABASE, isolation_level=None)
    database.execute(f"pragma journal_mode = {options.journal}")
    database.execute(f"pragma synchronous = {options.synchronous}")
    database.execute(f"pragma cache_size = -{CACHE_KIB}")
    cursor = database.cursor()
    due = time.monotonic()
    for transaction in range(options.transactions):
        due += rng.expovariate(options.rate)
        time.sleep(max(0, due - time.monotonic()))
        cursor.execute("begin")
        for _ in range(STATEMENTS):
            statement(cursor, rng, options.rows, options.rows + transaction)
        cursor.execute("commit")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("phase", choices=["fill", "use"])
    parser.add_argument("--rows", type=int, required=True)
    parser.add_argument("--transactions", type=int, default=0)
    parser.add_argument("--rate", type=float, default=100.0, help="transactions a second")
    parser.add_argument("--journal", default="delete")
    parser.add_argument("--synchronous", default="full")
    parser.add_argument("--seed", type=int, required=True)
    options = parser.parse_args()
    rng = random.Random(f"{options.seed}/{options.phase}/{options.journal}")
    (fill if options.phase == "fill" else use)(options, rng)


if __name__ == "__main__":
    main()
