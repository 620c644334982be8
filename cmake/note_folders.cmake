# SPDX-License-Identifier: Apache-2.0
# Part of installing: notes which of `folders`, and of the folders around them up to the prefix, are not there yet, in
# build/install_folders.txt, deepest first for each. What an earlier installation noted stays.
set(noted "")
foreach(folder ${folders})
    set(at "${CMAKE_INSTALL_PREFIX}/${folder}")
    while(NOT EXISTS "$ENV{DESTDIR}${at}" AND NOT at STREQUAL "/")
        string(APPEND noted "${at}\n")
        if(at STREQUAL CMAKE_INSTALL_PREFIX)
            break()
        endif()
        get_filename_component(at "${at}" DIRECTORY)
    endwhile()
endforeach()
file(APPEND "${build}/install_folders.txt" "${noted}")
