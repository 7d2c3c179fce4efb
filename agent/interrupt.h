/*
 * interrupt: Ctrl-C, and being told to end. The process's one flag for it.
 *
 * SIGINT raises the flag and ends what is going on (a request, a tool); SIGTERM and SIGHUP raise
 * the second one as well: the program ends after that.
 */
#pragma once

#include <signal.h>
#include <stdbool.h>

/* Take SIGINT, SIGTERM and SIGHUP (those not ignored); system calls are interrupted, not restarted.
 */
int interrupt_install(void);
/* What provider_request.cancel and engine_command.cancel point at. */
volatile sig_atomic_t *interrupt_flag(void);
bool interrupt_raised(void);
/* Any of them: the two, or the wish to stop. */
bool interrupt_any(void);
/* Lowers the first flag. */
void interrupt_clear(void);
/* The signal that asks us to end, or 0. */
int interrupt_ending(void);
/* While true SIGTSTP interrupts as well, and is to be asked for here: the line editor puts the
 * terminal back first, then we stop. */
void interrupt_take_stop(bool take);
bool interrupt_stop_asked(void);
/* While true SIGWINCH interrupts as well: the line is drawn anew. */
void interrupt_take_resize(bool take);
bool interrupt_resized(void);
/*
 * Block until fd can be read: 0. -EINTR: a flag is up or the window was resized, before or
 * meanwhile; a plain read() would sleep through a signal that came just before it.
 */
int interrupt_wait_input(int fd);
/* End by this signal, as whoever started us expects; returns where that fails. */
void interrupt_die(int sig);
