# SPDX-License-Identifier: Apache-2.0
# The project's own build words: weft_room, weft_unit, weft_fuzz; and the costs and limits of tests.
include(CheckLinkerFlag)
include(${CMAKE_CURRENT_LIST_DIR}/costs.cmake)
set(CMAKE_C_STANDARD 17)
set(CMAKE_C_STANDARD_REQUIRED ON)
set(CMAKE_C_EXTENSIONS ON) # POSIX and GNU builtins; no GNU syntax in public headers
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
set(CMAKE_RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR})
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
if(NOT CMAKE_BUILD_TYPE)
    set(CMAKE_BUILD_TYPE Release)
endif()
set(CMAKE_C_FLAGS_RELEASE "-O3 -g1 -DNDEBUG")
set(CMAKE_C_FLAGS_CHECKED "-O1 -g1") # for the sanitizers: fast enough, assertions on, lines in their reports

# A compiler cache, where there is one. Names in the tree are hashed relative to its root, so a clone in another
# folder finds what this one compiled.
find_program(CCACHE ccache)
if(CCACHE AND NOT CMAKE_C_COMPILER_LAUNCHER)
    set(CMAKE_C_COMPILER_LAUNCHER ${CMAKE_COMMAND} -E env CCACHE_BASEDIR=${PROJECT_SOURCE_DIR} CCACHE_NOHASHDIR=1
        ${CCACHE})
endif()

find_package(Threads REQUIRED)
find_package(PkgConfig REQUIRED)
if(WEFT_TESTS)
    pkg_check_modules(CMOCKA IMPORTED_TARGET cmocka)
    if(NOT CMOCKA_FOUND)
        message(STATUS "cmocka not found: unit tests are not built (make setup installs it)")
    endif()
endif()

# weft_plain: what everything is compiled with; weft_flags: and what this configuration looks for besides.
add_library(weft_plain INTERFACE)
target_include_directories(weft_plain INTERFACE ${PROJECT_SOURCE_DIR}/include ${PROJECT_SOURCE_DIR}/src)
target_compile_definitions(weft_plain INTERFACE _GNU_SOURCE _FILE_OFFSET_BITS=64)
# -ffp-contract=off: a product and a sum are fused only where the source says so, so that every tier and compiler
# agrees.
# -ffile-prefix-map: what is compiled does not depend on the folder.
target_compile_options(weft_plain INTERFACE -Wall -Wextra -Wshadow -Wstrict-prototypes -Wpointer-arith -Wvla
    -Wno-missing-field-initializers -Wno-unknown-pragmas -ffp-contract=off -fvisibility=hidden -fno-math-errno
    -ffile-prefix-map=${PROJECT_SOURCE_DIR}=.)
target_link_libraries(weft_plain INTERFACE Threads::Threads m ${CMAKE_DL_LIBS})
if(CMAKE_C_COMPILER_ID MATCHES Clang)
    target_compile_options(weft_plain INTERFACE -Wno-gnu-zero-variadic-macro-arguments)
endif()
add_library(weft_flags INTERFACE)
target_link_libraries(weft_flags INTERFACE weft_plain)
if(WEFT_SANITIZE)
    target_compile_options(weft_flags INTERFACE -fsanitize=${WEFT_SANITIZE} -fno-omit-frame-pointer
        -fno-sanitize-recover=all)
    # Programs at a fixed place: what the checks point to, half a million addresses in weft, is filled in once, by the
    # linker, and not by each start of each program, of which tests of the command line make thousands.
    target_link_options(weft_flags INTERFACE -fsanitize=${WEFT_SANITIZE}
        $<$<STREQUAL:$<TARGET_PROPERTY:TYPE>,EXECUTABLE>:-no-pie>)
    # Hundreds of programs are linked, which gold does in half the time, where it is there (clang's fuzzer has symbols
    # that it warns of).
    check_linker_flag(C -fuse-ld=gold WEFT_HAS_GOLD)
    if(WEFT_HAS_GOLD AND CMAKE_C_COMPILER_ID STREQUAL GNU)
        target_link_options(weft_flags INTERFACE -fuse-ld=gold)
    endif()
endif()
if(WEFT_FUZZ)
    # Coverage for the fuzzer in every room, not only in the target's own file.
    target_compile_options(weft_flags INTERFACE -fsanitize=fuzzer-no-link)
    add_custom_target(fuzz_targets)
endif()

# weft_room(NAME SOURCES a.c b.c [ROOMS base quant] [LIBS jansson]): the static library weft_NAME of src/NAME.
# ROOMS are the rooms it uses; LIBS are pkg-config modules.
function(weft_room name)
    cmake_language(DEFER CALL weft_costs)
    cmake_parse_arguments(R "" "" "SOURCES;ROOMS;LIBS" ${ARGN})
    add_library(weft_${name} STATIC ${R_SOURCES})
    set_property(GLOBAL APPEND PROPERTY WEFT_ROOMS ${name})
    set_property(GLOBAL APPEND PROPERTY WEFT_MODULES ${R_LIBS})
    target_link_libraries(weft_${name} PUBLIC weft_flags)
    foreach(room ${R_ROOMS})
        target_link_libraries(weft_${name} PUBLIC weft_${room})
    endforeach()
    foreach(lib ${R_LIBS})
        string(MAKE_C_IDENTIFIER ${lib} id)
        pkg_check_modules(${id} REQUIRED IMPORTED_TARGET GLOBAL ${lib})
        target_link_libraries(weft_${name} PUBLIC PkgConfig::${id})
    endforeach()
endfunction()

# weft_unit(NAME SOURCE ROOMS...): the test program build/test_NAME, registered with CTest. It finds reference material
# through WEFT_SHARED and exits 77 when anything in it was skipped.
function(weft_unit name source)
    if(NOT WEFT_TESTS OR NOT CMOCKA_FOUND)
        return()
    endif()
    add_executable(test_${name} ${source})
    foreach(room ${ARGN})
        target_link_libraries(test_${name} PRIVATE weft_${room})
    endforeach()
    target_link_libraries(test_${name} PRIVATE weft_flags PkgConfig::CMOCKA)
    target_include_directories(test_${name} PRIVATE ${PROJECT_SOURCE_DIR}/tests)
    if(CMAKE_CROSSCOMPILING)
        target_compile_definitions(test_${name} PRIVATE WEFT_EMULATED)
    endif()
    add_test(NAME ${name} COMMAND test_${name} WORKING_DIRECTORY ${PROJECT_SOURCE_DIR})
    set_tests_properties(${name} PROPERTIES SKIP_RETURN_CODE 77)
endfunction()

# weft_unit_material(NAME): its claims that need reference material or a certain machine, as a test of their own
# (tests/claims.h).
function(weft_unit_material name)
    if(TARGET test_${name})
        add_test(NAME ${name}_material COMMAND test_${name} material WORKING_DIRECTORY ${PROJECT_SOURCE_DIR})
        set_tests_properties(${name}_material PROPERTIES SKIP_RETURN_CODE 77)
    endif()
endfunction()

# weft_each_write(NAME): what its program writes, renames and removes passes through tests/unit/each_write.h.
function(weft_each_write name)
    if(TARGET test_${name})
        foreach(call pwrite64 write rename unlink remove unlinkat)
            target_link_options(test_${name} PRIVATE -Wl,--wrap=${call})
        endforeach()
    endif()
endfunction()

# weft_fuzz(NAME SOURCE [ALONE ROOM] ROOMS...): the libFuzzer program build/fuzz_NAME, with -DWEFT_FUZZ=ON under
# clang. Of the room behind ALONE
# the target uses no files that need the rooms below it, so that those (kernels, above all) need not be compiled for it.
# Seeds stand in tests/fuzz/seeds/NAME/, or are written by tests/fuzz/NAME_seeds.py FOLDER; a dictionary stands in
# tests/fuzz/NAME.dict. All are
# optional.
function(weft_fuzz name source)
    if(NOT WEFT_FUZZ)
        return()
    endif()
    cmake_parse_arguments(F "" "ALONE" "" ${ARGN})
    add_executable(fuzz_${name} ${source})
    if(F_ALONE)
        set_target_properties(weft_${F_ALONE} PROPERTIES OPTIMIZE_DEPENDENCIES ON)
        target_link_libraries(fuzz_${name} PRIVATE $<TARGET_FILE:weft_${F_ALONE}>)
        add_dependencies(fuzz_${name} weft_${F_ALONE})
    endif()
    foreach(room ${F_UNPARSED_ARGUMENTS})
        target_link_libraries(fuzz_${name} PRIVATE weft_${room})
    endforeach()
    target_link_libraries(fuzz_${name} PRIVATE weft_flags)
    target_link_options(fuzz_${name} PRIVATE -fsanitize=fuzzer)
    add_dependencies(fuzz_targets fuzz_${name})
endfunction()
