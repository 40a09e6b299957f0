#!/usr/bin/env bash
# Compile a Rust program and its dependencies from a cold start, then change it and compile again.
# Compiler, sources and output are all on the recorded device; only the C linker is not.
# shellcheck disable=SC2034
source "$(dirname "$0")/common.sh"

IMAGE_SIZE=6G
MEMORY_MAX=768M
DIRTY_MAX=150M
JOBS=2
# Each line is the arguments of one `cargo add`; the newest compatible version is taken.
CRATES="axum@0.7.9
chrono@0.4.38
clap@4.5.20 --features derive
image@0.25.5 --no-default-features --features jpeg,png
rayon@1.10.0
regex@1.11.1
serde@1.0.214 --features derive
serde_json@1.0.132
tokio@1.41.0 --features full
toml@0.8.19
tracing-subscriber@0.3.18"

prepare() {
    need cargo rustc cc
    cp -r "$(rustc --print sysroot)" toolchain
    rm -rf toolchain/share
    export CARGO_HOME=$PWD/cargo
    PATH=$PWD/toolchain/bin:$PATH
    cargo new -q --vcs none program
    cd program
    xargs -L 1 cargo add -q <<<"$CRATES"
    mkdir .cargo
    cargo vendor -q >.cargo/config.toml
}

run() {
    export TMPDIR=$PWD
    export CARGO_HOME=$PWD/cargo
    PATH=$PWD/toolchain/bin:$PATH
    cd program
    cargo build -q --offline -j "$JOBS"
    echo '// changed' >>src/main.rs
    cargo build -q --offline -j "$JOBS"
    cargo check -q --offline -j "$JOBS"
}

record
