#!/usr/bin/env bash
# Installs Debian's Chromium for the browser test of the report. Without it the test is skipped.
set -euo pipefail
for name in "${HYBRIDSIM_CHROMIUM:-}" chromium chromium-browser google-chrome; do
    if [ -n "$name" ] && command -v "$name" >/dev/null 2>&1; then
        exit 0
    fi
done
if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null 2>&1; then
    echo "installing chromium for the report's browser test"
    if { apt-get update -qq && apt-get install -y -qq --no-install-recommends chromium; } \
        >/tmp/hybridsim-chromium.log 2>&1; then
        exit 0
    fi
    tail -n 3 /tmp/hybridsim-chromium.log
fi
echo "no chromium found: the report's browser test will be skipped"
