# SPDX-License-Identifier: Apache-2.0
# What tests need where the reference material is not there (docs/howto/material.md): the test `material` makes it
# before those that
# read models or goldens begin, in any configuration, once for all of them.
if(WEFT_TESTS)
    find_program(PYTHON3 NAMES python3 PATHS /usr/bin NO_DEFAULT_PATH)
    if(PYTHON3)
        add_test(NAME material COMMAND ${PYTHON3} ${PROJECT_SOURCE_DIR}/tests/material/make WORKING_DIRECTORY
            ${PROJECT_SOURCE_DIR})
        set_tests_properties(material PROPERTIES SKIP_RETURN_CODE 77 FIXTURES_SETUP material COST 100 TIMEOUT 2600)
    endif()
endif()

# weft_needs_material(TEST ...): those of them that this configuration has begin behind it.
function(weft_needs_material)
    foreach(test ${ARGN})
        if(TEST ${test})
            set_property(TEST ${test} APPEND PROPERTY FIXTURES_REQUIRED material)
        endif()
    endforeach()
endfunction()
