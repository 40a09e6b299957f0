#!/usr/bin/env bash
# Lets the power of a served drive fail under ext4, and checks what is there afterwards:
#
#     scripts/ext4_power.sh SCENARIO [MOUNT_OPTIONS [FAILURES]]
#
# In each round files are written and synchronised one by one, the power fails, and the drive is
# checked by e2fsck after its journal was replayed. Reports synchronised files that are gone or
# damaged, and rounds in which the file system is. `barrier=0` stands for a host that does not
# flush. Needs root, loop devices, nbdfuse and e2fsprogs; HYBRIDSIM names the program.
set -euo pipefail

scenario=${1:?usage: scripts/ext4_power.sh SCENARIO [MOUNT_OPTIONS [FAILURES]]}
options=${2:-defaults}
failures=${3:-8}
hybridsim=${HYBRIDSIM:-hybridsim}
folder=$(mktemp -d)
server=
loop=
fuse=

detach() {
    umount -l "$folder/mnt" 2> /dev/null || true
    [ -z "$loop" ] || losetup -d "$loop" 2> /dev/null || true
    loop=
    [ -z "$fuse" ] || { kill "$fuse" 2> /dev/null || true; wait "$fuse" 2> /dev/null || true; }
    fuse=
    fusermount3 -u -z "$folder/nbd" 2> /dev/null || umount -l "$folder/nbd" 2> /dev/null || true
}
finish() {
    detach
    [ -z "$server" ] || kill "$server" 2> /dev/null || true
    rm -rf "$folder"
}
trap finish EXIT

# The drive as a block device, $loop.
attach() {
    nbdfuse "$folder/nbd" "nbd+unix:///?socket=$folder/drive.sock" &
    fuse=$!
    for _ in $(seq 100); do
        [ ! -e "$folder/nbd/nbd" ] || break
        sleep 0.05
    done
    loop=$(losetup --find --show "$folder/nbd/nbd")
}

mkdir "$folder/nbd" "$folder/mnt"
# Without think time, in which a drive would empty its buffer.
"$hybridsim" serve "$scenario" --nbd "unix:$folder/drive.sock" --time-scale 0 \
    --control "unix:$folder/control.sock" > "$folder/results" 2> "$folder/log" &
server=$!
for _ in $(seq 600); do
    [ ! -S "$folder/control.sock" ] || break
    kill -0 "$server" 2> /dev/null || { cat "$folder/log" >&2; exit 1; }
    sleep 0.1
done
attach
timeout 120 mke2fs -q -F -t ext4 "$loop"
sync -f "$folder/nbd/nbd"
detach

written=0 lost=0 damaged=0
: > "$folder/sums"
for round in $(seq "$failures"); do
    attach
    mount -t ext4 -o "$options" "$loop" "$folder/mnt"
    for _ in $(seq $((5 + round))); do
        written=$((written + 1))
        head -c 20000 /dev/urandom > "$folder/new"
        dd if="$folder/new" of="$folder/mnt/$written" bs=4096 conv=fsync status=none
        (cd "$folder/mnt" && sha256sum "$written") >> "$folder/sums"
    done
    # Written, but not synchronised.
    head -c 300000 /dev/urandom > "$folder/mnt/open"
    python3 "$(dirname "$0")/cut_power.py" "$folder/control.sock"
    detach
    attach
    # The journal is replayed, as at a boot; 0 and 1: nothing is left to mend.
    status=0
    timeout 120 e2fsck -p "$loop" > "$folder/fsck" 2>&1 || status=$?
    if [ "$status" -gt 1 ]; then
        damaged=$((damaged + 1))
        timeout 120 e2fsck -y "$loop" > /dev/null 2>&1 || true
    fi
    mount -t ext4 -o "$options" "$loop" "$folder/mnt"
    gone=$(cd "$folder/mnt" && sha256sum --check --quiet "$folder/sums" 2> /dev/null | wc -l || true)
    lost=$((lost + gone))
    # What is lost is counted once.
    (cd "$folder/mnt" && sha256sum --check "$folder/sums" 2> /dev/null |
        sed -n 's/: OK$//p' > "$folder/there") || true
    awk 'NR == FNR { there[$1]; next } $2 in there' "$folder/there" "$folder/sums" > "$folder/kept"
    mv "$folder/kept" "$folder/sums"
    umount "$folder/mnt"
    detach
done
echo "$failures power failures, mount options $options: $lost of $written synchronised files lost," \
    "the file system damaged $damaged times"
