#!/usr/bin/env bash
# Fuzzes what takes bytes from outside, guided by coverage: `scripts/fuzz.sh [SECONDS [TARGET...]]`.
# Needs a nightly compiler (rustup toolchain install nightly); installs cargo-fuzz into target/.
# A crash is kept in fuzz/artifacts with the command that repeats it. With KEEP=1 the inputs that
# reach different code become the corpus that the tests run.
set -euo pipefail
cd "$(dirname "$0")/.."
seconds=${1:-60}
shift || true
targets=("$@")
if [ ${#targets[@]} -eq 0 ]; then
    for file in fuzz/fuzz_targets/*.rs; do
        targets+=("$(basename "$file" .rs)")
    done
fi
# Longer inputs take longer, and no parser needs them.
bytes_max=8192
cargo install --quiet --locked --root target/cargo-fuzz cargo-fuzz@0.13.2
PATH="$PWD/target/cargo-fuzz/bin:$PATH"
cargo run --quiet --locked --package hybridsim-fuzz --example seeds -- fuzz/corpus
for target in "${targets[@]}"; do
    kept=tools/fuzz/corpus/$target.tar.zst
    [ ! -f "$kept" ] || tar --zstd -xf "$kept" -C "fuzz/corpus/$target"
    cargo +nightly fuzz run --target-dir target/fuzz "$target" -- \
        -max_total_time="$seconds" -timeout=20 -rss_limit_mb=2048 -max_len=$bytes_max \
        -print_final_stats=1
    if [ -n "${KEEP:-}" ]; then
        cargo +nightly fuzz cmin --target-dir target/fuzz "$target" -- -max_len=$bytes_max
        tar --zstd -cf "$kept" --owner=0 --group=0 --mtime=@0 --sort=name \
            -C "fuzz/corpus/$target" .
    fi
done
