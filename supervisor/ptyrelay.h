/*
 * ptyrelay: the traffic of an inner terminal (supervisor/pty.h): bytes both ways, and the mode of
 * the real one. Private to pty.c, which decides when; nothing here blocks.
 */
#pragma once

#include "supervisor/pty.h"
#include "supervisor/screen.h"

#include <stdint.h>
#include <termios.h>

#define PTY_CHUNK   4096
#define PTY_OUT_MAX (64u << 10) /* program output on its way: beyond it masters are not read */
#define PTY_IN_MAX  (64u << 10) /* keys on their way: beyond it the terminal is not read */
/* Half of it is the most that is kept of what was typed ahead of a question's answer. */
#define PTY_IN_HARD_MAX (4u << 20)

enum ptyrelay_mode {
	PTYRELAY_ASIDE, /* as it was: not ours at the moment */
	PTYRELAY_RAW,
	PTYRELAY_QUESTION,
};

/* As a question has the terminal: each key by itself, unseen, no signal; lines end as usual. */
void ptyrelay_question_modes(struct termios *t);

struct ptyrelay_side {
	int master;
	int slave; /* ours keeps the master from hanging up; -1 once only the child has it */
	uint64_t watch;
};

struct pty {
	struct loop *loop;
	struct pty_hooks hooks;
	int tty;
	uint64_t tty_watch;
	struct ptyrelay_side main;
	struct ptyrelay_side err; /* drains stderr; -1 where there is none */
	bool ours[3];		  /* stdio that is the real terminal */
	bool lazy;		  /* keys are relayed only while somebody uses the inner terminal */
	bool pipeline;		  /* others of our process group want ^C too */
	bool spawned;
	bool relaying;
	bool ended; /* the command: its session has no terminal any more */
	bool suspended;
	bool hung; /* the real terminal is gone */
	enum ptyrelay_mode mode;
	struct termios saved; /* the real one's, from before `mode` */
	bool outer_isig;
	struct buf in;	/* keys for the inner terminal */
	struct buf out; /* bytes for the real one */
	struct screen screen;
	pty_keys_fn *keys; /* not NULL: held */
	void *keys_arg;
	uint64_t foreground_timer;
	uint64_t repaint_timer;
};

enum ptyrelay_state { PTYRELAY_EMPTY, PTYRELAY_READ, PTYRELAY_CLOSED };

/* The one place that decides the real terminal's mode and what is waited for; after each change. */
void ptyrelay_update(struct pty *p);
/* Only what is waited for: after the buffers changed. */
void ptyrelay_watch(struct pty *p);
/* The real terminal's signal keys, after what decides them changed. */
void ptyrelay_follow_isig(struct pty *p);
bool ptyrelay_in_foreground(const struct pty *p);
void ptyrelay_set_mode(struct pty *p, enum ptyrelay_mode mode, bool foreground);

/* As much as the other end takes now. */
void ptyrelay_write_out(struct pty *p);
void ptyrelay_write_in(struct pty *p);
/* One reading of a master, into p->out. */
enum ptyrelay_state ptyrelay_read_side(struct pty *p, struct ptyrelay_side *s);

/* The loop's callbacks for the three descriptors. */
loop_fd_fn ptyrelay_on_tty;
loop_fd_fn ptyrelay_on_main;
loop_fd_fn ptyrelay_on_err;
