/*
 * screen: what a program's output did to the terminal, as far as a question must undo it.
 *
 * No emulator: it follows escape sequences (ECMA-48, DEC private modes) only to know whether the
 * stream is inside a sequence, which modes are on, whether the alternate screen is shown, and what
 * stands on the unfinished line. Pure: bytes in, bytes out. Memory is bounded.
 */
#pragma once

#include "tracer/buf.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum screen_mode {
#define SCREEN_MODE(NAME, ...) SCREEN_MODE_##NAME,
#include "supervisor/screen_modes.def"
#undef SCREEN_MODE
	SCREEN_MODES,
};

enum screen_state {
	SCREEN_GROUND,
	SCREEN_ESC,    /* ESC was seen */
	SCREEN_INTER,  /* ESC and intermediate bytes: ESC ( B */
	SCREEN_CSI,    /* ESC [ */
	SCREEN_STRING, /* OSC, DCS, APC, PM, SOS: up to BEL or ESC \ */
	SCREEN_STRING_ESC,
};

#define SCREEN_PENDING_MAX 4096
#define SCREEN_LINE_MAX	   1024
#define SCREEN_SGR_MAX	   256

struct screen {
	enum screen_state state;
	struct buf pending; /* the unfinished sequence, from its ESC on */
	unsigned
		alternate; /* 47, 1047, 1049: the mode that switched to it; 0: the primary screen */
	uint32_t changed;  /* bit of enum screen_mode: not in its normal state */
	struct buf line;   /* what was written since the last newline */
	bool line_lost;	   /* the cursor was moved: `line` does not tell what stands there */
	struct buf sgr;	   /* colours in force */
	struct buf sgr_before; /* ... at the start of the line */
	char charset;	       /* G0, 0: plain */
	bool keypad;
	bool kitty;	     /* the kitty keyboard protocol was asked for */
	char other_keys[16]; /* xterm's modifyOtherKeys request, as it came; "" none */
	char last;	     /* the byte before this one */
};

void screen_release(struct screen *s);
void screen_feed(struct screen *s, const char *bytes, size_t n);
/* Bytes that bring the terminal to a fresh line of the primary screen with everything normal. */
void screen_leave(const struct screen *s, struct buf *out);
/* ... and that bring it back to where the program thinks it is, as far as that is known. */
void screen_return(const struct screen *s, struct buf *out);
/* screen_return() can't bring all of it back: only the program can, by painting again. */
bool screen_needs_repaint(const struct screen *s);
