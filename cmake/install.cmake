# SPDX-License-Identifier: Apache-2.0
# The library as programs outside this tree have it: libweft.so, libweft.a, the headers, and packages for pkg-config
# and CMake
# (make install; docs/howto/embed.md). Both libraries export the functions of include/weft and nothing else.
include(GNUInstallDirs)
get_property(rooms GLOBAL PROPERTY WEFT_ROOMS)
get_property(modules GLOBAL PROPERTY WEFT_MODULES)
list(REMOVE_DUPLICATES modules)

# those of rooms, weft__, are hidden already
file(WRITE ${PROJECT_BINARY_DIR}/library/weft.map "{ global: weft_*; local: *; };\n")
file(WRITE ${PROJECT_BINARY_DIR}/library/all.c "")
foreach(header train eval server)
    file(APPEND ${PROJECT_BINARY_DIR}/library/all.c "#include \"weft/${header}.h\"\n")
endforeach()

# All rooms as one object.
set(archives "")
foreach(room ${rooms})
    list(APPEND archives $<TARGET_FILE:weft_${room}>)
endforeach()
set(all ${PROJECT_BINARY_DIR}/library/weft.o)
add_custom_command(OUTPUT ${all} COMMAND ${CMAKE_LINKER} -r -o ${all} --whole-archive ${archives}
    DEPENDS ${archives} COMMENT "Merging the rooms" VERBATIM)

add_library(weft_shared SHARED ${PROJECT_BINARY_DIR}/library/all.c ${all})
add_library(weft::weft ALIAS weft_shared)
set_source_files_properties(${all} PROPERTIES EXTERNAL_OBJECT ON GENERATED ON)
target_link_libraries(weft_shared PRIVATE weft_flags)
foreach(module ${modules})
    string(MAKE_C_IDENTIFIER ${module} id)
    target_link_libraries(weft_shared PRIVATE PkgConfig::${id})
endforeach()
target_include_directories(weft_shared INTERFACE ${PROJECT_SOURCE_DIR}/include)
target_link_options(weft_shared PRIVATE -Wl,--version-script=${PROJECT_BINARY_DIR}/library/weft.map -Wl,--no-undefined)
set_target_properties(weft_shared PROPERTIES OUTPUT_NAME weft VERSION ${PROJECT_VERSION} SOVERSION
    ${PROJECT_VERSION_MAJOR}
    LIBRARY_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/library LINK_DEPENDS ${PROJECT_BINARY_DIR}/library/weft.map)

# In the static library the rooms' own names are local: they cannot meet those of the program.
find_program(CMAKE_OBJCOPY objcopy REQUIRED)
set(static ${PROJECT_BINARY_DIR}/library/libweft.a)
add_custom_command(OUTPUT ${static}
    COMMAND ${CMAKE_OBJCOPY} --strip-debug --localize-hidden ${all} libweft.o
    COMMAND ${CMAKE_COMMAND} -E rm -f ${static}
    COMMAND ${CMAKE_AR} qcs ${static} libweft.o
    COMMAND ${CMAKE_COMMAND} -E rm libweft.o
    DEPENDS ${all} WORKING_DIRECTORY ${PROJECT_BINARY_DIR}/library COMMENT "Merging libweft.a" VERBATIM)
add_custom_target(weft_static ALL DEPENDS ${static})

set(libraries "") # what a program needs besides that links libweft.a
foreach(module ${modules})
    string(MAKE_C_IDENTIFIER ${module} id)
    list(APPEND libraries ${${id}_LIBRARIES})
endforeach()
list(REMOVE_DUPLICATES libraries)
list(REMOVE_ITEM libraries m pthread)
string(REPLACE ";" " -l" WEFT_PRIVATE "-l${libraries}")
set(package ${CMAKE_INSTALL_LIBDIR}/cmake/weft)
file(RELATIVE_PATH WEFT_UP_FROM_PC /${CMAKE_INSTALL_LIBDIR}/pkgconfig /)
file(RELATIVE_PATH WEFT_UP_FROM_PACKAGE /${package} /)
foreach(name weft.pc weft-config.cmake)
    configure_file(${PROJECT_SOURCE_DIR}/cmake/${name}.in ${PROJECT_BINARY_DIR}/library/${name} @ONLY)
endforeach()
include(CMakePackageConfigHelpers)
write_basic_package_version_file(${PROJECT_BINARY_DIR}/library/weft-config-version.cmake COMPATIBILITY SameMinorVersion)

# A project that adds this one's folder installs what it wants of it.
if(NOT PROJECT_IS_TOP_LEVEL)
    return()
endif()
# What `weft` says of itself: manual pages, and what shells complete.
set(pages ${PROJECT_BINARY_DIR}/pages)
add_custom_command(OUTPUT ${pages}/_weft
    COMMAND ${CMAKE_COMMAND} -E rm -rf ${pages}
    COMMAND ${CMAKE_COMMAND} -E make_directory ${pages}
    COMMAND weft manual ${pages}/man1
    COMMAND sh -c "gzip -9n '${pages}'/man1/*"
    COMMAND weft completion bash > ${pages}/weft
    COMMAND weft completion fish > ${pages}/weft.fish
    COMMAND weft completion zsh > ${pages}/_weft
    DEPENDS weft COMMENT "Manual pages and completions" VERBATIM)
add_custom_target(weft_pages ALL DEPENDS ${pages}/_weft)

# Folders that are made for what is installed go with it (uninstall.cmake): those that are not there yet are noted.
set(zsh ${CMAKE_INSTALL_DATADIR}/zsh/site-functions)
if(WEFT_DEB)
    set(zsh ${CMAKE_INSTALL_DATADIR}/zsh/vendor-completions) # Debian's zsh looks there
endif()
set(completion ${CMAKE_INSTALL_DATADIR}/bash-completion/completions)
set(folders ${CMAKE_INSTALL_BINDIR} ${CMAKE_INSTALL_LIBDIR}/pkgconfig ${package} ${CMAKE_INSTALL_INCLUDEDIR}/weft
    ${CMAKE_INSTALL_MANDIR}/man1 ${completion} ${zsh}
    ${CMAKE_INSTALL_DATADIR}/fish/vendor_completions.d)
install(CODE "set(folders \"${folders}\")\nset(build \"${PROJECT_BINARY_DIR}\")" COMPONENT Unspecified)
install(SCRIPT ${PROJECT_SOURCE_DIR}/cmake/note_folders.cmake COMPONENT Unspecified)
# The components are Debian's packages (deb.cmake); `make install` installs all.
install(TARGETS weft COMPONENT weft)
install(TARGETS weft_shared LIBRARY COMPONENT libweft0 NAMELINK_COMPONENT libweft-dev)
install(DIRECTORY ${pages}/man1 DESTINATION ${CMAKE_INSTALL_MANDIR} COMPONENT weft)
install(FILES ${pages}/weft DESTINATION ${completion} COMPONENT weft)
install(FILES ${pages}/_weft DESTINATION ${zsh} COMPONENT weft)
install(FILES ${pages}/weft.fish DESTINATION ${CMAKE_INSTALL_DATADIR}/fish/vendor_completions.d COMPONENT weft)
install(FILES ${static} DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT libweft-dev)
install(DIRECTORY ${PROJECT_SOURCE_DIR}/include/weft DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} COMPONENT libweft-dev)
install(FILES ${PROJECT_BINARY_DIR}/library/weft.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig COMPONENT libweft-dev)
install(FILES ${PROJECT_BINARY_DIR}/library/weft-config.cmake ${PROJECT_BINARY_DIR}/library/weft-config-version.cmake
    DESTINATION ${package} COMPONENT libweft-dev)
if(WEFT_DEB)
    include(cmake/deb.cmake)
endif()
