#!/bin/sh
# What the Dockerfile runs, and what a machine without containers runs by hand; each step by its name.
#
#   install.sh users                   two users: hubbub-rows has the rows, hubbub-front answers HTTP; one group
#   install.sh program SOURCE          hubbub and what the service needs, into $PREFIX (/opt/hubbub)
#   install.sh folders                 /var/lib/hubbub for the rows' user, /run/hubbub between the two
#
# ROOT: another root folder than /, for a test. PIP: more options of pip.
set -eu
ROOT="${ROOT:-}"
PREFIX="${PREFIX:-/opt/hubbub}"

users() {
    groupadd ${ROOT:+--prefix "$ROOT"} --system --force hubbub
    for user in hubbub-rows hubbub-front; do
        if ! grep -q "^$user:" "$ROOT/etc/passwd"; then
            useradd ${ROOT:+--prefix "$ROOT"} --system --gid hubbub --no-create-home \
                --home-dir /nonexistent --shell /usr/sbin/nologin "$user"
        fi
    done
}

program() {
    python3 -c 'import sys; sys.exit("hubbub needs Python 3.11 or newer" if sys.version_info < (3, 11) else 0)'
    python3 -m venv "$PREFIX"
    # shellcheck disable=SC2086  (PIP holds several options)
    "$PREFIX/bin/python" -m pip install --disable-pip-version-check --no-cache-dir ${PIP:-} "$1[serve,postgres]"
    "$PREFIX/bin/hubbub" --version
}

number() { # of a user or a group, in the files of that root
    sed -n "s/^$2:[^:]*:\([0-9]*\):.*/\1/p" "$ROOT/etc/$1"
}

folders() {
    rows="$(number passwd hubbub-rows)"
    group="$(number group hubbub)"
    if [ -z "$rows" ] || [ -z "$group" ]; then
        echo "there is no user hubbub-rows yet: run the step users first" >&2
        exit 1
    fi
    install -d -m 0700 -o "$rows" -g "$group" "$ROOT/var/lib/hubbub"
    install -d -m 2750 -o "$rows" -g "$group" "$ROOT/run/hubbub"
}

case "${1:-}" in
    users) users ;;
    program) program "${2:?name the wheel, or the folder of the source}" ;;
    folders) folders ;;
    *) sed -n '2,9s/^# \{0,1\}//p' "$0" >&2; exit 2 ;;
esac
