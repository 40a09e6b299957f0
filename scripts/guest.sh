#!/bin/sh
# Boots a Linux guest under qemu with a simulated drive as its disk, makes a file system on it,
# and runs fio inside: scripts/guest.sh [SCENARIO [SERVE OPTIONS...]]
#
# Needs hybridsim (or HYBRIDSIM=path) and, from Debian: qemu-system-x86 linux-image-cloud-amd64
# busybox-static cpio fio e2fsprogs. Uses /dev/kvm if it is there; ACCEL=tcg emulates, for hosts
# whose KVM does not run a whole Linux.
set -eu

hybridsim=${HYBRIDSIM:-hybridsim}
scenario=${1:-$(dirname "$0")/../examples/ssd.toml}
[ $# -eq 0 ] || shift
modules=$(ls -d /lib/modules/*-cloud-amd64 | tail -n 1)
kernel=/boot/vmlinuz-${modules##*/}
PATH=$PATH:/usr/sbin:/sbin
for needed in qemu-system-x86_64 busybox cpio fio mke2fs e2fsck "$kernel"; do
    command -v "$needed" > /dev/null || [ -r "$needed" ] || {
        echo "skipped: \`$needed\` is missing" >&2
        exit 77
    }
done
folder=$(mktemp -d)
server=
trap 'rm -rf "$folder"; [ -z "$server" ] || kill "$server" 2> /dev/null || true' EXIT

# The root of the guest: busybox, the virtio modules, and programs with their libraries.
root=$folder/root
mkdir -p "$root/bin" "$root/opt" "$root/dev" "$root/proc" "$root/sys" "$root/mnt" "$root/tmp" "$root/modules"
cp "$(command -v busybox)" "$root/bin/busybox"
for program in fio mke2fs e2fsck; do
    path=$(command -v $program)
    cp "$path" "$root/opt/"
    ldd "$path" | grep -o '/[^ )]*' | sort -u | while read -r library; do
        mkdir -p "$root$(dirname "$library")"
        cp -L "$library" "$root$library"
    done
done
for module in virtio virtio_ring virtio_pci_modern_dev virtio_pci_legacy_dev virtio_pci virtio_blk; do
    find "$modules" -name "$module.ko*" -exec cp {} "$root/modules/" \;
done
cat > "$root/init" <<'END'
#!/bin/busybox sh
/bin/busybox --install -s /bin
export PATH=/bin
mount -t proc none /proc; mount -t sysfs none /sys; mount -t devtmpfs none /dev
# In the order of their dependencies.
for module in virtio_ring virtio virtio_pci_modern_dev virtio_pci_legacy_dev virtio_pci virtio_blk
do
    xz -d "/modules/$module.ko.xz" 2> /dev/null
    [ ! -e "/modules/$module.ko" ] || insmod "/modules/$module.ko"
done
for i in 1 2 3 4 5 6 7 8 9 10; do [ -b /dev/vda ] && break; sleep 1; done
guest() {
    echo "guest: $(uname -r), $(cat /sys/block/vda/size) sectors"
    /opt/mke2fs -q -F -t ext4 /dev/vda && mount -t ext4 -o discard /dev/vda /mnt || return
    /opt/fio --name=guest --directory=/mnt --ioengine=psync --direct=1 --rw=randrw --bs=4k --size=8m \
        --fsync=16 --verify=crc32c --randrepeat=1 --minimal > /tmp/fio || return
    awk -F';' '{ print "guest: fio read " $6 " KiB, wrote " $47 " KiB, errors " $5 }' /tmp/fio
    dd if=/dev/urandom of=/mnt/file bs=4k count=1000 2> /dev/null
    sum=$(md5sum < /mnt/file)
    umount /mnt && /opt/e2fsck -f -n /dev/vda > /tmp/fsck 2>&1 || return
    tail -n 1 /tmp/fsck
    mount -t ext4 /dev/vda /mnt && [ "$sum" = "$(md5sum < /mnt/file)" ] || return
    umount /mnt && echo "guest: passed"
}
guest || echo "guest: failed"
poweroff -f
END
chmod +x "$root/init"
(cd "$root" && find . | cpio --quiet -o -H newc | gzip -1) > "$folder/initrd"

"$hybridsim" serve "$scenario" --nbd "unix:$folder/nbd.sock" --json "$@" \
    > "$folder/results.json" 2> "$folder/serve.log" &
server=$!
for _ in $(seq 300); do
    [ ! -S "$folder/nbd.sock" ] || break
    kill -0 "$server" 2> /dev/null || { cat "$folder/serve.log" >&2; exit 1; }
    sleep 0.2
done
accel=${ACCEL:-kvm:tcg}
timeout "${GUEST_TIMEOUT:-600}" qemu-system-x86_64 -machine "pc,accel=$accel" -m 512 \
    -nographic -no-reboot -nodefaults -serial stdio -kernel "$kernel" -initrd "$folder/initrd" \
    -append "console=ttyS0 quiet panic=-1" \
    -drive "file=nbd:unix:$folder/nbd.sock,format=raw,if=virtio,cache=none,discard=unmap" \
    < /dev/null 2>&1 | tee "$folder/console"
kill -INT "$server" || true
status=0
wait "$server" || status=$?
server=
cat "$folder/serve.log"
[ "$status" = 0 ] || exit "$status"
cp "$folder/results.json" "${RESULTS:-/dev/null}"
grep -q "guest: passed" "$folder/console"
