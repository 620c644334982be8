# SPDX-License-Identifier: Apache-2.0
# This machine's compiler with headers and libraries of Debian 11, which `scripts/sysroot dist` unpacks: what it makes
# runs with any C library since. Its other libraries lie beside it (scripts/dist), and are found by where it lies.
get_filename_component(WEFT_SYSROOT ${CMAKE_CURRENT_LIST_DIR}/../build-dist/sysroot ABSOLUTE)
set(CMAKE_C_COMPILER gcc)
set(CMAKE_SYSROOT ${WEFT_SYSROOT})
set(CMAKE_FIND_ROOT_PATH ${WEFT_SYSROOT})
set(CMAKE_FIND_ROOT_PATH_MODE_PROGRAM NEVER)
set(CMAKE_FIND_ROOT_PATH_MODE_LIBRARY ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_INCLUDE ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_PACKAGE ONLY)
execute_process(COMMAND gcc -print-multiarch OUTPUT_VARIABLE arch OUTPUT_STRIP_TRAILING_WHITESPACE)
set(ENV{PKG_CONFIG_LIBDIR} ${WEFT_SYSROOT}/usr/lib/${arch}/pkgconfig:${WEFT_SYSROOT}/usr/share/pkgconfig)
set(ENV{PKG_CONFIG_SYSROOT_DIR} ${WEFT_SYSROOT})
unset(ENV{PKG_CONFIG_PATH})
# Debian's gcc looks into this machine's folders before those of a sysroot.
set(there ${WEFT_SYSROOT}/usr/lib/${arch})
set(linker "-B${there} -L${there} -L${WEFT_SYSROOT}/lib/${arch}")
# RPATH, not RUNPATH: libraries of libraries are looked for there, too.
set(linker "${linker} -Wl,--allow-shlib-undefined -Wl,--disable-new-dtags")
set(CMAKE_EXE_LINKER_FLAGS_INIT "${linker}")
set(CMAKE_SHARED_LINKER_FLAGS_INIT "${linker}")
set(CMAKE_INSTALL_RPATH "$ORIGIN/../lib")
get_filename_component(CMAKE_BUILD_RPATH ${WEFT_SYSROOT}/../libs ABSOLUTE) # for what makes the manual pages
