#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# check-names names each shared name that does not say its room, each type, static name and file that stands too
# often; check-limits each line, file and function that is too long.  Usage: names.sh (from the root)
set -eu
names=$PWD/scripts/check-names
limits=$PWD/scripts/check-limits
tree=$(mktemp -d)
trap 'rm -rf "$tree"' EXIT
cd "$tree"
mkdir -p include/weft src/base src/text/chat src/kv examples cli
printf '0 base\n1 text\n1 kv\n2 text/chat\n3 cli\nnames base json\nnames kv store *_ref\n' >layers.txt
n=0
# expect NUMBER-OF-COMPLAINTS CHECK PATTERN FILE TEXT
expect() {
    printf '%b' "$5" >"$4"
    found=$("$2" . | grep -c "^$4:[0-9]*: .*$3" || true)
    rm "$4"
    n=$((n + 1))
    [ "$found" = "$1" ] || { echo "$4 with '$5': $found complaints of '$3', expected $1"; exit 1; }
}
expect 0 "$names" . src/base/a.c 'int weft__json_parse(int a)\n{\n    return a;\n}\n'
expect 0 "$names" . src/kv/a.c 'int weft__kv(void);\nint weft__kv_store_put(void);\nint weft__put_ref(void);\n'
expect 1 "$names" 'does not say its room' src/kv/a.c 'int weft__put(void);\n'
expect 1 "$names" 'as names of base do' src/kv/a.c 'int weft__json_put(void);\n'
expect 0 "$names" . src/kv/a.c 'static int weft__json_put(void);\n/* int weft__put(void); */\n'
expect 0 "$names" . src/text/chat/a.c 'int weft__chat_a(void);\nint weft__text_b(void);\n'
expect 2 "$names" 'does not say its room' src/kv/a.h '#define SIZE 1\nenum { WEFT__KV_A, WEFT__B = 2 };\n'
expect 1 "$names" 'type place does not' src/kv/a.h 'typedef struct place {\n    int x;\n} place;\n'
expect 1 "$names" 'type place does not' src/kv/a.h 'typedef float place __attribute__((vector_size(16)));\n'
expect 0 "$names" 'does not' src/kv/a.h 'typedef float kv_place __attribute__((vector_size(SIXTEEN)));\n'
expect 0 "$names" 'does not' src/kv/a.c 'typedef struct place {\n    int x;\n} place;\n'
printf "struct place {\n    int x;\n};\n" >src/base/b.c
expect 1 "$names" 'type place has a body in' src/kv/a.c 'struct place {\n    int y;\n};\n'
rm src/base/b.c
for i in 1 2 3 4 5; do printf 'static int take(void)\n{\n    return 1;\n}\n' >cli/$i.c; done
expect 1 "$names" 'static function take stands in 6 files' src/kv/a.c 'static int take(void)\n{\n    return 1;\n}\n'
rm cli/?.c
mkdir src/kv/disk && : >src/kv/disk/a.c
expect 1 "$names" 'has its name in one room' src/kv/a.c '\n'
rm -r src/kv/disk
expect 1 "$names" 'weft__gone is wrapped, and no source has it' src/kv/CMakeLists.txt 'options(-Wl,--wrap=weft__gone)\n'
expect 1 "$names" 'function sum does not say its room' src/kv/a.c 'int sum(int a);\n'
"$names" . >/dev/null || { echo "a tree without faults fails"; exit 1; }

git init -q .
# sized NUMBER-OF-COMPLAINTS PATTERN FILE TEXT
sized() {
    printf '%b' "$4" >"$3"
    git add -A
    expect "$1" "$limits" "$2" "$3" "$4"
}
lines() { awk -v n="$1" 'BEGIN { for (i = 0; i < n; i++) printf "    a++;\\n" }'; }
wide() { awk -v n="$1" 'BEGIN { for (i = 0; i < n; i++) printf "x" }'; }
spdx='// SPDX-License-Identifier: Apache-2.0\n'
sized 0 . src/kv/a.c "$spdx"
sized 1 'the first lines lack' src/kv/a.c 'int a;\n'
sized 0 . src/kv/a.c "$spdx//$(wide 118)\n"
sized 1 '121 columns' src/kv/a.c "$spdx//$(wide 119)\n"
sized 0 columns scripts.py "#$(wide 159)\n"
sized 1 '161 columns' scripts.py "#$(wide 160)\n"
sized 0 . src/kv/a.c "${spdx}void f(void)\n{\n$(lines 57)}\n"
sized 1 'f has 61 lines' src/kv/a.c "${spdx}void f(void)\n{\n$(lines 58)}\n"
sized 1 'f has 10 parameters' src/kv/a.c "${spdx}void f(int a, int b, int c, int d, int e, int f, int g, int h, int i, int (*j)(int, int));\n"
sized 0 '601 lines' src/kv/a_table.c "$spdx$(lines 600)"
sized 1 '601 lines' src/kv/a.c "$spdx$(lines 600)"
sized 0 . examples/a.c "$spdx$(lines 79)"
sized 1 '81 lines, not 30 to 80' examples/a.c "$spdx$(lines 80)"
sized 1 '29 lines, not 30 to 80' examples/a.c "$spdx$(lines 28)"
echo "names: $n cases as expected"
