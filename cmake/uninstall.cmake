# SPDX-License-Identifier: Apache-2.0
# Removes what the last `make install` of this tree put there, and the folders that were made for it
# (note_folders.cmake), where nothing else is in them. Usage: cmake -D BUILD=build -P uninstall.cmake
if(NOT EXISTS ${BUILD}/install_manifest.txt)
    message(FATAL_ERROR
        "${BUILD}/install_manifest.txt is missing: `make install` writes it, so nothing is known to be installed")
endif()
file(STRINGS ${BUILD}/install_manifest.txt files)
foreach(file ${files})
    set(path "$ENV{DESTDIR}${file}")
    if(EXISTS "${path}" OR IS_SYMLINK "${path}")
        file(REMOVE "${path}")
        message(STATUS "removed ${path}")
    endif()
endforeach()
if(EXISTS ${BUILD}/install_folders.txt)
    file(STRINGS ${BUILD}/install_folders.txt folders)
    list(REMOVE_DUPLICATES folders)
    list(SORT folders ORDER DESCENDING) # what is within a folder comes before it
    foreach(folder ${folders})
        file(GLOB left "$ENV{DESTDIR}${folder}/*")
        if(IS_DIRECTORY "$ENV{DESTDIR}${folder}" AND NOT left)
            file(REMOVE_RECURSE "$ENV{DESTDIR}${folder}")
        endif()
    endforeach()
endif()
file(REMOVE ${BUILD}/install_manifest.txt ${BUILD}/install_folders.txt)
