#!/usr/bin/env bash
# Work with a repository of a few hundred MB: clone, switch between near and distant versions,
# search, commit, collect garbage.
# shellcheck disable=SC2034
source "$(dirname "$0")/common.sh"

IMAGE_SIZE=4G
MEMORY_MAX=768M
DIRTY_MAX=150M
# Each version is a commit and a tag, made of these folders of the kernel source. The first two are
# near each other (the same stable series), the third is two years away.
OLD=linux-source-6.1=6.1.176-1
NEW=linux-source-6.1
FAR=linux-source-6.12
FOLDERS=(arch/x86 block drivers/ata drivers/md drivers/net drivers/nvme drivers/scsi fs include
    kernel mm net)

commit_version() {
    local package=$1 tag=$2
    linux_source "$package" ../tree.tar.xz
    git rm -rq --ignore-unmatch .
    # GNU tar stores the files under linux-source-VERSION/.
    tar -xf ../tree.tar.xz --strip-components=1 --wildcards "${FOLDERS[@]/#/linux-source-*/}"
    rm ../tree.tar.xz
    git add --all
    git commit -q -m "$tag"
    git tag "$tag"
}

prepare() {
    need git
    export GIT_AUTHOR_NAME=record GIT_AUTHOR_EMAIL=record@example.org
    export GIT_COMMITTER_NAME=record GIT_COMMITTER_EMAIL=record@example.org
    git init -q -b main origin
    (
        cd origin
        git config core.compression 1
        git config gc.auto 0
        commit_version "$OLD" old
        commit_version "$NEW" new
        commit_version "$FAR" far
        git repack -adq
    )
    # As on a server: only the history, no files.
    mv origin/.git origin.git
    rm -rf origin
    git -C origin.git config core.bare true
}

run() {
    export GIT_AUTHOR_NAME=record GIT_AUTHOR_EMAIL=record@example.org
    export GIT_COMMITTER_NAME=record GIT_COMMITTER_EMAIL=record@example.org
    git clone -q "file://$PWD/origin.git" clone
    cd clone
    git config advice.detachedHead false
    git checkout -q new
    git status --short
    git checkout -q old
    git switch -q -c topic far
    git grep -c mutex_lock >/dev/null
    # A change across the tree, as a rename of a function makes.
    git grep -l mutex_lock -- fs net | xargs sed -i s/mutex_lock/mutex_take/
    git commit -q -a -m "Rename a function"
    git checkout -q new
    git checkout -q topic
    git gc -q
}

record
