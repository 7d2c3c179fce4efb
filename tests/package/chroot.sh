#!/usr/bin/env bash
# Run something in a fresh Debian: chroot.sh SUITE DIR COMMAND...
# DIR is seen as /work there (a copy: nothing is written here), and COMMAND runs in it as root. Needs root
# and debootstrap; mounts are made in a private namespace, so nothing is left but what is removed here.
# 77: it can't be had here, with the reason on stderr.
set -euo pipefail
suite=$1
dir=$(readlink -f "$2")
shift 2

skip() {
    echo "skipped: $*" >&2
    exit 77
}
[ "$(id -u)" = 0 ] || skip "a chroot needs root"
command -v debootstrap >/dev/null || skip "debootstrap is not installed"
mirror=${DEBIAN_MIRROR:-http://deb.debian.org/debian}
[ -e "/usr/share/debootstrap/scripts/$suite" ] || skip "this debootstrap knows no $suite"

place=$(mktemp -d "${TMPDIR:-/tmp}/warder-chroot-XXXXXX")
trap 'rm -rf --one-file-system "$place"' EXIT
root=$place/root
debootstrap --variant=minbase "$suite" "$root" "$mirror" >"$place/log" 2>&1 || {
    tail -3 "$place/log" >&2
    skip "debootstrap $suite from $mirror failed"
}
# Apt's own settings (a proxy, say) are this machine's.
cp -r /etc/apt/apt.conf.d/. "$root/etc/apt/apt.conf.d/" 2>/dev/null || true
cp /etc/resolv.conf "$root/etc/resolv.conf" 2>/dev/null || true
mkdir "$root/work"
cp -a "$dir/." "$root/work"
chmod 755 "$root/work" # whoever runs there may not be root
# shellcheck disable=SC2016 # for the inner shell
unshare --mount --propagation private --fork sh -eu -c '
    root=$1
    shift
    mount --bind "$root" "$root" # a mount point, as / is elsewhere
    mount -t proc proc "$root/proc"
    mount --rbind /sys "$root/sys"
    mount -t tmpfs -o mode=1777 tmp "$root/tmp"
    mkdir -p "$root/dev/shm"
    mount -t tmpfs -o mode=1777 shm "$root/dev/shm"
    mount -t devpts -o newinstance,ptmxmode=0666,mode=0620 devpts "$root/dev/pts"
    ln -sf pts/ptmx "$root/dev/ptmx"
    cd "$root"
    pivot_root . .
    umount -l .
    cd /work
    exec env -i PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin \
        HOME=/root LANG=C.UTF-8 DEBIAN_FRONTEND=noninteractive CI=true "$@"
' sh "$root" "$@"
