#!/usr/bin/env bash
# Prints a recipe of packaging/ for a release.
#
#   scripts/recipes.sh RECIPE ARCHIVE URL HOMEPAGE
#
# RECIPE is conda/recipe.yaml or homebrew/hybridsim.rb; ARCHIVE is what users will download from
# URL: the source distribution for conda, the archive of the tag for Homebrew.
set -euo pipefail
if [ $# != 4 ]; then
    sed -n '2,7s/^# \{0,1\}//p' "$0" >&2
    exit 2
fi
root=$(dirname "$0")/..
version=$(sed -n 's/^version = "\(.*\)"/\1/p' "$root/Cargo.toml" | head -n 1)
hash=$(sha256sum "$2" | cut -d ' ' -f 1)
filled=$(sed "s|@VERSION@|$version|; s|@URL@|$3|; s|@SHA256@|$hash|; s|@HOMEPAGE@|$4|" \
    "$root/packaging/$1")
if grep '@[A-Z0-9]*@' <<<"$filled" >&2; then
    echo "$1: a value is missing" >&2
    exit 1
fi
echo "$filled"
