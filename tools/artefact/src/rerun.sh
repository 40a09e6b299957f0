#!/bin/sh
# Checks the files of this archive against MANIFEST, runs its scenarios again, and compares the
# results with the stored ones: all of them, or those in the folders that are named.
# HYBRIDSIM is the program; without it, hybridsim from PATH. Exit code 0: everything is equal.
set -u
export LC_ALL=C

program=$(command -v "${HYBRIDSIM:-hybridsim}") || {
    echo "there is no program ${HYBRIDSIM:-hybridsim}: README.md says how to install it" >&2
    exit 2
}
case $program in
/*) ;;
*) program=$PWD/$program ;;
esac
cd "$(dirname "$0")" || exit 2
work=$(mktemp -d) || exit 2
trap 'rm -rf "$work"' EXIT
trap 'exit 130' INT TERM
failures=0

fail() {
    echo "$1"
    failures=$((failures + 1))
}

sum() {
    if command -v sha256sum >/dev/null; then sha256sum <"$1"; else shasum -a 256 <"$1"; fi |
        cut -d ' ' -f 1
}

check_files() {
    count=0
    while read -r hash bytes path; do
        if [ ! -f "$path" ]; then
            fail "$path: absent: it has $bytes bytes and the SHA-256 $hash"
        elif [ "$(sum "$path")" != "$hash" ]; then
            fail "$path: damaged: its SHA-256 is not the one in MANIFEST"
        else
            count=$((count + 1))
        fi
    done <MANIFEST
    echo "$count files are as in MANIFEST"
}

# Results without what depends on the computer, on the build, or on where files are, and without
# remarks on keys, which differ where a scenario spells out every value.
stable() {
    sed '/^  "warnings": \[$/,/^  \]/d' "$1" | grep -Ev \
        '^ *"(warnings|wall_s|requests_per_wall_s|peak_rss_bytes|scenario|trace|hybridsim|sources)": [^{]'
}

line() {
    grep "^ *\"$1\": \"" "$2" | head -n 1 | cut -d '"' -f 4
}

without_paths() {
    sed 's|[^ ]*/||g'
}

# $1: a folder with a scenario, and its results or the error with which it ends.
rerun() {
    folder=$1
    set -- run "$folder/scenario.toml" --json --progress never
    # A run with a folder for results measures more than a point of a sweep.
    case $folder in
    runs/*) set -- "$@" --out "$work/out" --force ;;
    esac
    if grep -qs '"slowdown": [0-9]' "$folder/results.json"; then set -- "$@" --slowdown; fi
    "$program" "$@" >"$work/results.json" 2>"$work/log"
    code=$?
    if [ -f "$folder/error.txt" ]; then
        stored=$(head -n 1 "$folder/error.txt" | without_paths)
        if [ $code -ne 0 ] && without_paths <"$work/log" | grep -qF "$stored"; then
            echo "$folder: equal: fails as stored"
        else
            fail "$folder: differs: stored: $stored"
        fi
        return
    fi
    if ! grep -q '^  "fingerprint": "' "$work/results.json"; then
        fail "$folder: no results: $(grep -v '^note' "$work/log" | head -n 1)"
        return
    fi
    stable "$folder/results.json" >"$work/stored"
    stable "$work/results.json" >"$work/new"
    if cmp -s "$work/stored" "$work/new"; then
        echo "$folder: equal: fingerprint $(line fingerprint "$work/new")"
    else
        difference=$(diff "$work/stored" "$work/new" | sed 's/  *//' |
            awk '/^</ && !a { a = $0 } /^>/ && !b { b = $0 } END { print a " " b }')
        fail "$folder: differs: stored <, new >: $difference"
    fi
    if [ "$(line sources "$folder/results.json")" != "$(line sources "$work/results.json")" ]; then
        : >"$work/other-version"
    fi
}

if ! grep -qxF "$("$program" --version)" VERSION; then
    echo "warning: this is $("$program" --version), the results are of $(cat VERSION)" >&2
fi
check_files
if [ $# -eq 0 ]; then set -- runs/* sweeps/*/points/*; fi
for folder; do
    # A pattern without a match stays one.
    case $folder in
    *'*') ;;
    *) rerun "${folder%/}" ;;
    esac
done
if [ -f "$work/other-version" ]; then
    echo "warning: the program is built from other code than the one that wrote the results" >&2
fi
if [ $failures -ne 0 ]; then
    echo "$failures differ or are absent"
    exit 1
fi
echo "everything is equal"
