#!/usr/bin/env bash
# A browser's files: program start, history, cookies, cache, local storage and IndexedDB, while it
# goes through generated pages. It is closed half way and started again with the same profile.
# shellcheck disable=SC2034
source "$(dirname "$0")/common.sh"

IMAGE_SIZE=4G
MEMORY_MAX=1G
DIRTY_MAX=200M
PAGES=200
SECONDS_PER_SESSION=45
PORT=8123
SEED=42
CHROMIUM=${CHROMIUM:-/usr/lib/chromium}

prepare() {
    need "$CHROMIUM/chromium"
    cp -r "$CHROMIUM" chromium
    python3 "$HERE/pages.py" --pages "$PAGES" --seed "$SEED" site
}

browse() {
    local first=$1
    # Headless Chromium stays until it is told to go; as root it cannot build its sandbox.
    timeout --signal=TERM "$SECONDS_PER_SESSION" chromium/chromium --headless=new --no-sandbox \
        --disable-gpu --no-first-run --no-proxy-server --user-data-dir="$PWD/profile" \
        "http://127.0.0.1:$PORT/$first.html" >/dev/null 2>&1 || [ $? = 124 ]
}

run() {
    python3 -m http.server --bind 127.0.0.1 --directory site "$PORT" 2>"$SCRATCH/browser.log" &
    sleep 1
    browse 0
    browse $((PAGES / 3))
    kill %1
}

record
