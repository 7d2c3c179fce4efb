#!/usr/bin/env bash
# Build the Debian packages: package.sh BUILD_DIR. The same sources give the same bytes, wherever they
# lie and whenever they are built (SOURCE_DATE_EPOCH; default: the last commit's time).
set -euo pipefail
source=$(dirname "$(dirname "$(readlink -f "$0")")")
build=$1
: "${SOURCE_DATE_EPOCH:=$(git -C "$source" log -1 --format=%ct 2>/dev/null || stat -c %Y "$source/CMakeLists.txt")}"
export SOURCE_DATE_EPOCH
umask 022
cmake -S "$source" -B "$build" -G Ninja -Wno-dev -DCMAKE_INSTALL_PREFIX=/usr -DWARDER_TESTS=OFF \
    -DCMAKE_BUILD_TYPE=RelWithDebInfo \
    -DCMAKE_C_FLAGS="-ffile-prefix-map=$source=. -ffile-prefix-map=$(readlink -f "$(dirname "$build")")/$(basename "$build")=build" \
    >/dev/null
ninja -C "$build" --quiet >&2
rm -rf "$build/packages"
(cd "$build" && cpack -G DEB -B packages >cpack.log 2>&1) || {
    cat "$build/cpack.log" >&2
    exit 1
}
rm -rf "$build/packages/_CPack_Packages"
ls "$build"/packages/*.deb
