#!/usr/bin/env bash
# Builds a wheel with the Python package and the program, which installs on any Linux since glibc
# 2.17, and installs and runs it in a clean environment without cargo.
#
#   scripts/wheel.sh [OUT]     OUT is dist by default
#
# PROFILE=release builds faster; WHEEL_TARGET=aarch64-unknown-linux-gnu or
# x86_64-unknown-linux-musl need the target's standard library (rustup target add).
set -euo pipefail
cd "$(dirname "$0")/.."
out=${1:-dist}
profile=${PROFILE:-dist}
target=${WHEEL_TARGET:-x86_64-unknown-linux-gnu}
case "$target" in
    *-musl) compatibility=musllinux_1_2 glibc= ;;
    *) compatibility=manylinux2014 glibc=.2.17 ;;
esac

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/build"
# Zig links against the symbols of an old glibc; it is installed as a wheel.
"$work/build/bin/pip" install --quiet --disable-pip-version-check \
    "maturin[zig]==1.16.0" cargo-zigbuild==0.24.0
export PATH="$work/build/bin:$PATH"
maturin build --locked --profile "$profile" --zig \
    --target "$target" --compatibility "$compatibility" --out "$work"
cargo-zigbuild rustc --locked --profile "$profile" --package hybridsim --bin hybridsim \
    --target "$target$glibc" -- -C strip=symbols
program=${CARGO_TARGET_DIR:-target}/$target/$profile/hybridsim
wheel=$(scripts/wheel_program.sh "$work"/hybridsim-*.whl "$program" "$out")
echo "built $wheel ($(du -h "$wheel" | cut -f1))"

if [ "$target" = "$(uname -m)-unknown-linux-gnu" ]; then
    scripts/try_wheel.sh "$wheel"
fi
