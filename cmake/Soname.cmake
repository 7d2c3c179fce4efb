# The name by which the dynamic linker knows a library, for those that are opened when they are needed:
# warder_soname(LIBEDIT_SONAME edit EDIT) of libedit.so in the directories that pkg-config told (EDIT_*).
function(warder_soname variable library prefix)
    find_library(WARDER_LIB_${library} NAMES ${library} HINTS ${${prefix}_LIBRARY_DIRS} ${${prefix}_LIBDIR}
        REQUIRED)
    execute_process(COMMAND ${CMAKE_OBJDUMP} -p ${WARDER_LIB_${library}} OUTPUT_VARIABLE told)
    if(NOT told MATCHES "SONAME +([^ \n]+)")
        message(FATAL_ERROR "${WARDER_LIB_${library}} is no shared library; warder opens it at run time")
    endif()
    set(${variable} ${CMAKE_MATCH_1} PARENT_SCOPE)
endfunction()
