#!/bin/sh
# Runs zonefs, and RocksDB on f2fs, in a Linux guest under qemu that has a simulated zoned drive and
# a conventional one by NVMe over TCP, and compares the data afterwards:
# scripts/nvme_stores.sh [SCENARIO [CONVENTIONAL]]
#
# Needs hybridsim (or HYBRIDSIM=path), python3 and, from Debian: qemu-system-x86 linux-image-amd64
# busybox-static cpio fio nvme-cli f2fs-tools rocksdb-tools. RECORDS=n writes that many. OPTIONS are
# those of the zoned drive, which by default has three times the zones of the scenario: f2fs keeps a
# zone open for each of its logs, and others in reserve. ACCEL=tcg emulates, as in nvme_guest.sh.
set -eu

here=$(dirname "$0")
hybridsim=${HYBRIDSIM:-hybridsim}
scenario=${1:-$here/../examples/zns.toml}
conventional=${2:-$here/../examples/ssd.toml}
. "$here/guest_common.sh"
need qemu-system-x86_64 busybox cpio nvme fio python3 mkfs.f2fs fsck.f2fs db_bench ldb "$kernel" \
    "$modules/kernel/fs/zonefs" "$modules/kernel/fs/f2fs"
install_programs mkfs.f2fs fsck.f2fs db_bench ldb fio dd
mkdir "$root/mnt"
install_nvme_host zonefs crc32_generic zstd_compress lz4_compress lz4hc_compress f2fs
# What mkzonefs, which Debian 12 lacks, writes into the first zone: the super block, with one file for
# each zone, of the mode 0644.
python3 - "$root/zonefs" << 'END'
import struct, sys, zlib
rest = struct.pack("<64s16sQIII", b"simulated", bytes(range(16)), 1 << 3, 0, 0, 0o644)
super_block = lambda crc: (struct.pack("<4sI", b"SFOZ", crc) + rest).ljust(4096, b"\0")
open(sys.argv[1], "wb").write(super_block(zlib.crc32(super_block(0)) ^ 0xFFFFFFFF))
END
begin_init
cat >> "$root/init" << 'END'
must_fail() {
    echo "guest: must fail: $*"
    ! "$@" || { echo "guest: did not fail: $*"; poweroff -f; }
}
# Appends this many bytes to a file, asynchronously: synchronous appends fail with zonefs of Linux
# 6.1.192, on null_blk too, as it finds another write pointer than it expects.
append() {
    step fio --name=append --filename="$2" --rw=write --bs=16k --size="$1" --ioengine=libaio \
        --iodepth=8 --direct=1 --file_append=1 --create_on_open=0 --allow_file_create=0 --unlink=0 \
        --randseed="$1" --verify=crc32c --eta=never --minimal --output=/tmp/fio
}
# Drives are connected anew, so that nothing comes from the memory of the guest.
again() {
    step umount /mnt
    step nvme disconnect-all
    echo 3 > /proc/sys/vm/drop_caches
    connect zoned
    wait_for /dev/nvme0n1
    [ "$1" = 1 ] || { connect conventional; wait_for /dev/nvme1n1; }
}
sums() { (cd /mnt/seq && md5sum 0 1 2 3); }
zonefs() {
    step nvme zns reset-zone /dev/nvme0n1 --select-all
    step /opt/dd if=/zonefs of=/dev/nvme0n1 bs=4096 oflag=direct conv=notrunc status=none
    step mount -t zonefs /dev/nvme0n1 /mnt
    echo "guest: zonefs has $(ls /mnt/seq | wc -l) files of sequential zones"
    capacity=$(($(stat -f -c %s /mnt) * $(stat -f -c %b /mnt) / $(ls /mnt/seq | wc -l)))
    # Two files in several appends, one full, and one that is written anew.
    for file in 0 1 3; do
        for size in 262144 16384 1048576; do append $size /mnt/seq/$file; done
        [ "$(stat -c %s /mnt/seq/$file)" = 1327104 ] || step false
    done
    append $capacity /mnt/seq/2
    head -c 65536 /dev/urandom > /tmp/data
    for file in 0 2; do
        must_fail /opt/dd if=/tmp/data of=/mnt/seq/$file bs=16k count=1 oflag=direct conv=notrunc
    done
    must_fail /opt/dd if=/tmp/data of=/mnt/seq/2 bs=16k oflag=append,direct conv=notrunc
    step truncate -s 0 /mnt/seq/3
    append 65536 /mnt/seq/3
    sums > /tmp/sums
    cat /tmp/sums
    again 1
    step mount -t zonefs /dev/nvme0n1 /mnt
    sums > /tmp/found
    step cmp /tmp/sums /tmp/found
    # What fsck would compare: sizes of files with write pointers of zones.
    nvme zns report-zones /dev/nvme0n1 --descs=8 | grep SLBA
    at=0
    for file in 0 1 3; do
        zone=$(printf 0x%x $(((file + 1) * $(word zone_blocks))))
        at=$(nvme zns report-zones /dev/nvme0n1 --start-lba="$zone" --descs=1 |
            sed -n 's/.*WP: *\(0x[0-9a-f]*\).*/\1/p')
        [ $(((at - zone) * 4096)) = "$(stat -c %s /mnt/seq/$file)" ] || step false
    done
    again 1
    echo "guest: zonefs passed"
}
rocksdb() {
    step db_bench --db=/mnt/db --benchmarks="$1" --use_existing_db="$2" --num="$(word records)" \
        --value_size=400 --threads=1 --seed=7 --compression_type=none --write_buffer_size=2097152 \
        --target_file_size_base=2097152 --max_bytes_for_level_base=8388608 --verify_checksum=true \
        --sync=false --disable_wal=false --open_files=64 --cache_size=1048576
}
scan() { ldb --db=/mnt/db scan --hex | md5sum; }
store() {
    connect conventional
    wait_for /dev/nvme1n1
    step nvme zns reset-zone /dev/nvme0n1 --select-all
    step mkfs.f2fs -q -f -m -c /dev/nvme0n1 /dev/nvme1n1
    step mount -t f2fs /dev/nvme1n1 /mnt
    rocksdb fillrandom,overwrite,readrandom,stats 0
    df -h /mnt
    before=$(scan)
    again 2
    step mount -t f2fs /dev/nvme1n1 /mnt
    [ "$before" = "$(scan)" ] || step false
    rocksdb verifychecksum,readrandom 1
    step ldb --db=/mnt/db checkconsistency
    echo "guest: $(ldb --db=/mnt/db scan --hex | wc -l) keys, $(du -sk /mnt/db | cut -f1) KiB"
    echo "guest: $(nvme zns report-zones /dev/nvme0n1 | grep -c "State: 0x[2-4E]") zones hold data"
    step umount /mnt
    # Of a new file system, too, f2fs-tools 1.15 counts other free segments than Linux 6.1.
    fsck.f2fs --dry-run -f /dev/nvme1n1 > /tmp/check
    ! grep "\[Fail\]" /tmp/check | grep -v "free segment_count" || step false
    echo "guest: RocksDB passed"
}
connect zoned
wait_for /dev/nvme0n1
zonefs
store
echo "guest: passed"
poweroff -f
END
pack
# shellcheck disable=SC2086
start zoned "$scenario" ${OPTIONS---set component.ssd.zones=96 --set component.ssd.blocks_per_plane=128}
# Little more than the metadata take, so that data are in zones.
start conventional "$conventional" --export "metadata=${METADATA:-64MiB}"
drives=zoned:$(port "$folder/zoned.log"),conventional:$(port "$folder/conventional.log")
boot_guest "drives=$drives zone_blocks=${ZONE_BLOCKS:-4096} records=${RECORDS:-50000}" \
    -netdev user,id=net -device e1000,netdev=net
stop
grep -q "guest: passed" "$folder/console"
