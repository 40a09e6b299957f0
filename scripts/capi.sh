#!/bin/sh
# Installs the C interface: scripts/capi.sh PREFIX [PROFILE]
#
# The header goes into PREFIX/include, the libraries into PREFIX/lib, and hybridsim.pc, by which
# pkg-config finds them, into PREFIX/lib/pkgconfig.
set -eu

prefix=${1:?usage: scripts/capi.sh PREFIX [PROFILE]}
profile=${2:-release}
case $prefix in
    /*) ;;
    *) prefix=$PWD/$prefix ;;
esac
cd "$(dirname "$0")/.."
cargo rustc --locked --profile "$profile" --package hybridsim-capi --lib \
    --crate-type cdylib,staticlib
built=${CARGO_TARGET_DIR:-target}/$profile
[ "$profile" != dev ] || built=${CARGO_TARGET_DIR:-target}/debug
version=$(sed -n 's/^version = "\(.*\)"/\1/p' Cargo.toml | head -n 1)

install -d "$prefix/include" "$prefix/lib/pkgconfig"
install -m 644 crates/capi/include/hybridsim.h "$prefix/include/"
for library in "$built"/libhybridsim_c.so "$built"/libhybridsim_c.dylib "$built"/libhybridsim_c.a
do
    [ ! -e "$library" ] || install -m 644 "$library" "$prefix/lib/"
done
cat > "$prefix/lib/pkgconfig/hybridsim.pc" <<END
prefix=$prefix
includedir=\${prefix}/include
libdir=\${prefix}/lib

Name: hybridsim
Description: A simulated storage system that a program steps
Version: $version
Cflags: -I\${includedir}
Libs: -L\${libdir} -lhybridsim_c
Libs.private: -lpthread -ldl -lm
END
