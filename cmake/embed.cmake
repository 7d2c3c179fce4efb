# cmake -DFILES="a.policy;b.policy" -DOUT=preset_texts.c -P embed.cmake
set(text "/* Generated from supervisor/presets by cmake/embed.cmake. */\n#include \"supervisor/presets.h\"\n\n")
string(APPEND text "const struct preset_text preset_texts[] = {\n")
foreach(file IN LISTS FILES)
    get_filename_component(name ${file} NAME_WE)
    file(READ ${file} hex HEX)
    string(REGEX REPLACE "(..)" "\\\\x\\1" escaped "${hex}")
    # A string literal a source line: 96 bytes each keeps compilers and readers content.
    string(REGEX REPLACE "(................................................................................................................................................................................................................................................................................................................................................................................................)" "\\1\"\n\t  \"" escaped "${escaped}")
    file(SHA256 ${file} digest)
    string(APPEND text "\t{ \"${name}\",\n\t  \"${escaped}\",\n\t  \"${digest}\" },\n")
endforeach()
string(APPEND text "\t{ 0, 0, 0 },\n};\n")
file(WRITE ${OUT} "${text}")
