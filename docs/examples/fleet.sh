#!/bin/sh
# fleet.sh TRACE...: one policy for what many traces did. Each is learned from by itself, as many at
# a time as there are processors, and what comes of it is merged: in whatever order, in however many
# steps, the result is the same. With --sshlogin, or in a CI's matrix, the traces stay where they are.
set -eu
warder=${WARDER:-warder}
parts=$(mktemp -d)
trap 'rm -rf "$parts"' EXIT
parallel "$warder learn {} > $parts/{#}.policy" ::: "$@"
"$warder" policy merge "$parts"/*.policy
