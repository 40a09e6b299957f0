#!/usr/bin/env bash
# Record the workloads named, or all of them:  [OUT=DIR] [SCRATCH=DIR] record.sh [WORKLOAD ...]
set -euo pipefail

HERE=$(cd "$(dirname "$0")" && pwd)
ALL=(unpack media mail sqlite pgbench git compile browser)

[ $# -gt 0 ] || set -- "${ALL[@]}"
for workload in "$@"; do
    [ -x "$HERE/$workload.sh" ] || {
        echo "record.sh: no workload '$workload'; there are: ${ALL[*]}" >&2
        exit 2
    }
done
for workload in "$@"; do
    "$HERE/$workload.sh"
done
