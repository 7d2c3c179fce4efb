/*
 * login: `warder login` and `warder logout`: a GitHub token for Copilot, from the device login,
 * kept among our own files.
 */
#pragma once

#include "supervisor/store.h"

/* Where the token is kept. Owned; NULL: no memory. */
char *login_token_path(const struct store *s);

int login_main(int argc, char **argv);
int login_out_main(int argc, char **argv);
