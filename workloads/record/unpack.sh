#!/usr/bin/env bash
# Unpack a source tree: one compressed file read, tens of thousands of small files written.
# shellcheck disable=SC2034
source "$(dirname "$0")/common.sh"

IMAGE_SIZE=4G
MEMORY_MAX=512M
DIRTY_MAX=100M
SOURCE_PACKAGE=linux-source-6.1

prepare() {
    linux_source "$SOURCE_PACKAGE" tree.tar.xz
}

run() {
    tar -xf tree.tar.xz
}

record
