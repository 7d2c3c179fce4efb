#!/bin/sh
# In a fresh Debian, the packages beside this directory: they install, run as an ordinary user, and leave nothing.
set -eu
cd /work
apt-get update -qq
apt-get install -y -qq --no-install-recommends ./warder_*.deb >/dev/null 2>&1
warder --version
cd /tmp
mkdir home project && chown 65534:65534 home project && cd project
as_nobody() { setpriv --reuid=65534 --regid=65534 --clear-groups env HOME=/tmp/home "$@"; }
as_nobody warder doctor
as_nobody warder run -- sh -c 'echo works >file && cat file'
if as_nobody warder run --on-denial report -- cat /var/log/dpkg.log; then
    echo "what is outside could be read" >&2
    exit 1
fi
cd /work
apt-get install -y -qq --no-install-recommends ./libwarder-dev_*.deb gcc libc6-dev pkg-config >/dev/null 2>&1
[ -e "$(pkg-config --variable=includedir warder)/warder.h" ]
# shellcheck disable=SC2046 # these are words
cc /usr/share/doc/libwarder-dev/examples/ask.c $(pkg-config --static --cflags --libs warder) -o /tmp/ask
cd /tmp/project
echo y | as_nobody /tmp/ask sh -c 'echo the example works'
dpkg -L warder libwarder-dev | sort -u >/tmp/files
dpkg --purge warder libwarder-dev >/dev/null
left=$(while read -r f; do [ -d "$f" ] || [ ! -e "$f" ] || echo "$f"; done </tmp/files)
[ -z "$left" ] || {
    echo "left behind: $left" >&2
    exit 1
}
echo "installed, ran and purged"
