/*
 * cli_doctor: `warder doctor`: can this machine supervise, and who would answer the agent?
 */
#pragma once

int cli_doctor(int argc, char **argv);
