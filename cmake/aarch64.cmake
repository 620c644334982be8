# SPDX-License-Identifier: Apache-2.0
# Cross build for AArch64 against the Debian packages that `scripts/sysroot aarch64` unpacks; tests run under
# qemu-aarch64.
set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR aarch64)
set(WEFT_SYSROOT ${CMAKE_CURRENT_LIST_DIR}/../build-aarch64/sysroot)
get_filename_component(WEFT_SYSROOT ${WEFT_SYSROOT} ABSOLUTE)

set(CMAKE_C_COMPILER aarch64-linux-gnu-gcc)
set(CMAKE_CXX_COMPILER aarch64-linux-gnu-g++)
set(CMAKE_SYSROOT ${WEFT_SYSROOT})
set(CMAKE_LIBRARY_ARCHITECTURE aarch64-linux-gnu)
set(CMAKE_FIND_ROOT_PATH ${WEFT_SYSROOT})
set(CMAKE_FIND_ROOT_PATH_MODE_PROGRAM NEVER)
set(CMAKE_FIND_ROOT_PATH_MODE_LIBRARY ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_INCLUDE ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_PACKAGE ONLY)
# Libraries of libraries (libcurl's own) are looked up in the sysroot too, and need not be resolved at link time.
set(CMAKE_EXE_LINKER_FLAGS_INIT "-Wl,--allow-shlib-undefined")

set(ENV{PKG_CONFIG_LIBDIR} ${WEFT_SYSROOT}/usr/lib/aarch64-linux-gnu/pkgconfig:${WEFT_SYSROOT}/usr/share/pkgconfig)
set(ENV{PKG_CONFIG_SYSROOT_DIR} ${WEFT_SYSROOT})
unset(ENV{PKG_CONFIG_PATH})

set(CMAKE_CROSSCOMPILING_EMULATOR qemu-aarch64 -L ${WEFT_SYSROOT})
