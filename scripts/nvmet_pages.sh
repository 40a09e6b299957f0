#!/bin/sh
# Records what the kernel's own NVMe target replies to identify, log page and zone report commands:
# scripts/nvmet_pages.sh > crates/serve/tests/nvme/nvmet.txt
#
# The target runs in a Linux guest under qemu, on memory (null_blk), and the guest's own host asks
# it. The test `nvmet` of crates/serve compares the pages with those of `serve --nvme`. Needs, from
# Debian: qemu-system-x86 linux-image-amd64 busybox-static cpio nvme-cli. ACCEL=tcg emulates, as in
# nvme_guest.sh.
set -eu

. "$(dirname "$0")/guest_common.sh"
need qemu-system-x86_64 busybox cpio nvme "$kernel" "$modules/kernel/drivers/nvme"
install_nvme_host
install_nvme_target
begin_init
cat >> "$root/init" << 'END'
# Sends a command by `nvme $1-passthru $2`, with the words of its line: OPCODE NSID CDW10 CDW11
# CDW12 CDW13 CDW14 BYTES. Prints the line, the status, and the lines of 16 bytes that are not zero.
ask() {
    nvme "$1-passthru" "$2" --opcode="$3" --namespace-id="$4" --cdw10="$5" --cdw11="$6" \
        --cdw12="$7" --cdw13="$8" --cdw14="$9" --data-len="${10}" --read --raw-binary \
        > /tmp/data 2> /tmp/error
    status=$(sed -n 's/.*(0x\([0-9a-f]*\)).*/\1/p' /tmp/error)
    shift 2
    echo "@> $* status ${status:-0}"
    [ -z "$status" ] || return 0
    xxd -p -c 16 /tmp/data | awk '!/^0*$/ { printf "@%03x %s\n", (NR - 1) * 16, $0 }'
}
all=0xffffffff
pages() {
    ask admin "$1" 6 $all 0 0 0 0 0 4096
    for page in $(seq 0 28); do
        case $page in
            5 | 6 | 7) sets="0 0x2000000" ;;
            *) sets=0 ;;
        esac
        nsid=1
        case $page in 1 | 2 | 7 | 28) nsid=0 ;; esac
        for set in $sets; do
            cdw10=$page
            [ "$page" != 28 ] || cdw10=0xffff001c
            ask admin "$1" 6 $nsid "$cdw10" "$set" 0 0 0 4096
        done
    done
    for page in $(seq 0 28) 112; do
        bytes=512
        case $page in 0) bytes=1024 ;; 4 | 5) bytes=4096 ;; esac
        ask admin "$1" 2 $all $((page | (bytes / 4 - 1) << 16)) 0 0 0 0 $bytes
    done
    ask admin "$1" 2 $all $((5 | 1023 << 16)) 0 0 0 0x2000000 4096
}
zones() { ask io /dev/nvme0n1 0x7a 1 "$1" 0 "$2" "$3" 0 "$4"; }
of() {
    echo "@= $1"
    nvme connect -t tcp -a 127.0.0.1 -s 4421 -n "$1" -i 1
    wait_for /dev/nvme0n1
    # The partition scan has ended.
    sleep 3
    head -c 16384 /dev/urandom > /tmp/blocks
    step nvme write /dev/nvme0n1 --start-block=0 --block-count=3 --data-size=16384 --data=/tmp/blocks
    step nvme read /dev/nvme0n1 --start-block=0 --block-count=3 --data-size=16384 --data=/tmp/read
    step cmp /tmp/blocks /tmp/read
    ! nvme read /dev/nvme0n1 --start-block=0xfffffff --block-count=0 --data-size=4096 \
        --data=/tmp/read || step false
    pages /dev/nvme0
    case $1 in
        zoned)
            step nvme zns open-zone /dev/nvme0n1 --start-lba=1024
            step nvme write /dev/nvme0n1 --start-block=2048 --block-count=0 --data-size=4096 \
                --data=/tmp/blocks
            step nvme zns close-zone /dev/nvme0n1 --start-lba=2048
            step nvme zns finish-zone /dev/nvme0n1 --start-lba=3072
            # All zones, as many as fit from the third on, and those of each state.
            zones 0 143 0 576
            zones 2048 31 0x10000 128
            for state in 1 2 3 4 5 6 7; do zones 0 143 $((state << 8)) 576; done
            zones 0 143 1 576
            ;;
    esac
    nvme disconnect-all
}
step nvmet null nullb0 33554432
step nvmet null nullb1 33554432 zoned=1 zone_size=4 zone_capacity=3 zone_max_open=3 zone_max_active=5
step nvmet export conventional /dev/nullb0
step nvmet export zoned /dev/nullb1
of conventional
of zoned
echo "@= discovery"
nvme connect -t tcp -a 127.0.0.1 -s 4421 -n nqn.2014-08.org.nvmexpress.discovery
wait_for /dev/nvme0
ask admin /dev/nvme0 6 0 1 0 0 0 0 4096
ask admin /dev/nvme0 6 0 2 0 0 0 0 4096
for page in 0 1 2 3 5; do ask admin /dev/nvme0 2 0 $((page | 127 << 16)) 0 0 0 0 512; done
ask admin /dev/nvme0 2 0 $((112 | 767 << 16)) 0 0 0 0 3072
echo "guest: passed"
poweroff -f
END
pack
boot_guest "" >&2
grep -q "guest: passed" "$folder/console"
tr -d '\r' < "$folder/console" > "$folder/text"
echo "# Replies of the kernel's NVMe target, recorded by scripts/nvmet_pages.sh with $(
    sed -n 's/^guest: \([0-9].*\)/Linux \1/p' "$folder/text" | head -n 1), nvme-cli $(
    nvme version | sed -n 's/^nvme version \([^ ]*\).*/\1/p')."
echo "# = SUBSYSTEM; > OPCODE NSID CDW10 CDW11 CDW12 CDW13 CDW14 BYTES status STATUS; then OFFSET and 16"
echo "# bytes, for those that are not all zero."
sed -n 's/^@//p' "$folder/text"
