/*
 * progname: what a program is called wherever it is spoken of (the question, the report's lines,
 * learned rules): by the name that it was started under, as people know it: sh, not the dash
 * behind it; npm, not node.
 *
 * A program may call itself what it likes. Who must not be deceived is shown its file, too.
 */
#pragma once

/*
 * The last part of argv0, without a login shell's '-'; of exe, where argv0 is NULL or says
 * nothing; "?" where that is NULL or empty as well. A loan of either; raw.
 */
const char *progname_of(const char *argv0, const char *exe);
