#!/usr/bin/env bash
# PostgreSQL under pgbench's TPC-B-like transactions: random reads, log writes with a flush per
# commit, and checkpoints.
# shellcheck disable=SC2034
source "$(dirname "$0")/common.sh"

IMAGE_SIZE=4G
MEMORY_MAX=384M
DIRTY_MAX=80M
SCALE=50 # about 750 MB
CLIENTS=4
RATE=500  # transactions a second, at random times
SECONDS_TO_RUN=60
SHARED_BUFFERS=64MB
CHECKPOINT=30s # the default of 5 min would leave checkpoints out of a recording this short
POSTGRES=${POSTGRES:-$(find /usr/lib/postgresql -name pg_ctl -printf '%h\n' | sort -V | tail -1)}

# The server refuses to run as root.
as_postgres() {
    runuser -u postgres -- env PGHOST="$PWD/data" "PATH=$POSTGRES:$PATH" "$@"
}

server() {
    as_postgres pg_ctl -D data -l data/server.log -w "$@" >/dev/null
}

prepare() {
    need runuser "$POSTGRES/pgbench"
    mkdir data
    chown postgres data
    as_postgres initdb --auth=trust -D data >/dev/null
    as_postgres tee -a data/postgresql.conf >/dev/null <<END
        listen_addresses = ''
        unix_socket_directories = '$PWD/data'
        shared_buffers = $SHARED_BUFFERS
        checkpoint_timeout = $CHECKPOINT
END
    server start
    as_postgres createdb bench
    as_postgres pgbench -q -i -s "$SCALE" bench 2>/dev/null
    server stop
}

run() {
    server start
    as_postgres pgbench -c "$CLIENTS" -j 2 -R "$RATE" -T "$SECONDS_TO_RUN" bench
    server stop
}

record
