# Compiles every presets/NAME.policy into the library as text, so that the program is one file:
# const struct preset_text preset_texts[] = { { "name", "text", "sha256" }, ... } (see supervisor/presets.h).
function(warder_embed_presets target folder)
    file(GLOB files CONFIGURE_DEPENDS ${folder}/*.policy)
    set(out ${CMAKE_CURRENT_BINARY_DIR}/preset_texts.c)
    add_custom_command(
        OUTPUT ${out}
        COMMAND ${CMAKE_COMMAND} "-DFILES=${files}" -DOUT=${out}
                -P ${PROJECT_SOURCE_DIR}/cmake/embed.cmake
        DEPENDS ${files} ${PROJECT_SOURCE_DIR}/cmake/embed.cmake
        VERBATIM)
    target_sources(${target} PRIVATE ${out})
endfunction()
