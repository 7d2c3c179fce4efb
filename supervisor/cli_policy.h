/*
 * cli_policy: `warder policy ...`.
 */
#pragma once

/* argv[0] is "policy". The exit status: 0, 1 no, 2 usage, 125 could not do it. */
int cli_policy(int argc, char **argv);
