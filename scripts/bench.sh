#!/usr/bin/env bash
# Whole runs first, then the rooms alone: reading traces and generating workloads.
set -euo pipefail
cd "$(dirname "$0")/.."
cargo build --release --locked --quiet --package hybridsim
python3 scripts/bench.py "$@"
if [ $# -eq 0 ]; then
    echo
    cargo bench --locked --quiet --package hybridsim-workload
fi
