# A build for aarch64 on another machine: -DCMAKE_TOOLCHAIN_FILE=cmake/aarch64.cmake -DWARDER_ARM64=DIR,
# where tests/arm64/fetch.sh has put Debian's compiler (DIR/tools) and an arm64 Debian (DIR/root).
set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR aarch64)
list(APPEND CMAKE_TRY_COMPILE_PLATFORM_VARIABLES WARDER_ARM64)

file(GLOB compilers ${WARDER_ARM64}/tools/usr/bin/aarch64-linux-gnu-gcc-[0-9]*)
list(GET compilers 0 CMAKE_C_COMPILER)
set(CMAKE_C_FLAGS_INIT -B/usr/aarch64-linux-gnu/bin) # the assembler, of binutils-aarch64-linux-gnu

set(CMAKE_SYSROOT ${WARDER_ARM64}/root)
set(CMAKE_LIBRARY_ARCHITECTURE aarch64-linux-gnu)
set(CMAKE_FIND_ROOT_PATH_MODE_PROGRAM NEVER)
set(CMAKE_FIND_ROOT_PATH_MODE_LIBRARY ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_INCLUDE ONLY)
set(ENV{PKG_CONFIG_SYSROOT_DIR} ${CMAKE_SYSROOT})
set(ENV{PKG_CONFIG_LIBDIR}
    ${CMAKE_SYSROOT}/usr/lib/aarch64-linux-gnu/pkgconfig:${CMAKE_SYSROOT}/usr/share/pkgconfig)
