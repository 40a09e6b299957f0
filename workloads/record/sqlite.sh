#!/usr/bin/env bash
# One SQLite database, first with a rollback journal and then with a write-ahead log: the two ways
# applications on desktops and phones use it.
# shellcheck disable=SC2034
source "$(dirname "$0")/common.sh"

IMAGE_SIZE=4G
MEMORY_MAX=192M
DIRTY_MAX=40M
ROWS=1500000
TRANSACTIONS=3000 # in each of the two modes
RATE=100          # transactions a second, at random times
SEED=42

prepare() {
    python3 "$HERE/sqlite.py" fill --rows "$ROWS" --seed "$SEED"
}

run() {
    python3 "$HERE/sqlite.py" use --journal delete --synchronous full \
        --rows "$ROWS" --transactions "$TRANSACTIONS" --rate "$RATE" --seed "$SEED"
    python3 "$HERE/sqlite.py" use --journal wal --synchronous normal \
        --rows "$ROWS" --transactions "$TRANSACTIONS" --rate "$RATE" --seed "$SEED"
}

record
