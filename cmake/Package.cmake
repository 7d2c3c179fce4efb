# The Debian packages (./dev package): what `cmake --install` installs, in two: the program, and what
# is needed to build with the library.
set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGE_NAME warder)
set(CPACK_PACKAGE_VERSION ${PROJECT_VERSION})
set(CPACK_DEBIAN_PACKAGE_RELEASE 1)
set(WARDER_MAINTAINER "The warder authors <warder@example.org>" CACHE STRING "Name and address in packages")
set(CPACK_PACKAGE_CONTACT "${WARDER_MAINTAINER}")
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_STRIP_FILES ON)
set(CPACK_DEB_COMPONENT_INSTALL ON)
set(CPACK_COMPONENTS_ALL program development)
set(CPACK_COMPONENTS_GROUPING IGNORE)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_CONTROL_STRICT_PERMISSION ON)

set(CPACK_DEBIAN_PROGRAM_PACKAGE_NAME warder)
set(CPACK_DEBIAN_PROGRAM_PACKAGE_SECTION utils)
set(CPACK_DEBIAN_PROGRAM_PACKAGE_SHLIBDEPS ON)
# Opened when they are needed, so no tool sees them.
set(CPACK_DEBIAN_PROGRAM_PACKAGE_DEPENDS "libunwind8, libedit2, libzstd1, libmd4c0")
if(WARDER_FAST)
    string(REGEX REPLACE "^libZydis\\.so\\." "libzydis" ZYDIS_PACKAGE ${LIBZYDIS_SONAME})
    string(APPEND CPACK_DEBIAN_PROGRAM_PACKAGE_DEPENDS ", ${ZYDIS_PACKAGE}")
endif()
set(CPACK_DEBIAN_PROGRAM_PACKAGE_RECOMMENDS "libcurl4 | libcurl4t64, ca-certificates")
set(CPACK_DEBIAN_PROGRAM_DESCRIPTION
    "exact permissions for tools and agents, asked in place
Runs any command behind a Landlock wall under a ptrace supervisor. What the
policy does not allow is refused by the kernel, named exactly, asked about,
and where granted done in place: the command goes on as if nothing had
happened. No root, no user namespaces, no configuration. A coding agent on
top runs its every tool like that.")

set(CPACK_DEBIAN_DEVELOPMENT_PACKAGE_NAME libwarder-dev)
set(CPACK_DEBIAN_DEVELOPMENT_PACKAGE_SECTION libdevel)
set(CPACK_DEBIAN_DEVELOPMENT_PACKAGE_DEPENDS "libcjson-dev, libunwind8, libzstd1")
if(WARDER_FAST)
    string(APPEND CPACK_DEBIAN_DEVELOPMENT_PACKAGE_DEPENDS ", ${ZYDIS_PACKAGE}")
endif()
set(CPACK_DEBIAN_DEVELOPMENT_DESCRIPTION
    "library to run commands behind a Landlock wall (development files)
libwarder runs a command under supervision, asks the program that embeds it
about what the command is refused, and tells what happened. This package has
the static library, its header and an example.")

# What Debian wants beside the files themselves. The texts have no time in them.
function(warder_debian_doc package component)
    set(doc ${CMAKE_INSTALL_DATADIR}/doc/${package})
    install(FILES ${PROJECT_SOURCE_DIR}/LICENSE DESTINATION ${doc} RENAME copyright
        COMPONENT ${component})
    if(GZIP)
        set(changes ${PROJECT_BINARY_DIR}/changelog.${package})
        set(CHANGES_PACKAGE ${package})
        # Of SOURCE_DATE_EPOCH, where that is set.
        string(TIMESTAMP CHANGES_DATE "%a, %d %b %Y %H:%M:%S +0000" UTC)
        configure_file(${PROJECT_SOURCE_DIR}/cmake/changelog.in ${changes} @ONLY)
        add_custom_command(OUTPUT ${changes}.gz COMMAND ${GZIP} -9nf -k ${changes}
            DEPENDS ${changes} VERBATIM)
        add_custom_target(changelog_${package} ALL DEPENDS ${changes}.gz)
        install(FILES ${changes}.gz DESTINATION ${doc} RENAME changelog.Debian.gz
            COMPONENT ${component})
    endif()
endfunction()
warder_debian_doc(warder program)
warder_debian_doc(libwarder-dev development)
# All that README and docs/ link to, in the same places.
install(FILES ${PROJECT_SOURCE_DIR}/README.md ${PROJECT_SOURCE_DIR}/CONTRIBUTING.md
    ${PROJECT_SOURCE_DIR}/SECURITY.md ${PROJECT_SOURCE_DIR}/CHANGELOG.md
    DESTINATION ${CMAKE_INSTALL_DOCDIR} COMPONENT program)
install(DIRECTORY ${PROJECT_SOURCE_DIR}/docs DESTINATION ${CMAKE_INSTALL_DOCDIR}
    COMPONENT program PATTERN man EXCLUDE)
install(FILES ${PROJECT_SOURCE_DIR}/bench/overhead.svg ${PROJECT_SOURCE_DIR}/bench/results.json
    DESTINATION ${CMAKE_INSTALL_DOCDIR}/bench COMPONENT program)
install(DIRECTORY ${PROJECT_SOURCE_DIR}/docs/examples
    DESTINATION ${CMAKE_INSTALL_DATADIR}/doc/libwarder-dev COMPONENT development)
# To read: the program has them inside.
install(DIRECTORY ${PROJECT_SOURCE_DIR}/supervisor/presets
    DESTINATION ${CMAKE_INSTALL_DATADIR}/warder COMPONENT program
    FILES_MATCHING PATTERN "*.policy")

include(CPack)
