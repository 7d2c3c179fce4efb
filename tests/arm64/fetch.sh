#!/usr/bin/env bash
# What a build and a test for aarch64 need, from Debian, without a change to this machine: fetch.sh DIR.
# DIR/tools: the cross compiler (its packages can't be installed beside gcc-multilib). DIR/root: an arm64
# Debian with the libraries, the programs that the tests run and a kernel; unpacked, nothing of it was run.
# DIR/root.ext4: the same, as the disk that tests/arm64/guest.sh starts from. Needs root, for its owners.
# 77: it can't be had here, with the reason on stderr.
set -euo pipefail
dir=$(readlink -m "$1")
suite=bookworm
mirror=${DEBIAN_MIRROR:-http://deb.debian.org/debian}
here=$(dirname "$(readlink -f "$0")")

compiler=(gcc-12-aarch64-linux-gnu cpp-12-aarch64-linux-gnu libgcc-12-dev-arm64-cross)
libraries=(libc6-dev libcurl4-openssl-dev libcjson-dev libedit-dev libmd4c-dev libunwind-dev libzstd-dev libcriterion-dev)
programs=(base-files base-passwd bash coreutils dash diffutils e2fsprogs findutils grep gzip hostname kmod libc-bin login mawk
    mount passwd perl-base procps python3 sed tar util-linux gcc git make strace)
# The newest kernel there is for it: Landlock's rights have come one by one.
kernel=linux-image-cloud-arm64/$suite-backports

skip() {
    echo "skipped: $*" >&2
    exit 77
}
[ "$(id -u)" = 0 ] || skip "the guest's disk needs root to make"
wanted=$(sha256sum "$0" "$here/boot.sh" | sha256sum)
[ "$(cat "$dir/of" 2>/dev/null)" != "$wanted" ] || exit 0
rm -rf "$dir"
mkdir -p "$dir/root"

# An apt of its own, which knows nothing of this machine but its proxy: apt_of ARCH ARGS...
apt_of() {
    local arch=$1 place=$dir/apt-$1
    shift
    if [ ! -e "$place" ]; then
        mkdir -p "$place"/{etc/preferences.d,lists/partial,archives/partial}
        : >"$place/status"
        for name in "$suite" "$suite-backports"; do
            echo "deb [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] $mirror $name main"
        done >"$place/etc/sources.list"
        cat >"$place/conf" <<EOF
Dir::State::status "$place/status";
Dir::State::lists "$place/lists";
Dir::Cache "$place";
Dir::Etc::sourcelist "$place/etc/sources.list";
Dir::Etc::sourceparts "/dev/null";
Dir::Etc::preferencesparts "$place/etc/preferences.d";
APT::Architecture "$arch";
APT::Architectures { "$arch"; };
APT::Install-Recommends "false";
APT::Sandbox::User "root";
Acquire::Languages "none";
EOF
        APT_CONFIG=$place/conf apt-get update -qq
    fi
    APT_CONFIG=$place/conf apt-get -qq -y "$@" >/dev/null
}

unpack() { # PACKAGE... into the directory named last
    local into=${*: -1}
    for deb in "${@:1:$#-1}"; do
        # Not dpkg-deb -x: that would put a directory where /lib is a symlink.
        dpkg-deb --fsys-tarfile "$deb" | tar -x --keep-directory-symlink -C "$into"
    done
}

{
    (mkdir "$dir/tools" "$dir/debs" && cd "$dir/debs" && apt_of "$(dpkg --print-architecture)" download "${compiler[@]}") &&
        apt_of arm64 install --download-only "${libraries[@]}" "${programs[@]}" "$kernel"
} 2>"$dir/log" || {
    tail -3 "$dir/log" >&2
    skip "the packages could not be fetched from $mirror"
}
unpack "$dir"/debs/*.deb "$dir/tools"

root=$dir/root
mkdir -p "$root"/usr/{bin,sbin,lib}
mkdir -p "$root"/{mnt,opt,srv}
for name in bin sbin lib; do ln -s "usr/$name" "$root/$name"; done
unpack "$dir"/apt-arm64/archives/*.deb "$root"
# What the packages' scripts would have done, as far as somebody looks at it.
cp "$root/usr/share/base-passwd/passwd.master" "$root/etc/passwd"
cp "$root/usr/share/base-passwd/group.master" "$root/etc/group"
ln -s mawk "$root/usr/bin/awk"
ln -s gcc "$root/usr/bin/cc"
echo "127.0.0.1 localhost arm64" >"$root/etc/hosts"
install -m 755 "$here/boot.sh" "$root/sbin/boot"
rm -rf "$root"/usr/share/{doc,man,locale,info}
pythons=("$root"/usr/bin/python3.[0-9]*)
python=${pythons[0]##*/}
# Python's own bytes are of a version, not of a machine.
! command -v "$python" >/dev/null || "$python" -m compileall -q -s "$root" -p / "$root/usr/lib/$python" >/dev/null || true

mke2fs -q -t ext4 -d "$root" "$dir/root.ext4" 2G >/dev/null
rm -rf "$dir"/{debs,apt-*}
echo "$wanted" >"$dir/of"
