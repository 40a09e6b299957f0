#!/usr/bin/env bash
# Draws the pictures of README.md and docs/models/hybrid.md from reports of the present program, or of the
# one that HYBRIDSIM names.
set -euo pipefail
cd "$(dirname "$0")/.."
scripts/ensure-chromium.sh
program=${HYBRIDSIM:-cargo run --quiet --profile demo --locked --package hybridsim --}
for name in "${HYBRIDSIM_CHROMIUM:-}" chromium chromium-browser google-chrome; do
    if [ -n "$name" ] && command -v "$name" >/dev/null 2>&1; then
        browser=$name
        break
    fi
done
: "${browser:?no Chromium found; HYBRIDSIM_CHROMIUM may name it}"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# picture REPORT FIGURES WIDTH HEIGHT FILE
picture() {
    "$browser" --headless=new --no-sandbox --disable-gpu --hide-scrollbars \
        --virtual-time-budget=5000 --user-data-dir="$work/profile" --window-size="$3,$4" \
        --screenshot="$5" "file://$1#theme=light&only=$2" 2>/dev/null
    echo "$5"
}

make --silent demo DEMO="$work/demo" HYBRIDSIM="$program" >/dev/null
picture "$work/demo/report.html" cdf,ccdf,parts 1280 1080 docs/demo.png
picture "$work/demo/overload/report.html" percentiles,throughput,outstanding 1280 870 docs/demo-overload.png

$program compare examples/studies/laptop-disk.toml examples/studies/laptop-hybrid.toml \
    --out "$work/mail" >/dev/null
picture "$work/mail/report.html" cdf,ccdf 1280 450 docs/models/hybrid-mail.png
