#!/bin/sh
# Runs the same fio jobs of depth 1 twice by NVMe over TCP, each time against a server that has just
# started, and compares the fingerprints of the simulations: scripts/nvme_repeat.sh [SCENARIO]
#
# One pair of runs uses the block device of a Linux guest under qemu, through which the kernel sends
# requests of its own as well, such as the partition scan; one uses the character device of the
# namespace, which it does not. Needs hybridsim (or HYBRIDSIM=path), python3 and, from Debian:
# qemu-system-x86 linux-image-amd64 busybox-static cpio fio nvme-cli. ACCEL=tcg emulates, as in
# nvme_guest.sh.
set -eu

here=$(dirname "$0")
hybridsim=${HYBRIDSIM:-hybridsim}
scenario=${1:-$here/../examples/ssd.toml}
. "$here/guest_common.sh"
need qemu-system-x86_64 busybox cpio fio nvme python3 "$kernel" "$modules/kernel/drivers/nvme"
install_programs fio
install_nvme_host
begin_init
cat >> "$root/init" << 'END'
run() {
    connect "$1"
    wait_for /dev/nvme0n1
    wait_for /dev/ng0n1
    # The partition scan has ended.
    sleep 5
    shift
    for kind in randwrite randrw write; do
        step fio --name=job --rw=$kind --bs=4k --size=64m --io_size=4m --iodepth=1 \
            --randseed=7 --eta=never --minimal --output=/tmp/fio "$@"
    done
    step nvme disconnect-all
}
for round in 1 2; do
    run block$round --filename=/dev/nvme0n1 --ioengine=libaio --direct=1 --fsync=64
    run character$round --filename=/dev/ng0n1 --ioengine=io_uring_cmd --cmd_type=nvme
done
echo "guest: passed"
poweroff -f
END
pack
drives=
for name in block1 block2 character1 character2; do
    start $name "$scenario" --record "$folder/$name.hst"
    drives=$drives$name:$(port "$folder/$name.log"),
done
boot_guest "drives=$drives" -netdev user,id=net -device e1000,netdev=net
stop
grep -q "guest: passed" "$folder/console"
status=0
for kind in block character; do
    python3 - $kind "$folder/${kind}1.json" "$folder/${kind}2.json" << 'END' || status=1
import json, sys
kind, *paths = sys.argv[1:]
runs = [json.load(open(path)) for path in paths]
for run in runs:
    print(f"{kind} device: {run['requests']} requests, fingerprint {run['fingerprint']}")
sys.exit(runs[0]["fingerprint"] != runs[1]["fingerprint"])
END
    cmp "$folder/${kind}1.hst" "$folder/${kind}2.hst" || true
done
[ -z "${TRACES:-}" ] || cp "$folder"/*.hst "$folder"/*.json "$TRACES"
exit $status
