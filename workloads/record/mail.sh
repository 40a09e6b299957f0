#!/usr/bin/env bash
# A mail server's folders, after Postmark: small files are delivered, read, appended to and deleted,
# and whatever was delivered is on disk before the next step. Messages arrive at random, at a fixed
# mean rate, so that the recorded arrival times do not just show how fast this machine is.
# shellcheck disable=SC2034
source "$(dirname "$0")/common.sh"

IMAGE_SIZE=4G
MEMORY_MAX=128M
DIRTY_MAX=25M
WORKERS=4
MESSAGES=60000
TRANSACTIONS=12000
RATE=200 # transactions a second, of all workers together
SEED=42

prepare() {
    python3 "$HERE/mail.py" fill --workers "$WORKERS" --messages "$MESSAGES" --seed "$SEED"
}

run() {
    python3 "$HERE/mail.py" serve --workers "$WORKERS" --messages "$MESSAGES" --seed "$SEED" \
        --transactions "$TRANSACTIONS" --rate "$RATE"
}

record
