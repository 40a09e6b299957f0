#!/usr/bin/env bash
# Copy photos, songs and videos from one folder to another on the same disk: long sequential reads
# and writes whose positions alternate.
# shellcheck disable=SC2034
source "$(dirname "$0")/common.sh"

IMAGE_SIZE=8G
MEMORY_MAX=512M
DIRTY_MAX=100M
SEED=42
# Files of each kind and their sizes in KiB, from and to.
PHOTOS=(250 2000 8000)
SONGS=(150 3000 12000)
VIDEOS=(3 200000 400000)

make_files() {
    local kind=$1 count=$2 from=$3 to=$4 i kib
    mkdir -p "library/$kind"
    for ((i = 0; i < count; i++)); do
        kib=$((from + (RANDOM * 32768 + RANDOM) % (to - from)))
        head -c "${kib}K" /dev/urandom >"library/$kind/$i"
    done
}

prepare() {
    RANDOM=$SEED
    make_files photos "${PHOTOS[@]}"
    make_files songs "${SONGS[@]}"
    make_files videos "${VIDEOS[@]}"
}

run() {
    cp -r library copy
}

record
