# SPDX-License-Identifier: Apache-2.0
# Debian packages, of what install.cmake installs: weft, libweft0 and libweft-dev (make deb, docs/howto/packages.md).
# Configured with CMAKE_INSTALL_PREFIX=/usr, which is where Debian's folders begin.
set(doc ${PROJECT_BINARY_DIR}/deb)
string(TIMESTAMP date "%a, %d %b %Y %H:%M:%S +0000" UTC)
# As Debian's own tools: DEBFULLNAME and DEBEMAIL; else as git has it.
set(name "$ENV{DEBFULLNAME}")
set(email "$ENV{DEBEMAIL}")
if(NOT email)
    execute_process(COMMAND git -C ${PROJECT_SOURCE_DIR} config user.name OUTPUT_VARIABLE name ERROR_QUIET
        OUTPUT_STRIP_TRAILING_WHITESPACE)
    execute_process(COMMAND git -C ${PROJECT_SOURCE_DIR} config user.email OUTPUT_VARIABLE email ERROR_QUIET
        OUTPUT_STRIP_TRAILING_WHITESPACE)
endif()
if(NOT email)
    message(FATAL_ERROR "a package names who made it: set DEBFULLNAME and DEBEMAIL")
endif()
set(by "${name} <${email}>")
file(WRITE ${doc}/changelog "weft (${PROJECT_VERSION}) unstable; urgency=medium

  * What changed stands in CHANGELOG.md.

 -- ${by}  ${date}
")
execute_process(COMMAND gzip -9nf ${doc}/changelog COMMAND_ERROR_IS_FATAL ANY)
file(WRITE ${doc}/copyright "Format: https://www.debian.org/doc/packaging-manuals/copyright-format/1.0/
Upstream-Name: weft

Files: *
Copyright: 2026 The Weft authors
License: Apache-2.0
 On Debian systems the text of the Apache License 2.0 is in
 /usr/share/common-licenses/Apache-2.0.
")
install(FILES ${PROJECT_SOURCE_DIR}/CHANGELOG.md DESTINATION ${CMAKE_INSTALL_DATADIR}/doc/weft COMPONENT weft)
foreach(part weft libweft0 libweft-dev)
    install(FILES ${doc}/copyright ${doc}/changelog.gz DESTINATION ${CMAKE_INSTALL_DATADIR}/doc/${part} COMPONENT
        ${part})
endforeach()

set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGE_CONTACT "${by}")
set(CPACK_PACKAGE_DIRECTORY ${PROJECT_BINARY_DIR}/packages)
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_STRIP_FILES ON)
set(CPACK_DEB_COMPONENT_INSTALL ON)
set(CPACK_COMPONENTS_ALL weft libweft0 libweft-dev)
set(CPACK_COMPONENTS_GROUPING IGNORE)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_PACKAGE_CONTROL_STRICT_PERMISSION ON)
set(CPACK_DEBIAN_WEFT_PACKAGE_NAME weft)
set(CPACK_DEBIAN_WEFT_PACKAGE_SECTION utils)
set(CPACK_COMPONENT_WEFT_DESCRIPTION "large language models on the machine that is there
Runs GGUF and Hugging Face models on processors, in a terminal or as a server
for many clients at once, each with adapters of their own in one batch; also
quantizes, converts, measures and trains.")
set(CPACK_DEBIAN_LIBWEFT0_PACKAGE_NAME libweft0)
set(CPACK_DEBIAN_LIBWEFT0_PACKAGE_SECTION libs)
file(WRITE ${doc}/shlibs "libweft ${PROJECT_VERSION_MAJOR} libweft0 (>= ${PROJECT_VERSION})\n")
file(WRITE ${doc}/triggers "activate-noawait ldconfig\n")
set(CPACK_DEBIAN_LIBWEFT0_PACKAGE_CONTROL_EXTRA ${doc}/shlibs ${doc}/triggers)
set(CPACK_COMPONENT_LIBWEFT0_DESCRIPTION "library that runs large language models on processors
The engine of weft for programs: models, tokenizers, sessions, batches of
requests with adapters, grammars and training.")
set(CPACK_DEBIAN_LIBWEFT-DEV_PACKAGE_NAME libweft-dev)
set(CPACK_DEBIAN_LIBWEFT-DEV_PACKAGE_SECTION libdevel)
set(CPACK_DEBIAN_LIBWEFT-DEV_PACKAGE_SHLIBDEPS OFF)
set(CPACK_DEBIAN_LIBWEFT-DEV_PACKAGE_DEPENDS "libweft0 (= ${PROJECT_VERSION})")
set(CPACK_COMPONENT_LIBWEFT-DEV_DESCRIPTION "library that runs large language models on processors, for developers
Headers, the static library, and packages for pkg-config and CMake.")
include(CPack)
