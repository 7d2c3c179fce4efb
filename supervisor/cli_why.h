/*
 * cli_why: `warder why ...`.
 */
#pragma once

/* argv[0] is "why". The exit status: 0 allowed, 1 denied or asked, 2 usage, 125 could not do it. */
int cli_why(int argc, char **argv);
