#!/usr/bin/env bash
# Installs a wheel in a new environment, with no compiler on the path, and runs the first commands
# of the tutorial with it. Prints how long a user waits.
#
#   scripts/try_wheel.sh WHEEL
set -euo pipefail
wheel=$(realpath "$1")
python=$(command -v "${PYTHON:-python3}")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
export PATH="$work/venv/bin:/usr/bin:/bin" HYBRIDSIM_CACHE="$work/cache"
cd "$work"
if command -v cargo || command -v rustc; then
    echo "a Rust compiler is on the path" >&2
    exit 1
fi
begin=$(date +%s)
"$(realpath "$python")" -m venv venv
venv/bin/pip install --quiet --disable-pip-version-check "$wheel"
installed=$(date +%s)
hybridsim --version
if head --bytes 2 venv/bin/hybridsim | grep --quiet '#!'; then
    echo "the command is a script, not the program" >&2
    exit 1
fi
hybridsim examples .
hybridsim run examples/hybrid.toml --progress never > /dev/null
hybridsim run examples/ssd.toml --out out --progress never
test -s out/report.html
python -c "import hybridsim; print(len(hybridsim.list('ftl')), 'FTLs')"
python -m hybridsim --version
end=$(date +%s)
echo "installed in $((installed - begin)) s, first results after $((end - begin)) s"
