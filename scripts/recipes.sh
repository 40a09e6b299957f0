#!/usr/bin/env bash
# Writes the recipes of conda-forge and Homebrew for a release.
#
#   scripts/recipes.sh ARCHIVE URL HOMEPAGE OUT
#
# ARCHIVE is the source distribution that users will download from URL.
set -euo pipefail
cd "$(dirname "$0")/.."
[ $# = 4 ] || { sed -n '2,6s/^# \{0,1\}//p' "$0" >&2; exit 2; }
archive=$1 url=$2 homepage=$3 out=$4
version=$(sed -n 's/^version = "\(.*\)"/\1/p' Cargo.toml | head -n 1)
hash=$(sha256sum "$archive" | cut -d ' ' -f 1)
for recipe in conda/recipe.yaml homebrew/hybridsim.rb; do
    mkdir -p "$out/$(dirname "$recipe")"
    sed -e "s|@VERSION@|$version|; s|@URL@|$url|; s|@SHA256@|$hash|; s|@HOMEPAGE@|$homepage|" \
        "packaging/$recipe" >"$out/$recipe"
    if grep '@[A-Z0-9]*@' "$out/$recipe"; then
        echo "$out/$recipe: a value is missing" >&2
        exit 1
    fi
done
