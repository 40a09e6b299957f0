#!/bin/sh
# Prints the table of speeds; arguments select cases (see scripts/bench.py).
set -eu
cd "$(dirname "$0")/.."
cargo build --profile dist --locked --quiet --package hybridsim
exec python3 scripts/bench.py "${CARGO_TARGET_DIR:-target}/dist/hybridsim" "$@"
