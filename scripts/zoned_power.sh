#!/bin/sh
# Lets the power fail under a file system on a simulated zoned drive, and checks what is there
# afterwards: scripts/zoned_power.sh btrfs|f2fs [FAILURES [SCENARIO]]
#
# In each round a guest under qemu connects to the drive by NVMe over TCP, mounts the file system,
# compares all files that were synchronised with what it has, checks the file system, and writes and
# synchronises further files until guest and drive lose power at once. f2fs has its metadata on a
# conventional drive, CONVENTIONAL, which loses power too. Write buffers of simulated SSDs survive, so
# what is tested is writes in flight, and what zones hold after them.
#
# Needs hybridsim (or HYBRIDSIM=path), python3 and, from Debian: qemu-system-x86 linux-image-amd64
# busybox-static cpio nvme-cli btrfs-progs f2fs-tools. ACCEL=tcg emulates, as in nvme_guest.sh.
set -eu

file_system=${1:?usage: scripts/zoned_power.sh btrfs|f2fs [FAILURES [SCENARIO]]}
failures=${2:-20}
here=$(dirname "$0")
scenario=${3:-$here/../examples/zns.toml}
conventional=${CONVENTIONAL:-$here/../examples/ssd.toml}
hybridsim=${HYBRIDSIM:-hybridsim}
. "$here/guest_common.sh"
case $file_system in
    btrfs) programs="mkfs.btrfs btrfs" ;;
    f2fs) programs="mkfs.f2fs fsck.f2fs" ;;
    *) echo "no file system for zones: $file_system" >&2; exit 2 ;;
esac
# shellcheck disable=SC2086
need qemu-system-x86_64 busybox cpio nvme python3 $programs "$kernel" \
    "$modules/kernel/fs/$file_system"
# shellcheck disable=SC2086
install_programs $programs
mkdir "$root/mnt"
install_nvme_host crc32_generic zstd_compress lz4_compress lz4hc_compress raid6_pq xor \
    blake2b_generic xxhash_generic "$file_system"
# Linux 6.1 sends what btrfs appends through a device of the path, and then does not find its zone.
echo multipath=N > "$root/modules/nvme-core.ko.options"
begin_init
cat >> "$root/init" << 'END'
# Only failures are shown.
step() { "$@" > /tmp/step 2>&1 || { cat /tmp/step; echo "guest: failed: $*"; poweroff -f; }; }
for drive in $(word drives | tr , ' '); do
    connect "${drive%:*}"
    sleep 1
done
for i in 1 2 3 4 5 6 7 8 9 10; do [ -b /dev/nvme0n1 ] && break; sleep 1; done
round=$(word round)
case $(word fs) in
    btrfs)
        # Two copies of the metadata: after a power failure their zones may be written to different
        # points, and Linux 6.1 then refuses to mount.
        make() { mkfs.btrfs -f -q -m single -d single /dev/nvme0n1; }
        check() { btrfs check --readonly /dev/nvme0n1; }
        on=/dev/nvme0n1
        ;;
    f2fs)
        make() { mkfs.f2fs -q -f -m -c /dev/nvme0n1 /dev/nvme1n1; }
        # Of a new file system, too, f2fs-tools 1.15 counts other free segments than Linux 6.1.
        check() {
            fsck.f2fs --dry-run -f /dev/nvme1n1 | tee /tmp/check
            ! grep "\[Fail\]" /tmp/check | grep -v "free segment_count"
        }
        on=/dev/nvme1n1
        ;;
esac
[ "$round" != 0 ] || step make
step mount -t "$(word fs)" "$on" /mnt
cd /mnt
echo # The firmware leaves a line unfinished.
for file in *; do [ ! -f "$file" ] || echo "have $(md5sum "$file")"; done
cd /
step umount /mnt
step check
step mount -t "$(word fs)" "$on" /mnt
echo "guest: $(nvme zns report-zones /dev/nvme0n1 | grep -c "State: 0x[2-4E]") zones written"
echo "guest: ready"
cd /mnt
# Written, but not synchronised.
head -c 300000 /dev/urandom > open
file=0
while :; do
    file=$((file + 1))
    head -c 20000 /dev/urandom > /tmp/new
    step dd if=/tmp/new of="/mnt/$round.$file" bs=4096 conv=fsync
    echo "kept $(cd /tmp; md5sum < new | cut -c1-32)  $round.$file"
done
END
pack

guest=
trap 'kill $servers $guest 2> /dev/null || true; rm -rf "$folder"' EXIT
start zoned "$scenario"
drives=zoned:$(port "$folder/zoned.log")
if [ "$file_system" = f2fs ]; then
    # Little more than the metadata take, so that data are in zones.
    start conventional "$conventional" --export "metadata=${METADATA:-32MiB}"
    drives=$drives,conventional:$(port "$folder/conventional.log")
fi

: > "$folder/kept"
lost=0 written=0
for round in $(seq 0 "$failures"); do
    console=$folder/console
    qemu-system-x86_64 -machine "pc,accel=${ACCEL:-kvm:tcg}" -m 1024 -nographic -no-reboot \
        -nodefaults -serial stdio -kernel "$kernel" -initrd "$folder/initrd" \
        -netdev user,id=net -device e1000,netdev=net \
        -append "console=ttyS0 quiet panic=-1 fs=$file_system round=$round drives=$drives" \
        < /dev/null > "$console" 2>&1 &
    guest=$!
    # Another number of files in each round; in the last, none.
    files=$((3 + round * 7 % 11))
    [ "$round" != "$failures" ] || files=0
    for _ in $(seq "${GUEST_TIMEOUT:-600}"); do
        ! grep -q "guest: ready" "$console" || [ "$(grep -c '^kept' "$console")" -lt $files ] || break
        kill -0 "$guest" 2> /dev/null || break
        sleep 0.5
    done
    kill -KILL "$guest" 2> /dev/null || true
    wait "$guest" 2> /dev/null || true
    python3 "$here/cut_power.py" "$folder"/*.sock
    tr -d '\r' < "$console" > "$console.text"
    if ! grep -q "guest: ready" "$console.text"; then
        cat "$console.text" >&2
        echo "round $round: the guest did not get to writing" >&2
        exit 1
    fi
    grep "zones written" "$console.text" | tail -n 1
    sed -n 's/^have //p' "$console.text" | sort > "$folder/have"
    sort "$folder/kept" | comm -23 - "$folder/have" > "$folder/gone"
    [ ! -s "$folder/gone" ] || { echo "gone in round $round:"; cat "$folder/gone" "$console.text"; } >&2
    lost=$((lost + $(wc -l < "$folder/gone")))
    # What is lost is counted once.
    sort "$folder/kept" | comm -12 - "$folder/have" > "$folder/next"
    sed -n 's/^kept //p' "$console.text" >> "$folder/next"
    written=$((written + $(grep -c '^kept' "$console.text" || true)))
    mv "$folder/next" "$folder/kept"
done
echo "$file_system: $failures power failures, $lost of $written synchronised files lost"
[ "$lost" = 0 ]
