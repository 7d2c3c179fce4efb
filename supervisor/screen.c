#include "supervisor/screen.h"

#include "tracer/util.h"

#include <string.h>

struct mode_row {
	unsigned number;
	bool normal;
};

static const struct mode_row modes[SCREEN_MODES] = {
#define SCREEN_MODE(NAME, number, normal) [SCREEN_MODE_##NAME] = {number, normal},
#include "supervisor/screen_modes.def"
#undef SCREEN_MODE
};

void screen_release(struct screen *s)
{
	buf_free(&s->pending);
	buf_free(&s->line);
	buf_free(&s->sgr);
	buf_free(&s->sgr_before);
}

static void copy(struct buf *to, const struct buf *from)
{
	buf_reset(to);
	buf_add(to, buf_str(from), from->len);
}

/* ---- the unfinished line ---- */

static void line_forget(struct screen *s)
{
	buf_reset(&s->line);
	s->line_lost = true;
}

static void line_add(struct screen *s, const char *bytes, size_t n)
{
	if (s->line_lost)
		return;
	if (s->line.len + n > SCREEN_LINE_MAX) {
		/* A progress line starts over with each return: what was before is painted over. */
		const char *start = memrchr(buf_str(&s->line), '\r', s->line.len);
		if (start && start != s->line.data)
			buf_drop(&s->line, (size_t)(start - s->line.data));
	}
	if (s->line.len + n > SCREEN_LINE_MAX)
		line_forget(s);
	else
		buf_add(&s->line, bytes, n);
}

static void newline(struct screen *s)
{
	if (s->last != '\r') {
		/* A bare line feed keeps the column. */
		line_forget(s);
		return;
	}
	buf_reset(&s->line);
	s->line_lost = false;
	copy(&s->sgr_before, &s->sgr);
}

/* ---- sequences ---- */

static void set_private_mode(struct screen *s, unsigned number, bool on)
{
	if (number == 47 || number == 1047 || number == 1049) {
		s->alternate = on ? number : 0;
		line_forget(s);
		return;
	}
	for (size_t i = 0; i < SCREEN_MODES; i++) {
		if (modes[i].number != number)
			continue;
		if (on == modes[i].normal)
			s->changed &= ~(1u << i);
		else
			s->changed |= 1u << i;
	}
}

static void set_private_modes(struct screen *s, const char *parameters, bool on)
{
	unsigned number = 0;
	for (const char *p = parameters;; p++) {
		if (*p >= '0' && *p <= '9') {
			if (number < 100000)
				number = number * 10 + (unsigned)(*p - '0');
			continue;
		}
		set_private_mode(s, number, on);
		number = 0;
		if (*p != ';')
			return;
	}
}

/* ESC [ ... m: "", "0" and "0;..." start over. */
static void set_colours(struct screen *s)
{
	const char *p = s->pending.data + 2;
	bool resets = *p == 'm' || (*p == '0' && (p[1] == 'm' || p[1] == ';'));
	if (resets || s->sgr.len + s->pending.len > SCREEN_SGR_MAX)
		buf_reset(&s->sgr);
	if (!resets || p[1] == ';')
		buf_add(&s->sgr, s->pending.data, s->pending.len);
	line_add(s, s->pending.data, s->pending.len);
}

static void end_csi(struct screen *s, char final)
{
	const char *p = s->pending.data + 2;
	if (*p == '?' && (final == 'h' || final == 'l')) {
		set_private_modes(s, p + 1, final == 'h');
	} else if (*p == '>' && final == 'm') {
		s->other_keys[0] = '\0';
		if (s->pending.len < sizeof(s->other_keys))
			memcpy(s->other_keys, s->pending.data, s->pending.len + 1);
	} else if ((*p == '>' || *p == '=') && final == 'u') {
		s->kitty = true;
	} else if (*p == '<' && final == 'u') {
		s->kitty = false;
	} else if (*p >= '<' && *p <= '?') {
		return; /* other private sequences: queries and the like, they move nothing */
	} else if (final == 'm') {
		set_colours(s);
	} else if (strchr("KGCDPX@", final)) {
		line_add(s, s->pending.data, s->pending.len); /* stays within the line */
	} else if (!strchr("cnqtu", final)) {
		line_forget(s);
	}
}

static void reset_all(struct screen *s)
{
	s->alternate = 0;
	s->changed = 0;
	s->charset = 0;
	s->keypad = s->kitty = false;
	s->other_keys[0] = '\0';
	buf_reset(&s->sgr);
	buf_reset(&s->sgr_before);
	buf_reset(&s->line);
	s->line_lost = false;
}

static void end_esc(struct screen *s, char final)
{
	if (final == 'c')
		reset_all(s);
	else if (final == '=' || final == '>')
		s->keypad = final == '=';
	else if (s->pending.len == 3 && s->pending.data[1] == '(')
		s->charset = final == 'B' ? 0 : final;
	else
		line_forget(s); /* save, restore, index, ... */
}

/* ---- the stream ---- */

static void begin(struct screen *s)
{
	s->state = SCREEN_ESC;
	buf_reset(&s->pending);
	buf_add_char(&s->pending, '\x1b');
}

static void feed_ground(struct screen *s, char c)
{
	if (c == '\x1b')
		begin(s);
	else if (c == '\n')
		newline(s);
	else if (c == '\v' || c == '\f')
		line_forget(s);
	else if (c != '\a' && c != '\0')
		line_add(s, &c, 1);
}

static enum screen_state after_esc(char c)
{
	if (c == '[')
		return SCREEN_CSI;
	if (c && strchr("]PX^_", c))
		return SCREEN_STRING;
	return c >= 0x20 && c < 0x30 ? SCREEN_INTER : SCREEN_GROUND;
}

static void keep(struct screen *s, char c)
{
	if (s->pending.len < SCREEN_PENDING_MAX)
		buf_add_char(&s->pending, c);
}

static void feed_sequence(struct screen *s, char c)
{
	bool is_final = (unsigned char)c >= 0x30 && (unsigned char)c < 0x7f;
	keep(s, c);
	if (s->state == SCREEN_ESC) {
		s->state = after_esc(c);
		if (s->state == SCREEN_GROUND && is_final)
			end_esc(s, c);
	} else if (s->state == SCREEN_INTER && is_final) {
		s->state = SCREEN_GROUND;
		end_esc(s, c);
	} else if (s->state == SCREEN_CSI && c >= 0x40 && c < 0x7f) {
		s->state = SCREEN_GROUND;
		end_csi(s, c);
	}
}

static void feed_string(struct screen *s, char c)
{
	keep(s, c);
	if (c == '\a' || (s->state == SCREEN_STRING_ESC && c == '\\'))
		s->state = SCREEN_GROUND;
	else
		s->state = c == '\x1b' ? SCREEN_STRING_ESC : SCREEN_STRING;
}

static void feed(struct screen *s, char c)
{
	bool cancels = c == '\x18' || c == '\x1a';
	if (s->state == SCREEN_GROUND)
		feed_ground(s, c);
	else if (cancels)
		s->state = SCREEN_GROUND;
	else if (s->state == SCREEN_STRING || s->state == SCREEN_STRING_ESC)
		feed_string(s, c);
	else if (c == '\x1b')
		begin(s);
	else
		feed_sequence(s, c);
	s->last = c;
}

void screen_feed(struct screen *s, const char *bytes, size_t n)
{
	for (size_t i = 0; i < n; i++)
		feed(s, bytes[i]);
}

/* ---- leaving and returning ---- */

static void add_modes(const struct screen *s, struct buf *out, bool to_normal)
{
	for (size_t i = 0; i < SCREEN_MODES; i++)
		if (s->changed & 1u << i)
			buf_addf(out, "\x1b[?%u%c", modes[i].number,
				 modes[i].normal == to_normal ? 'h' : 'l');
}

void screen_leave(const struct screen *s, struct buf *out)
{
	if (s->state != SCREEN_GROUND)
		buf_add_char(out, '\x18'); /* CAN: what was begun is forgotten */
	if (s->other_keys[0])
		buf_add_str(out, "\x1b[>4;0m");
	if (s->kitty)
		buf_add_str(out, "\x1b[>0u");
	/* The scroll region is both screens'; taking it away moves the cursor, hence save and
	 * restore. */
	if (s->alternate)
		buf_addf(out,
			 "\x1b[?%ul\x1b"
			 "7\x1b[r\x1b"
			 "8",
			 s->alternate);
	add_modes(s, out, true);
	if (s->keypad)
		buf_add_str(out, "\x1b>");
	if (s->charset)
		buf_add_str(out, "\x1b(B");
	if (s->sgr.len)
		buf_add_str(out, "\x1b[0m");
	if (s->line.len || s->line_lost)
		buf_add_str(out, "\r\n");
}

void screen_return(const struct screen *s, struct buf *out)
{
	if (s->alternate)
		buf_addf(out, "\x1b[?%uh", s->alternate);
	if (s->charset)
		buf_addf(out, "\x1b(%c", s->charset);
	if (s->keypad)
		buf_add_str(out, "\x1b=");
	const struct buf *sgr = s->line_lost ? &s->sgr : &s->sgr_before;
	buf_add(out, buf_str(sgr), sgr->len);
	buf_add(out, buf_str(&s->line), s->line.len);
	add_modes(s, out, false);
	if (s->kitty)
		buf_add_str(out, "\x1b[<u");
	buf_add_str(out, s->other_keys);
	if (s->state != SCREEN_GROUND && s->pending.len < SCREEN_PENDING_MAX)
		buf_add(out, s->pending.data, s->pending.len);
}

bool screen_needs_repaint(const struct screen *s)
{
	return s->alternate || s->line_lost;
}
