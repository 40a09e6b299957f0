#!/usr/bin/env bash
# Fuzzes what takes bytes from outside, guided by coverage: `scripts/fuzz.sh [SECONDS [TARGET...]]`.
# Needs a nightly compiler (rustup toolchain install nightly); installs cargo-fuzz into target/.
# A crash is kept in fuzz/artifacts with the command that repeats it.
set -euo pipefail
cd "$(dirname "$0")/.."
seconds=${1:-60}
shift || true
targets=("$@")
[ ${#targets[@]} -gt 0 ] || targets=(client trace scenario)
cargo install --quiet --locked --root target/cargo-fuzz cargo-fuzz@0.13.2
cargo run --quiet --locked --package hybridsim-fuzz --example seeds -- fuzz/corpus
mkdir -p fuzz/corpus/scenario
cp examples/*.toml fuzz/corpus/scenario/
for target in "${targets[@]}"; do
    PATH="$PWD/target/cargo-fuzz/bin:$PATH" cargo +nightly fuzz run --target-dir target/fuzz "$target" -- \
        -max_total_time="$seconds" -timeout=20 -rss_limit_mb=2048 -max_len=8192 -print_final_stats=1
done
