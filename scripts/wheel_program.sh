#!/usr/bin/env bash
# Puts the program into a wheel, in place of the command that starts Python, and prints the path of
# the new wheel.
#
#   scripts/wheel_program.sh WHEEL PROGRAM OUT
set -euo pipefail
wheel=$1 program=$2 out=$3

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/venv" 2> /dev/null || python -m venv "$work/venv"
tools=$work/venv/bin
[ -d "$tools" ] || tools=$work/venv/Scripts
"$tools/python" -m pip install --quiet --disable-pip-version-check wheel==0.45.1
"$tools/python" -m wheel unpack --dest "$work/unpacked" "$wheel" > /dev/null
package=$(echo "$work"/unpacked/*)
rm "$package"/*.dist-info/entry_points.txt
scripts=$package/$(basename "$package").data/scripts
mkdir -p "$scripts" "$out"
cp "$program" "$scripts"
"$tools/python" -m wheel pack --dest-dir "$out" "$package" > /dev/null
ls "$out/$(basename "$wheel")"
