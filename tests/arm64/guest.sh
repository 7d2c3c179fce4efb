#!/usr/bin/env bash
# Pass tests of a cross build on an emulated aarch64 machine under Debian's own kernel: guest.sh DIR BUILD
# [ctest's options that choose tests]. DIR is fetch.sh's. There is no network in it, and its disks are
# thrown away. 0: all passed; 1: some did not; 77: it can't be run here, with the reason on stderr.
set -euo pipefail
dir=$(readlink -f "$1")
build=$(readlink -f "$2")
shift 2
here=$(dirname "$(readlink -f "$0")")
source=$(dirname "$(dirname "$here")")
# WARDER_GUEST_ARGS: only these cases of Python tests ("-k NAME"), and all that they write.
limit=${WARDER_GUEST_SECONDS:-5400} # for all of it

skip() {
    echo "skipped: $*" >&2
    exit 77
}
command -v qemu-system-aarch64 >/dev/null || skip "qemu-system-arm is not installed"
[ -e "$dir/root.ext4" ] || skip "there is no guest in $dir (tests/arm64/fetch.sh)"
kernel=("$dir"/root/boot/vmlinuz-*)

place=$(mktemp -d "${TMPDIR:-/tmp}/warder-guest-XXXXXX")
trap 'rm -rf "$place"' EXIT
mkdir -p "$place/disk/tree/${build##*/}"
echo "$source" >"$place/disk/place"
(cd "$build" && ctest --show-only=json-v1 "$@") | python3 -c '
import json, os, sys
words = os.environ.get("WARDER_GUEST_ARGS", "")
listed = {"tests": json.load(sys.stdin)["tests"], "limit": 300, "tail": 20000, "words": words.split(), "verbose": bool(words)}
json.dump(listed, sys.stdout)' >"$place/disk/tests.json"
(cd "$source" && git ls-files -z | xargs -0 cp --parents -t "$place/disk/tree")
(cd "$build" && find . -type f -perm -100 ! -path '*/CMakeFiles/*' -print0 |
    xargs -0 cp --parents -t "$place/disk/tree/${build##*/}")
mke2fs -q -t ext4 -d "$place/disk" "$place/tree.ext4" 1G >/dev/null
rm -rf "$place/disk"

# Two disks that forget, a serial line, nothing else. The disks are of two kinds: the kernel numbers those of one kind
# as it happens to find them. icount: its clock counts instructions, a thousand million of them a second, however long
# that takes; so no time limit of a test depends on what else this machine does. pauth-impdef: pointers are signed by
# a quick hash. lsm=: Landlock, whatever the kernel's default.
TMPDIR=$place timeout --foreground -k 5 "$limit" qemu-system-aarch64 \
    -machine virt -icount shift=0 -cpu max,pauth-impdef=on -smp "${WARDER_GUEST_CPUS:-2}" -m 2048 \
    -nic none -display none -no-reboot -serial stdio -monitor none \
    -drive "file=$dir/root.ext4,format=raw,if=none,id=root,snapshot=on" -device nvme,drive=root,serial=root \
    -drive "file=$place/tree.ext4,format=raw,if=none,id=tree,snapshot=on" -device virtio-blk-pci,drive=tree \
    -kernel "${kernel[0]}" \
    -append "root=/dev/nvme0n1 rw console=ttyAMA0 quiet panic=-1 lsm=landlock,lockdown,yama init=/sbin/boot" \
    </dev/null | sed -u 's/\r$//' | tee "$place/console" || status=$?
end=$(sed -n 's/^arm64: end //p' "$place/console")
if [ -z "$end" ]; then
    [ "${status:-0}" != 124 ] || echo "more than $limit s" >&2
    echo "the guest did not come to the end of its tests" >&2
    exit 1
fi
read -r all failed <<<"$end"
echo "arm64: $((all - failed)) of $all passed"
[ "$failed" = 0 ]
