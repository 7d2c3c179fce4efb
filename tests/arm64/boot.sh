#!/bin/sh
# The guest's first process: what a program expects of a machine, then the tests, then off.
# The second disk has the tree that is tested, for the place where it lies on the host (its file `place`).
mount -t proc proc /proc
mount -t sysfs sys /sys
mountpoint -q /dev || mount -t devtmpfs dev /dev
mkdir -p /dev/pts /dev/shm
mount -t devpts -o newinstance,ptmxmode=0666,mode=0620,gid=5 devpts /dev/pts
mount -t tmpfs -o mode=1777 shm /dev/shm
mount -t securityfs security /sys/kernel/security
ln -sfn /proc/self/fd /dev/fd
for name in stdin:0 stdout:1 stderr:2; do ln -sfn "/proc/self/fd/${name#*:}" "/dev/${name%:*}"; done
ln -sfn pts/ptmx /dev/ptmx
ip link set lo up 2>/dev/null || python3 - <<'EOF'
import fcntl, socket, struct
s = socket.socket()
fcntl.ioctl(s, 0x8914, struct.pack("16sh14x", b"lo", 1))  # SIOCSIFFLAGS, IFF_UP
EOF
for module in drivers/block/virtio_blk net/unix/unix_diag fs/overlayfs/overlay; do # no depmod was run, for modprobe
    insmod /lib/modules/*/kernel/$module.ko*
done
mount -t ext4 /dev/vda /mnt
place=$(cat /mnt/place)
mkdir -p "$place"
mount --bind /mnt/tree "$place"
python3 -m compileall -q /usr/lib/python3.*/ >/dev/null # what fetch.sh could not
env -i PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin CI=true WARDER_SLOW=4 \
    python3 "$place/tests/arm64/run_tests.py" /mnt/tests.json
sync
echo o >/proc/sysrq-trigger
sleep 60
