# shellcheck shell=bash
# What every recording has in common: a fresh ext4 file system on a loop device, a block trace of
# that device, and a clean-up that runs whatever happens. A workload sets its parameters, defines
# `prepare` (not recorded) and `run` (recorded), and calls `record`. Both functions run with the
# mounted file system as working directory.
#
# The events come from the kernel's `blk` tracer, read as binary from tracefs. That is the same
# instrumentation and the same record format as blktrace(8) uses, so blkparse, btt and fio read the
# result; but it also works where kernel lockdown forbids blktrace its relay files.

set -euo pipefail

HERE=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
NAME=$(basename "$0" .sh)

# Where results go, and where the image and downloads live. The image should not be on tmpfs: the
# latencies would then be those of memory.
OUT=$(realpath -m "${OUT:-recordings}")
SCRATCH=$(realpath -m "${SCRATCH:-/var/tmp/hybridsim-record}")

# Defaults, overridden by the workload. The memory limit is what makes reads reach the device: on a
# machine with much memory the page cache would otherwise swallow nearly all of them. The limit on
# dirty pages belongs to it (20 % of memory is the kernel's default), and 128 KiB is the read-ahead
# of an ordinary disk, while a loop device may start with several megabytes.
IMAGE_SIZE=4G
MEMORY_MAX=1G
DIRTY_MAX=200M
READ_AHEAD_KB=128
MKFS_OPTIONS=(-b 4096 -E "lazy_itable_init=0,lazy_journal_init=0")

TRACING=/sys/kernel/tracing
BUFFER_KB=65536
LOOP='' QUEUE='' CGROUP='' TRACE_READY='' READERS=()

die() {
    echo "$NAME: $*" >&2
    exit 1
}

need() {
    local tool
    for tool in "$@"; do
        command -v "$tool" >/dev/null || die "needs $tool"
    done
}

say() {
    echo "$NAME: $*" >&2
}

make_device() {
    IMAGE=$SCRATCH/$NAME.img
    MOUNT=$SCRATCH/$NAME.mnt
    mkdir -p "$OUT" "$SCRATCH" "$MOUNT"
    chmod 755 "$SCRATCH" "$MOUNT"
    rm -f "$IMAGE"
    truncate -s "$IMAGE_SIZE" "$IMAGE"
    # Lazy initialisation would write inode tables in the background, into the recording.
    mkfs.ext4 -q -F "${MKFS_OPTIONS[@]}" "$IMAGE"
    # Direct I/O keeps the page cache of the backing file out of the latencies.
    LOOP=$(losetup --find --show --direct-io=on "$IMAGE")
    QUEUE=/sys/block/${LOOP#/dev/}
    echo "$READ_AHEAD_KB" >"$QUEUE/queue/read_ahead_kb"
    mount -t ext4 "$LOOP" "$MOUNT"
}

# A cold start: nothing of the file system is left in memory.
remount_cold() {
    sync -f "$MOUNT"
    umount "$MOUNT"
    echo 3 >/proc/sys/vm/drop_caches
    mount -t ext4 "$LOOP" "$MOUNT"
}

limit_memory() {
    if [ -d /sys/fs/cgroup/memory ]; then # version 1: below our own group, whichever that is
        CGROUP=/sys/fs/cgroup/memory$(sed -n 's/^[0-9]*:memory://p' /proc/self/cgroup)/$NAME.record
        mkdir -p "$CGROUP"
        numfmt --from=iec "$MEMORY_MAX" >"$CGROUP/memory.limit_in_bytes"
    else # version 2
        CGROUP=/sys/fs/cgroup/$NAME.record
        mkdir -p "$CGROUP"
        numfmt --from=iec "$MEMORY_MAX" >"$CGROUP/memory.max"
    fi
    # Per device, so that nothing else on the machine is throttled (Linux 6.2 and later).
    local bdi
    bdi=/sys/class/bdi/$(cat "$QUEUE/dev")
    if [ -w "$bdi/max_bytes" ]; then
        numfmt --from=iec "$DIRTY_MAX" >"$bdi/max_bytes"
        echo 1 >"$bdi/strict_limit"
    else
        say "this kernel cannot limit dirty pages per device; writes will come in larger bursts"
    fi
}

start_trace() {
    mountpoint -q "$TRACING" || mount -t tracefs none "$TRACING"
    grep -qw blk "$TRACING/available_tracers" || die "kernel built without CONFIG_BLK_DEV_IO_TRACE"
    [ "$(cat "$TRACING/current_tracer")" = nop ] || die "another tracer is running"
    OLD_CLOCK=$(sed 's/.*\[\(.*\)\].*/\1/' "$TRACING/trace_clock")
    OLD_BUFFER=$(grep -o '^[0-9]*' "$TRACING/buffer_size_kb")
    TRACE_READY=yes
    # The default clock is per processor and may step back between two of them.
    echo mono >"$TRACING/trace_clock"
    echo "$BUFFER_KB" >"$TRACING/buffer_size_kb"
    echo 16384 >"$TRACING/saved_cmdlines_size"
    echo 1 >"$TRACING/tracing_on"
    echo blk >"$TRACING/current_tracer"
    echo bin >"$TRACING/trace_options"
    echo nocontext-info >"$TRACING/trace_options"
    local cpu
    rm -f "$OUT/$NAME".blktrace.*
    for cpu in "$TRACING"/per_cpu/cpu*; do
        cat "$cpu/trace_pipe" >"$OUT/$NAME.blktrace.${cpu##*cpu}" &
        READERS+=($!)
    done
    echo 1 >"$QUEUE/trace/enable"
}

stop_trace() {
    echo 0 >"$QUEUE/trace/enable"
    # The readers follow the buffers; wait until they have emptied them.
    while grep -q '^entries: [1-9]' "$TRACING"/per_cpu/cpu*/stats; do
        sleep 0.2
    done
    LOST=$(awk '/^(overrun|commit overrun|dropped events):/ { n += $NF } END { print n + 0 }' \
        "$TRACING"/per_cpu/cpu*/stats)
    cp "$TRACING/saved_cmdlines" "$OUT/$NAME.processes"
    release_trace
}

release_trace() {
    [ -n "$TRACE_READY" ] || return 0
    TRACE_READY=''
    [ ! -e "$QUEUE/trace/enable" ] || echo 0 >"$QUEUE/trace/enable"
    # The tracer cannot be changed while somebody reads from it.
    kill "${READERS[@]}" 2>/dev/null || true
    wait "${READERS[@]}" 2>/dev/null || true
    READERS=()
    echo nobin >"$TRACING/trace_options"
    echo context-info >"$TRACING/trace_options"
    echo nop >"$TRACING/current_tracer"
    echo "$OLD_CLOCK" >"$TRACING/trace_clock"
    echo "$OLD_BUFFER" >"$TRACING/buffer_size_kb"
}

clean_up() {
    set +e
    release_trace
    if [ -n "$CGROUP" ] && [ -d "$CGROUP" ]; then
        # Only what the workload itself started and left behind.
        xargs -r kill -9 <"$CGROUP/cgroup.procs" 2>/dev/null
        local tries=50
        until rmdir "$CGROUP" 2>/dev/null || ((--tries == 0)); do sleep 0.2; done
    fi
    if [ -n "$LOOP" ]; then
        ! mountpoint -q "$MOUNT" || umount "$MOUNT" || umount -l "$MOUNT"
        losetup --detach "$LOOP"
        rm -f "$IMAGE"
        rmdir "$MOUNT"
    fi
}

# Runs a command inside the memory limit; everything it starts inherits the limit.
limited() (
    echo "$BASHPID" >"$CGROUP/cgroup.procs"
    "$@"
)

record() {
    [ "$(id -u)" = 0 ] || die "loop devices and tracing need root"
    need losetup mkfs.ext4 blkparse python3
    trap clean_up EXIT
    trap 'exit 130' INT TERM
    make_device
    say "preparing"
    (cd "$MOUNT" && prepare)
    remount_cold
    limit_memory
    say "recording"
    start_trace
    (cd "$MOUNT" && limited run)
    sync -f "$MOUNT"
    stop_trace
    python3 "$HERE/finish.py" "$OUT/$NAME"
    # Text for people, and one merged binary for tools that want a single file.
    blkparse -q -i "$NAME" -D "$OUT" -d "$OUT/$NAME.blktrace.bin" -o "$OUT/$NAME.blkparse.txt" \
        >/dev/null
    {
        echo "command=workloads/record/$NAME.sh"
        echo "kernel=$(uname -r)"
        echo "filesystem=ext4"
        echo "mkfs_options=${MKFS_OPTIONS[*]}"
        echo "image_bytes=$(numfmt --from=iec "$IMAGE_SIZE")"
        echo "memory_max=$MEMORY_MAX"
        echo "dirty_max=$DIRTY_MAX"
        echo "read_ahead_kb=$READ_AHEAD_KB"
        echo "io_scheduler=$(sed 's/.*\[\(.*\)\].*/\1/' "$QUEUE/queue/scheduler")"
        echo "date=$(date -u +%F)"
        echo "lost_events=$LOST"
    } >"$OUT/$NAME.meta"
    python3 "$HERE/check.py" "$OUT/$NAME"
}

# Copies the kernel source tarball out of a Debian linux-source package, which apt fetches once.
# A version may be appended to the package name as for apt: linux-source-6.1=6.1.176-1.
linux_source() {
    local package=$1 target=$2 cache=$SCRATCH/packages file
    need apt-get dpkg-deb
    mkdir -p "$cache"
    file=$(find "$cache" -name "$package.deb")
    if [ -z "$file" ]; then
        mkdir -p "$cache/new"
        (cd "$cache/new" && apt-get -q download "$package" >&2)
        file=$cache/$package.deb
        mv "$cache"/new/*.deb "$file"
    fi
    dpkg-deb --fsys-tarfile "$file" | tar -xO "./usr/src/${package%%=*}.tar.xz" >"$target"
}
