# Functions of guest.sh and the scripts beside it: a Linux guest under qemu, and a simulated drive.
# MODULES and KERNEL name the modules and image of a kernel other than the newest installed.

PATH=$PATH:/usr/sbin:/sbin
modules=${MODULES:-$(ls -d /lib/modules/*-amd64 2> /dev/null | tail -n 1)}
kernel=${KERNEL:-/boot/vmlinuz-${modules##*/}}
folder=$(mktemp -d)
root=$folder/root
server= servers=
trap 'kill $server $servers 2> /dev/null || true; rm -rf "$folder"' EXIT

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

# Puts what a guest needs that has the kernel's own NVMe target on memory, zoned or not, into its
# root, with a program nvmet: `nvmet null nullbN BYTES [ATTRIBUTE=VALUE...]` makes a device,
# `nvmet export NAME DEVICE` exports one as namespace 1 of the subsystem NAME at 127.0.0.1:4421.
install_nvme_target() {
    install_modules configfs null_blk nvmet nvmet-tcp
    echo nr_devices=0 > "$root/modules/null_blk.ko.options"
    cat > "$root/bin/nvmet" << 'END'
#!/bin/busybox sh
set -e
config=/sys/kernel/config
[ -d $config/nvmet ] || mount -t configfs none $config
set_all() { for it; do echo "${it#*=}" > "${it%%=*}"; done; }
case $1 in
    null)
        mkdir "$config/nullb/$2"
        cd "$config/nullb/$2"
        size=$(($3 >> 20))
        shift 3
        set_all blocksize=4096 memory_backed=1 size=$size "$@" power=1
        ;;
    export)
        port=$config/nvmet/ports/1
        if [ ! -d $port ]; then
            mkdir $port
            cd $port
            set_all addr_adrfam=ipv4 addr_trtype=tcp addr_traddr=127.0.0.1 addr_trsvcid=4421
        fi
        subsystem=$config/nvmet/subsystems/$2
        mkdir "$subsystem"
        mkdir "$subsystem/namespaces/1"
        cd "$subsystem"
        set_all attr_allow_any_host=1 "namespaces/1/device_path=$3" namespaces/1/enable=1
        ln -s "$subsystem" $port/subsystems/
        ;;
esac
END
    chmod +x "$root/bin/nvmet"
}

# Begins the program that the guest runs, with a function that ends it when a command fails. The
# rest is appended.
begin_init() {
    cat > "$root/init" << 'END'
#!/bin/busybox sh
/bin/busybox --install -s /bin
export PATH=/bin:/opt
mount -t proc none /proc; mount -t sysfs none /sys; mount -t devtmpfs none /dev
load_modules
nvme_host
word() { sed -n "s/.*$1=\([^ ]*\).*/\1/p" /proc/cmdline; }
step() {
    echo "guest: $*"
    "$@" || { echo "guest: failed: $*"; poweroff -f; }
}
# Connects to the drive NAME, one of drives=NAME:PORT,... on the command line.
connect() {
    port=$(word drives | tr , '\n' | sed -n "s/^$1://p")
    step nvme connect -t tcp -a 10.0.2.2 -s "$port" -n "nqn.2026-11.local.hybridsim:$1" -i 1
}
wait_for() { for _ in $(seq 20); do [ ! -e "$1" ] || return 0; sleep 1; done; }
echo "guest: $(uname -r)"
END
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

# The port at which the server of this log listens for NVMe over TCP.
port() { sed -n 's/.*tcp:\/\/127.0.0.1:\([0-9]*\),.*/\1/p' "$1"; }

# Serves a scenario by NVMe over TCP, as one of several servers: NAME SCENARIO OPTIONS. The
# subsystem, the files NAME.log and NAME.json, and the control socket NAME.sock have the name. The
# drive keeps no time: a host without think time leaves it none to empty its buffer.
start() {
    name=$1
    shift
    "$hybridsim" serve "$@" --nvme tcp://127.0.0.1:0 --nqn "nqn.2026-11.local.hybridsim:$name" \
        --control "unix:$folder/$name.sock" --time-scale 0 --json > "$folder/$name.json" \
        2> "$folder/$name.log" &
    servers="$servers $!"
    for _ in $(seq 600); do
        [ -z "$(port "$folder/$name.log")" ] || return 0
        kill -0 $! 2> /dev/null || break
        sleep 0.2
    done
    cat "$folder/$name.log" >&2
    exit 1
}

# Ends the servers that `start` started, which write their results.
stop() {
    # shellcheck disable=SC2086
    kill -INT $servers
    # shellcheck disable=SC2086
    wait $servers
    servers=
}

# Boots the guest with these words on the kernel's command line and then these options of qemu.
boot_guest() {
    append=$1
    shift
    timeout "${GUEST_TIMEOUT:-600}" qemu-system-x86_64 -machine "pc,accel=${ACCEL:-kvm:tcg}" -m 1024 \
        -nographic -no-reboot -nodefaults -serial stdio -kernel "$kernel" \
        -initrd "$folder/initrd" -append "console=ttyS0 quiet panic=-1 $append" "$@" \
        < /dev/null 2>&1 | tee "$folder/console"
}

# Boots the guest likewise, ends the server, and exits with whether the guest passed.
boot() {
    boot_guest "$@"
    kill -INT "$server" || true
    status=0
    wait "$server" || status=$?
    server=
    cat "$folder/serve.log"
    [ "$status" = 0 ] || exit "$status"
    cp "$folder/results.json" "${RESULTS:-/dev/null}"
    grep -q "guest: passed" "$folder/console"
}
