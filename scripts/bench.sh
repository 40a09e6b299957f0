#!/bin/sh
# Speed of everything, as one table: see scripts/bench.py. Arguments go there: names of cases.
set -eu
cd "$(dirname "$0")/.."
cargo build --profile dist --locked --quiet --package hybridsim
exec python3 scripts/bench.py "${CARGO_TARGET_DIR:-target}/dist/hybridsim" "$@"
