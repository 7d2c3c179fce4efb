# Compiles a text file into a target: const char SYMBOL[], declared in HEADER.
function(warder_embed_text target file symbol header)
    set(out ${CMAKE_CURRENT_BINARY_DIR}/${symbol}.c)
    set(script ${PROJECT_SOURCE_DIR}/cmake/embed_text.cmake)
    add_custom_command(
        OUTPUT ${out}
        COMMAND ${CMAKE_COMMAND} -DFILE=${file} -DSYMBOL=${symbol} -DHEADER=${header} -DOUT=${out}
                -P ${script}
        DEPENDS ${file} ${script}
        VERBATIM)
    target_sources(${target} PRIVATE ${out})
endfunction()
