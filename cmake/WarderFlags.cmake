# Language level, warnings and hardening, the same for every room.
set(CMAKE_C_STANDARD 17)
set(CMAKE_C_STANDARD_REQUIRED ON)
set(CMAKE_C_EXTENSIONS ON)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
if(NOT CMAKE_BUILD_TYPE)
    set(CMAKE_BUILD_TYPE RelWithDebInfo)
endif()

option(WARDER_WERROR "Warnings are errors" OFF)
option(WARDER_SANITIZE "Address and undefined behaviour sanitizers" OFF)
option(WARDER_FUZZ "Build the fuzz targets with libFuzzer (clang; without WARDER_TESTS)" OFF)

add_library(warder_flags INTERFACE)
target_compile_definitions(warder_flags INTERFACE _GNU_SOURCE WARDER_VERSION="${PROJECT_VERSION}")
target_include_directories(warder_flags INTERFACE ${PROJECT_SOURCE_DIR})
target_compile_options(warder_flags INTERFACE
    -Wall -Wextra -Wshadow -Wstrict-prototypes -Wmissing-prototypes -Wpointer-arith
    -Wformat=2 -Wundef -Wvla -Wswitch-enum -fstack-protector-strong)
# One number listed twice in a table is an error, never the last one wins.
if(CMAKE_C_COMPILER_ID STREQUAL "GNU")
    target_compile_options(warder_flags INTERFACE -Werror=override-init)
else()
    target_compile_options(warder_flags INTERFACE -Werror=initializer-overrides)
endif()
if(WARDER_WERROR)
    target_compile_options(warder_flags INTERFACE -Werror)
endif()
if(WARDER_SANITIZE)
    target_compile_options(warder_flags INTERFACE
        -fsanitize=address,undefined -fno-sanitize-recover=undefined -fno-omit-frame-pointer)
    target_link_options(warder_flags INTERFACE -fsanitize=address,undefined)
else()
    target_compile_options(warder_flags INTERFACE $<$<NOT:$<CONFIG:Debug>>:-D_FORTIFY_SOURCE=2>)
endif()
if(WARDER_FUZZ)
    target_compile_options(warder_flags INTERFACE -fsanitize=fuzzer-no-link)
endif()
target_link_options(warder_flags INTERFACE -Wl,-z,relro,-z,now)
include(CheckPIESupported)
check_pie_supported(LANGUAGES C)

# The fast path changes machine code: there is one for this kind of machine alone (tracer/fastpath.h).
if(CMAKE_SYSTEM_PROCESSOR STREQUAL "x86_64")
    set(WARDER_FAST ON)
else()
    set(WARDER_FAST OFF)
endif()

# A room is every .c file of its folder but those left out here, in one static library.
function(warder_room name)
    file(GLOB sources CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/*.c)
    list(FILTER sources EXCLUDE REGEX "/(main|${left_out})\\.c$")
    add_library(${name} STATIC ${sources})
    target_link_libraries(${name} PUBLIC warder_flags ${ARGN})
endfunction()
