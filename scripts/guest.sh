#!/bin/sh
# Boots a Linux guest under qemu with a simulated drive as its disk, makes a file system on it,
# and runs fio inside: scripts/guest.sh [SCENARIO [SERVE OPTIONS...]]
#
# Needs hybridsim (or HYBRIDSIM=path) and, from Debian: qemu-system-x86 linux-image-amd64
# busybox-static cpio fio e2fsprogs. Uses /dev/kvm if it is there; ACCEL=tcg emulates, for hosts
# whose KVM does not run a whole Linux.
set -eu

hybridsim=${HYBRIDSIM:-hybridsim}
scenario=${1:-$(dirname "$0")/../examples/ssd.toml}
[ $# -eq 0 ] || shift
. "$(dirname "$0")/guest_common.sh"
need qemu-system-x86_64 busybox cpio fio mke2fs e2fsck "$kernel"
install_programs fio mke2fs e2fsck
mkdir "$root/mnt"
install_modules virtio virtio_ring virtio_pci_modern_dev virtio_pci_legacy_dev virtio_pci virtio_blk \
    ext4 jbd2 mbcache crc16 crc32c_generic libcrc32c
cat > "$root/init" <<'END'
#!/bin/busybox sh
/bin/busybox --install -s /bin
export PATH=/bin
mount -t proc none /proc; mount -t sysfs none /sys; mount -t devtmpfs none /dev
load_modules
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
pack
is_ready() { [ -S "$folder/nbd.sock" ]; }
serve --nbd "unix:$folder/nbd.sock" "$@"
boot "" -drive "file=nbd:unix:$folder/nbd.sock,format=raw,if=virtio,cache=none,discard=unmap"
