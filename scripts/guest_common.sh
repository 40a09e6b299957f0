# Functions of guest.sh and nvme_guest.sh: a Linux guest under qemu beside a simulated drive.
# MODULES and KERNEL name the modules and image of a kernel other than the newest installed.

PATH=$PATH:/usr/sbin:/sbin
modules=${MODULES:-$(ls -d /lib/modules/*-amd64 2> /dev/null | tail -n 1)}
kernel=${KERNEL:-/boot/vmlinuz-${modules##*/}}
folder=$(mktemp -d)
root=$folder/root
server=
trap 'rm -rf "$folder"; [ -z "$server" ] || kill "$server" 2> /dev/null || true' EXIT

# Skips without these programs or files.
need() {
    for needed; do
        command -v "$needed" > /dev/null || [ -r "$needed" ] || {
            echo "skipped: \`$needed\` is missing" >&2
            exit 77
        }
    done
}

# Puts busybox and these programs, with their libraries, into the guest's root.
install_programs() {
    mkdir -p "$root/bin" "$root/opt" "$root/dev" "$root/proc" "$root/sys" "$root/tmp" "$root/modules"
    cp "$(command -v busybox)" "$root/bin/busybox"
    for program; do
        path=$(command -v "$program")
        cp "$path" "$root/opt/"
        ldd "$path" | grep -o '/[^ )]*' | sort -u | while read -r library; do
            mkdir -p "$root$(dirname "$library")"
            cp -L "$library" "$root$library"
        done
    done
}

# Puts these kernel modules into the guest's root, with a program load_modules that takes their
# options from files MODULE.ko.options beside them.
install_modules() {
    for module; do
        find "$modules" -name "$module.ko*" -exec cp {} "$root/modules/" \;
    done
    find "$root/modules" -name "*.xz" -exec xz -d {} \;
    cat > "$root/bin/load_modules" << 'END'
#!/bin/busybox sh
# Dependencies load first: those that miss one are tried again.
for round in 1 2 3 4 5; do
    for file in /modules/*.ko; do insmod "$file" $(cat "$file.options" 2> /dev/null) 2> /dev/null; done
done
END
    chmod +x "$root/bin/load_modules"
}

# Puts what connects to drives by NVMe over TCP into the guest's root, with a program nvme_host that
# brings up the network and names the host.
install_nvme_host() {
    install_programs nvme
    mkdir -p "$root/etc/nvme"
    install_modules e1000 crc32c_generic crc32c-intel libcrc32c nvme-common nvme-core \
        nvme-fabrics nvme-tcp crc64 crc-t10dif crct10dif_common crct10dif_generic t10-pi \
        crc64-rocksoft crc64_rocksoft_generic "$@"
    cat > "$root/bin/nvme_host" << 'END'
#!/bin/busybox sh
ip link set lo up; ip link set eth0 up; ip addr add 10.0.2.15/24 dev eth0
echo "nqn.2014-08.org.nvmexpress:uuid:11111111-2222-3333-4444-555555555555" > /etc/nvme/hostnqn
echo "11111111-2222-3333-4444-555555555555" > /etc/nvme/hostid
END
    chmod +x "$root/bin/nvme_host"
}

# Packs the root.
pack() {
    chmod +x "$root/init"
    (cd "$root" && find . | cpio --quiet -o -H newc | gzip -1) > "$folder/initrd"
}

# Serves the scenario with these options until `is_ready` succeeds.
serve() {
    "$hybridsim" serve "$scenario" --json "$@" > "$folder/results.json" 2> "$folder/serve.log" &
    server=$!
    for _ in $(seq 300); do
        ! is_ready || break
        kill -0 "$server" 2> /dev/null || { cat "$folder/serve.log" >&2; exit 1; }
        sleep 0.2
    done
}

# Boots the guest with these words on the kernel's command line and then these options of qemu,
# ends the server, and exits with whether the guest passed.
boot() {
    append=$1
    shift
    timeout "${GUEST_TIMEOUT:-600}" qemu-system-x86_64 -machine "pc,accel=${ACCEL:-kvm:tcg}" -m 1024 \
        -nographic -no-reboot -nodefaults -serial stdio -kernel "$kernel" \
        -initrd "$folder/initrd" -append "console=ttyS0 quiet panic=-1 $append" "$@" \
        < /dev/null 2>&1 | tee "$folder/console"
    kill -INT "$server" || true
    status=0
    wait "$server" || status=$?
    server=
    cat "$folder/serve.log"
    [ "$status" = 0 ] || exit "$status"
    cp "$folder/results.json" "${RESULTS:-/dev/null}"
    grep -q "guest: passed" "$folder/console"
}
