#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The layer check accepts what layers.txt allows and names each line that breaks it, and each thread that is not
# started by base/thread.h.  Usage: layers.sh (from the root)
set -eu
check=$PWD/scripts/check-layers
tree=$(mktemp -d)
trap 'rm -rf "$tree"' EXIT
cd "$tree"
mkdir -p include/weft src/base src/quant src/mem src/kernels src/backend/cpu src/graph src/graph/ops src/graph/order cli plugins
cat >layers.txt <<'END'
0 base
1 quant
1 mem
2 kernels uses base quant used-by backend/cpu
3 backend
4 graph uses base mem
5 graph/ops uses base
6 graph/order uses graph
7 cli uses base/json.h
7 plugins uses nothing
END
touch include/weft/weft.h src/base/alloc.h src/base/json.h src/quant/quant.h src/mem/mem.h src/kernels/kernels.h src/graph/graph.h \
    src/quant/own.h src/graph/ops/ops.h src/graph/ops/own.h src/graph/order/order.h

# expect NUMBER-OF-COMPLAINTS FILE INCLUDE
expect() {
    printf '/* one */\n#include <stdio.h>\n#  include "%s"\n' "$3" >"$2"
    found=$("$check" . | grep -c "^$2:3: #include \"$3\"" || true)
    rm "$2"
    [ "$found" = "$1" ] || { echo "$2 includes $3: $found complaints, expected $1"; exit 1; }
}
expect 0 src/quant/a.c base/alloc.h
expect 0 src/quant/a.c own.h
expect 0 src/quant/a.c weft/weft.h
expect 1 src/base/a.c quant/quant.h
expect 1 src/quant/a.c mem/mem.h
expect 1 src/quant/a.c ../mem/mem.h
expect 1 src/quant/a.c absent.h
expect 0 src/kernels/a.c quant/quant.h
expect 1 src/kernels/a.c mem/mem.h
expect 0 src/backend/cpu/a.c kernels/kernels.h
expect 1 src/backend/a.c kernels/kernels.h
expect 1 src/graph/a.c kernels/kernels.h
expect 0 src/graph/a.c mem/mem.h
expect 0 src/graph/ops/a.c own.h
expect 0 src/graph/ops/a.c base/alloc.h
expect 1 src/graph/ops/a.c graph/graph.h
expect 1 src/graph/ops/a.c mem/mem.h
expect 1 src/graph/a.c graph/ops/ops.h
expect 0 src/graph/order/a.c graph/graph.h
expect 1 src/graph/order/a.c graph/ops/ops.h
expect 1 src/graph/ops/a.c graph/order/order.h
expect 0 cli/a.c base/json.h
expect 1 cli/a.c base/alloc.h
expect 0 plugins/a.c weft/weft.h
expect 1 plugins/a.c base/json.h
# thread NUMBER-OF-COMPLAINTS FILE
thread() {
    printf '#include <pthread.h>\nint why = pthread_create(&t, NULL, fn, arg);\n' >"$2"
    found=$("$check" . | grep -c "^$2:2: starts a thread" || true)
    rm "$2"
    [ "$found" = "$1" ] || { echo "$2 starts a thread: $found complaints, expected $1"; exit 1; }
}
mkdir -p tests
thread 1 src/kernels/a.c
thread 1 cli/a.c
thread 0 src/base/thread.c
thread 0 tests/a.c
printf '#include "quant/quant.h"\n' >src/base/a.c
if "$check" . >/dev/null; then echo "a violation did not fail the check"; exit 1; fi
rm src/base/a.c
"$check" . >/dev/null
echo "layers: 30 cases as expected"
