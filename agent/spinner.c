#include "agent/spinner.h"

#include "agent/termwidth.h"
#include "supervisor/escape.h"
#include "tracer/clock.h"
#include "tracer/util.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <string.h>
#include <time.h>

#define FIRST_MS 300
#define NEXT_MS	 120
/* Columns for the sign, the time and some air. */
#define BESIDE 16

struct spinner {
	pthread_t thread;
	pthread_mutex_t lock;
	pthread_cond_t wake; /* on the monotonic clock */
	int fd;
	struct buf words;
	int64_t since_ms;
	unsigned frame;
	bool on, drawn, quit;
};

/* A terminal that takes nothing now misses a frame, and that is all. */
static void put(const struct spinner *s, const char *bytes, size_t n)
{
	ssize_t done = write(s->fd, bytes, n);
	(void)done;
}

static void draw(struct spinner *s)
{
	static const char *const frames[] = {"⠋", "⠙", "⠹", "⠸", "⠼", "⠴", "⠦", "⠧", "⠇", "⠏"};
	size_t width = termwidth(s->fd);
	struct buf out = {0};
	buf_addf(&out, "\r%s ", frames[s->frame++ % ARRAY_LEN(frames)]);
	escape_add_fit(&out, buf_str(&s->words), width > BESIDE ? width - BESIDE : 1);
	buf_addf(&out, " (%lld s)\033[K", (long long)(clock_ms() - s->since_ms) / 1000);
	if (!buf_error(&out))
		put(s, out.data, out.len);
	buf_free(&out);
	s->drawn = true;
}

static void erase(struct spinner *s)
{
	static const char clear[] = "\r\033[K";
	if (s->drawn)
		put(s, clear, sizeof(clear) - 1);
	s->drawn = false;
}

static struct timespec from_now(int64_t ms)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	t.tv_nsec += ms * 1000000;
	t.tv_sec += t.tv_nsec / 1000000000;
	t.tv_nsec %= 1000000000;
	return t;
}

static void *run(void *arg)
{
	struct spinner *s = arg;
	pthread_mutex_lock(&s->lock);
	while (!s->quit) {
		if (!s->on) {
			pthread_cond_wait(&s->wake, &s->lock);
			continue;
		}
		struct timespec until = from_now(s->drawn ? NEXT_MS : FIRST_MS);
		int err = pthread_cond_timedwait(&s->wake, &s->lock, &until);
		if (err == ETIMEDOUT && s->on && !s->quit)
			draw(s);
	}
	pthread_mutex_unlock(&s->lock);
	return NULL;
}

static int start(struct spinner *s)
{
	sigset_t all, before;
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	int err = pthread_create(&s->thread, NULL, run, s);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	return -err;
}

int spinner_new(int fd, struct spinner **ret)
{
	struct spinner *s = calloc(1, sizeof(*s));
	pthread_condattr_t attr;
	if (!s)
		return -ENOMEM;
	s->fd = fd;
	pthread_mutex_init(&s->lock, NULL);
	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_cond_init(&s->wake, &attr);
	pthread_condattr_destroy(&attr);
	int err = start(s);
	if (err) {
		free(s);
		return err;
	}
	*ret = s;
	return 0;
}

void spinner_free(struct spinner *s)
{
	if (!s)
		return;
	pthread_mutex_lock(&s->lock);
	erase(s);
	s->quit = true;
	pthread_cond_signal(&s->wake);
	pthread_mutex_unlock(&s->lock);
	pthread_join(s->thread, NULL);
	pthread_cond_destroy(&s->wake);
	pthread_mutex_destroy(&s->lock);
	buf_free(&s->words);
	free(s);
}

void spinner_show(struct spinner *s, const char *words)
{
	if (!s)
		return;
	pthread_mutex_lock(&s->lock);
	/* The same wait goes on: its time does, too. */
	if (strcmp(buf_str(&s->words), words) != 0) {
		buf_reset(&s->words);
		buf_add_str(&s->words, words);
		s->since_ms = clock_ms();
	}
	s->on = true;
	pthread_cond_signal(&s->wake);
	pthread_mutex_unlock(&s->lock);
}

void spinner_hide(struct spinner *s)
{
	if (!s)
		return;
	pthread_mutex_lock(&s->lock);
	erase(s);
	s->on = false;
	pthread_mutex_unlock(&s->lock);
}
