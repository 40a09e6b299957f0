#!/usr/bin/env bash
# Builds the program for other platforms and runs the tests of fingerprints there, under emulators:
# they must be the same on every platform. Prints a line per platform.
#
#   scripts/platforms.sh [TARGET...]
#
# Needs the standard library of each target (rustup target add TARGET), and from Debian:
# qemu-user-static and libc6-{arm64,armhf,s390x}-cross for processors, wine and wine64 for Windows.
# macOS is built and not run.
set -euo pipefail
cd "$(dirname "$0")/.."
targets=("$@")
if [ ${#targets[@]} = 0 ]; then
    targets=(x86_64-unknown-linux-musl aarch64-unknown-linux-gnu aarch64-unknown-linux-musl
        armv7-unknown-linux-gnueabihf s390x-unknown-linux-gnu x86_64-pc-windows-gnu
        aarch64-apple-darwin x86_64-apple-darwin)
fi

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
# Zig has a linker and the C library of each target.
python3 -m venv "$work/venv"
"$work/venv/bin/pip" install --quiet --disable-pip-version-check \
    cargo-zigbuild==0.24.0 ziglang==0.17.1
export PATH="$work/venv/bin:$PATH" CARGO_TARGET_DIR=${CARGO_TARGET_DIR:-target/platforms}

emulator() {
    case "$1" in
        "$(uname -m)"-*-linux-*) echo native ;;
        armv7-*-linux-*) echo "qemu-arm-static -L /usr/arm-linux-gnueabihf" ;;
        *-linux-*) echo "qemu-${1%%-*}-static -L /usr/${1%%-*}-linux-gnu" ;;
        *-windows-*) echo wine ;;
    esac
}

# Debian's wine does not have this library, in which Rust's standard library gets random numbers.
random_numbers() {
    cat >"$work/random.c" <<'END'
#include <windows.h>
BOOLEAN WINAPI SystemFunction036(PVOID buffer, ULONG length);
__declspec(dllexport) BOOL WINAPI ProcessPrng(PBYTE buffer, SIZE_T length) {
    return SystemFunction036(buffer, (ULONG)length);
}
END
    "$work/venv/bin/python" -m ziglang cc -target x86_64-windows-gnu -shared \
        -o "$work/bcryptprimitives.dll" "$work/random.c" -ladvapi32
    export WINEPATH="Z:${work//\//\\}" WINEPREFIX="$work/wine" WINEDEBUG=-all
}

failed=0
for target in "${targets[@]}"; do
    emulator=$(emulator "$target")
    tests=(test --locked --profile demo --target "$target" --package hybridsim
        --test golden --test catalogue)
    outcome="same fingerprints"
    if ! cargo-zigbuild "${tests[@]}" --no-run >"$work/log" 2>&1; then
        outcome="not built"
    elif [ -z "$emulator" ]; then
        outcome="built, not run"
    else
        if [ "$emulator" = wine ]; then
            random_numbers
        fi
        if [ "$emulator" != native ]; then
            name=$(tr a-z- A-Z_ <<<"$target")
            export "CARGO_TARGET_${name}_RUNNER=$emulator"
        fi
        cargo-zigbuild "${tests[@]}" >"$work/log" 2>&1 || outcome="DIFFERS OR FAILED"
    fi
    case "$outcome" in
        not* | DIFFERS*)
            tail -n 30 "$work/log" >&2
            failed=1
            ;;
    esac
    printf '%-32s %-22s %s\n' "$target" "${emulator%% *}" "$outcome"
done
exit $failed
