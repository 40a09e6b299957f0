#!/bin/sh
# Boots a Linux guest under qemu that connects to a simulated drive by NVMe over TCP with the
# kernel's own host, and runs nvme-cli and fio in it: scripts/nvme_guest.sh [SCENARIO [OPTIONS...]]
#
# Needs hybridsim (or HYBRIDSIM=path) and, from Debian: qemu-system-x86 linux-image-amd64
# busybox-static cpio fio nvme-cli. DIGESTS="--hdr-digest --data-digest" turns digests on. Uses
# /dev/kvm if it is there; ACCEL=tcg emulates, for hosts whose KVM does not run a whole Linux.
set -eu

hybridsim=${HYBRIDSIM:-hybridsim}
scenario=${1:-$(dirname "$0")/../examples/zns.toml}
[ $# -eq 0 ] || shift
. "$(dirname "$0")/guest_common.sh"
need qemu-system-x86_64 busybox cpio fio nvme "$kernel" "$modules/kernel/drivers/nvme"
install_programs fio
install_nvme_host
begin_init
cat >> "$root/init" << 'END'
port=$(word nvme_port)
zoned() {
    step nvme zns id-ctrl /dev/nvme0
    step nvme zns id-ns /dev/nvme0n1
    step nvme effects-log /dev/nvme0 --csi=2
    step nvme zns report-zones /dev/nvme0n1 --descs=4
    step nvme zns reset-zone /dev/nvme0n1 --select-all
    # Sequential writes in four zones, and random reads of what was written, with their patterns.
    step fio --name=zones --filename=/dev/nvme0n1 --zonemode=zbd --direct=1 --ioengine=libaio \
        --iodepth=4 --rw=write --bs=16k --size=32m --verify=crc32c --minimal
}
conventional() {
    step fio --name=random --filename=/dev/nvme0n1 --direct=1 --ioengine=libaio --iodepth=32 \
        --rw=randrw --bs=4k --size=16m --verify=crc32c --minimal
    step blkdiscard /dev/nvme0n1
}
guest() {
    step nvme discover -t tcp -a 10.0.2.2 -s "$port"
    step nvme connect -t tcp -a 10.0.2.2 -s "$port" -n nqn.2026-11.local.hybridsim:drive -i 2 $DIGESTS
    wait_for /dev/nvme0n1
    step nvme list
    step nvme id-ctrl /dev/nvme0
    step nvme id-ns /dev/nvme0n1
    step nvme smart-log /dev/nvme0
    step nvme error-log /dev/nvme0 -e 2
    step nvme effects-log /dev/nvme0 --csi=0
    step nvme fw-log /dev/nvme0
    step nvme changed-ns-list-log /dev/nvme0
    step nvme supported-log-pages /dev/nvme0
    step nvme endurance-log /dev/nvme0 -g 1
    step nvme list-ns /dev/nvme0
    step nvme ns-descs /dev/nvme0 -n 1
    step nvme nvm-id-ctrl /dev/nvme0
    step nvme cmdset-ind-id-ns /dev/nvme0 -n 1
    step nvme ocp smart-add-log /dev/nvme0
    step nvme get-feature /dev/nvme0 -f 7
    [ ! -e /opt/FDP ] || { step nvme fdp configs /dev/nvme0 -e 1; step nvme fdp stats /dev/nvme0 -e 1; }
    case $(cat /sys/block/nvme0n1/queue/zoned) in
        host-managed) zoned ;;
        *) conventional ;;
    esac
    step nvme disconnect-all
    echo "guest: passed"
}
(guest)
poweroff -f
END
sed -i "s/\$DIGESTS/${DIGESTS:-}/" "$root/init"
! grep -q handles "$scenario" || touch "$root/opt/FDP"
pack
is_ready() { [ -n "$(port "$folder/serve.log")" ]; }
serve --nvme tcp://127.0.0.1:0 "$@"
boot "nvme_port=$(port "$folder/serve.log")" -netdev user,id=net -device e1000,netdev=net
