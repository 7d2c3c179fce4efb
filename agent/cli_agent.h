/*
 * cli_agent: `warder agent`.
 */
#pragma once

/* argv[0] is "agent". The exit status: 0 done, 1 the turn failed, 2 usage, 125 could not. */
int cli_agent(int argc, char **argv);
