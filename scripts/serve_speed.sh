#!/bin/sh
# Compares the throughput of `hybridsim serve` with that of other targets on memory, at random reads
# and writes of 4 KiB, 32 at a time: scripts/serve_speed.sh [RUNS [SECONDS]]
#
# By NBD with the memory plugin of nbdkit, fio being the client of both on this host. By NVMe over
# TCP with the kernel's target on null_blk: both targets run in one Linux guest under qemu, and the
# guest's own host is the client of both. The device simulated is one of constant service time, so
# that protocols are compared. Prints operations a second of each run, and ratios of medians.
#
# Needs hybridsim (or HYBRIDSIM=path) and, from Debian: nbdkit qemu-system-x86 linux-image-amd64
# busybox-static cpio fio nvme-cli. ACCEL=tcg emulates, as in nvme_guest.sh.
set -eu

runs=${1:-3}
seconds=${2:-5}
hybridsim=${HYBRIDSIM:-hybridsim}
. "$(dirname "$0")/guest_common.sh"
need "$hybridsim" nbdkit qemu-system-x86_64 busybox cpio fio nvme "$kernel" \
    "$modules/kernel/drivers/nvme"
cat > "$folder/device.toml" << 'END'
title = "A device of constant service time"
system = "device"

[component.device]
kind = "constant-device"
capacity = "128MiB"
latency = "10us"
END
mkdir -p "$root/bin"
# Operations a second of a run of fio: NAME KIND OPTIONS.
cat > "$root/bin/measure" << 'END'
#!/bin/sh
name=$1 kind=$2
shift 2
fio --name=speed --rw="$kind" --bs=4k --iodepth=32 --size=128m --time_based --ramp_time=1 \
    --eta=never --minimal "$@" | awk -F';' -v name="$name" -v kind="$kind" \
    '/;/ { print "speed", name, kind, $8 + $49 }'
END
chmod +x "$root/bin/measure"

"$hybridsim" serve "$folder/device.toml" --nbd "unix:$folder/ours.sock" --json \
    > "$folder/nbd.json" 2> "$folder/nbd.log" &
servers="$servers $!"
nbdkit --foreground --unix "$folder/nbdkit.sock" memory 128M 2> "$folder/nbdkit.log" &
servers="$servers $!"
for _ in $(seq 50); do
    [ ! -S "$folder/ours.sock" ] || [ ! -S "$folder/nbdkit.sock" ] || break
    sleep 0.2
done
for _ in $(seq "$runs"); do
    for kind in randread randwrite; do
        for name in ours nbdkit; do
            "$root/bin/measure" "$name" $kind --ioengine=nbd --runtime="$seconds" \
                --uri="nbd+unix:///?socket=$folder/$name.sock"
        done
    done
done | tee "$folder/speed"
stop

install_programs fio "$hybridsim"
install_nvme_host
install_nvme_target
cp "$folder/device.toml" "$root/"
begin_init
cat >> "$root/init" << 'END'
"/opt/$(word program)" serve /device.toml --nvme tcp://127.0.0.1:4420 2> /tmp/serve.log &
step nvmet null nullb0 134217728
step nvmet export nvmet /dev/nullb0
for _ in $(seq 50); do ! grep -q serving /tmp/serve.log || break; sleep 1; done
step nvme connect -t tcp -a 127.0.0.1 -s 4420 -n nqn.2026-11.local.hybridsim:drive -i 1
wait_for /dev/nvme0n1
step nvme connect -t tcp -a 127.0.0.1 -s 4421 -n nvmet -i 1
wait_for /dev/nvme1n1
sleep 5
for _ in $(seq "$(word runs)"); do
    for kind in randread randwrite; do
        measure hybridsim $kind --ioengine=libaio --direct=1 --runtime="$(word seconds)" \
            --filename=/dev/nvme0n1
        measure nvmet $kind --ioengine=libaio --direct=1 --runtime="$(word seconds)" \
            --filename=/dev/nvme1n1
    done
done
echo "guest: passed"
poweroff -f
END
pack
boot_guest "runs=$runs seconds=$seconds program=${hybridsim##*/}" -m 2048 -smp 2
grep -q "guest: passed" "$folder/console"
tr -d '\r' < "$folder/console" | grep '^speed' >> "$folder/speed"

median() {
    awk -v name="$1" -v kind="$2" '$2 == name && $3 == kind { print $4 }' "$folder/speed" |
        sort -n | awk '{ all[NR] = $1 } END { print all[int((NR + 1) / 2)] }'
}
for kind in randread randwrite; do
    for pair in "NBD ours nbdkit" "NVMe/TCP hybridsim nvmet"; do
        # shellcheck disable=SC2086
        set -- $pair
        ours=$(median "$2" $kind) other=$(median "$3" $kind)
        echo "$1 $kind: $ours beside $other of $3, $(awk "BEGIN { printf \"%.2f\", $ours / $other }")"
    done
done
