# SPDX-License-Identifier: Apache-2.0
# Writes a C file with the bytes of another: `const char NAME[]`, NUL-terminated, and `const size_t NAME_n`.
# cmake -DIN=F -DOUT=F.c -DNAME=n -P embed.cmake
file(READ ${IN} hex HEX)
string(REGEX REPLACE "([0-9a-f][0-9a-f])" "0x\\1," bytes "${hex}")
string(REGEX REPLACE
    "(0x..,0x..,0x..,0x..,0x..,0x..,0x..,0x..,0x..,0x..,0x..,0x..,0x..,0x..,0x..,0x..,)" "\\1\n" bytes "${bytes}")
file(WRITE ${OUT}
    "#include <stddef.h>\n\nextern const char ${NAME}[];\nextern const size_t ${NAME}_n;\n"
    "const char ${NAME}[] = {\n${bytes}0};\nconst size_t ${NAME}_n = sizeof ${NAME} - 1;\n")
