/*
 * cli_learn: `warder learn ...`.
 */
#pragma once

/* argv[0] is "learn". The exit status: 0 fine, 1 differs (--verify, --diff), 2 usage, 125 failed.
 */
int cli_learn(int argc, char **argv);
