#!/bin/sh
# The guest's first process: what a program expects of a machine, then the tests, then off.
# The second part of the disk has the tree that is tested, for the place where it lies on the host (its file `place`).
mount -t proc proc /proc
mount -t sysfs sys /sys
mountpoint -q /dev || mount -t devtmpfs dev /dev
mkdir -p /dev/pts /dev/shm
mount -t devpts -o newinstance,ptmxmode=0666,mode=0620,gid=5 devpts /dev/pts
mount -t tmpfs -o mode=1777 shm /dev/shm
mount -t securityfs security /sys/kernel/security
ln -sfn /proc/self/fd /dev/fd
ln -sfn pts/ptmx /dev/ptmx
ip link set lo up 2>/dev/null || python3 - <<'EOF'
import fcntl, socket, struct
s = socket.socket()
fcntl.ioctl(s, 0x8914, struct.pack("16sh14x", b"lo", 1))  # SIOCSIFFLAGS, IFF_UP
EOF
mount -t ext4 /dev/nvme0n2 /mnt
place=$(cat /mnt/place)
mkdir -p "$place"
mount --bind /mnt/tree "$place"
env -i PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin CI=true WARDER_SLOW=16 \
    python3 "$place/tests/arm64/run_tests.py" /mnt/tests.json
sync
echo o >/proc/sysrq-trigger
sleep 60
