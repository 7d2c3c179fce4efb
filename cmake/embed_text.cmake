# cmake -DFILE=a.txt -DSYMBOL=name -DHEADER=room/name.h -DOUT=name.c -P embed_text.cmake
file(READ ${FILE} hex HEX)
# Twelve characters a line; not one literal, since the standard's ends at 4095 bytes.
string(REGEX REPLACE "(..)" "'\\\\x\\1', " bytes "${hex}")
string(REPEAT "'.x..', " 12 line)
string(REGEX REPLACE "(${line})" "\\1\n\t" bytes "${bytes}")
get_filename_component(name ${FILE} NAME)
file(WRITE ${OUT} "/* Generated from ${name} by cmake/embed_text.cmake. */\n#include \"${HEADER}\"\n\n"
    "const char ${SYMBOL}[] = {\n\t${bytes}'\\0'};\n")
