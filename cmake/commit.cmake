# SPDX-License-Identifier: Apache-2.0
# Writes OUT, a header that says which commit SOURCE is of, where that has changed. COMMIT says it where there is no
# repository (a source archive). Usage: cmake -D SOURCE=. -D OUT=commit.h [-D COMMIT=...] -P commit.cmake
if(NOT COMMIT)
    execute_process(COMMAND git -C ${SOURCE} rev-parse --short=12 HEAD OUTPUT_VARIABLE COMMIT ERROR_QUIET
        OUTPUT_STRIP_TRAILING_WHITESPACE RESULT_VARIABLE failed)
    execute_process(COMMAND git -C ${SOURCE} diff --quiet HEAD -- src cli include plugins cmake CMakeLists.txt
        ERROR_QUIET RESULT_VARIABLE changed)
    if(failed)
        set(COMMIT "unknown: built outside a repository")
    elseif(changed)
        string(APPEND COMMIT ", changed since")
    endif()
endif()
set(text "#define WEFT_COMMIT \"${COMMIT}\"\n")
if(EXISTS ${OUT})
    file(READ ${OUT} before)
endif()
if(NOT "${before}" STREQUAL "${text}")
    file(WRITE ${OUT} "${text}")
endif()
