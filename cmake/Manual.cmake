# The manual, from the same pages as docs/ and the program's own --help (cmake/man.py), by scdoc.
find_package(Python3 COMPONENTS Interpreter)
find_program(SCDOC scdoc)
find_program(GZIP gzip)

function(warder_manual name section component title) # FILE...
    set(out ${PROJECT_BINARY_DIR}/man/${name}.${section})
    set(pages)
    foreach(file IN LISTS ARGN)
        list(APPEND pages ${PROJECT_SOURCE_DIR}/docs/${file})
    endforeach()
    add_custom_command(OUTPUT ${out}
        COMMAND ${CMAKE_COMMAND} -E make_directory ${PROJECT_BINARY_DIR}/man
        COMMAND Python3::Interpreter ${PROJECT_SOURCE_DIR}/cmake/man.py ${name} ${section} ${title}
                $<TARGET_FILE:warder> ${pages} > ${out}.scd
        COMMAND ${SCDOC} < ${out}.scd > ${out}
        DEPENDS ${pages} ${PROJECT_SOURCE_DIR}/cmake/man.py ${PROJECT_SOURCE_DIR}/supervisor/warder.h
                ${PROJECT_SOURCE_DIR}/docs/examples/ask.c warder
        VERBATIM)
    if(GZIP) # as Debian wants it
        add_custom_command(OUTPUT ${out}.gz COMMAND ${GZIP} -9nf -k ${out} DEPENDS ${out} VERBATIM)
        set(out ${out}.gz)
    endif()
    add_custom_target(manual_${name} ALL DEPENDS ${out})
    install(FILES ${out} DESTINATION ${CMAKE_INSTALL_MANDIR}/man${section} COMPONENT ${component})
endfunction()

if(CMAKE_CROSSCOMPILING)
    message(STATUS "No manual: it is the program's own words, and that does not run here")
elseif(Python3_FOUND AND SCDOC)
    warder_manual(warder 1 program "run commands with exact permissions, asked in place" man/warder.md)
    warder_manual(warder-policy 5 program "rules for what a command may do" policy.md accesses.md)
    warder_manual(warder-trace 5 program "recorded runs, one event a line" traces.md trace-fields.md)
    warder_manual(libwarder 3 development "run commands behind a wall, from C" man/libwarder.md)
else()
    message(STATUS "No manual: it needs python3 and scdoc")
endif()
