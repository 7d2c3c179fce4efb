#include "tracer/patch.h"

#include "tracer/util.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define SYSCALL_SIZE 2
#define PAGE	     4096u
#define BREAKPOINT   0xcc /* int3 */

int patch_open(pid_t tid)
{
	char path[64];

	snprintf(path, sizeof(path), "/proc/%d/mem", tid);
	int fd = open(path, O_RDWR | O_CLOEXEC);
	return fd < 0 ? -errno : fd;
}

static int write_at(int mem, uint64_t addr, const void *bytes, size_t n)
{
	ssize_t done = pwrite(mem, bytes, n, (off_t)addr);

	if (done == (ssize_t)n)
		return 0;
	return done < 0 ? -errno : -EIO;
}

static bool holds(int mem, uint64_t addr, const uint8_t *bytes, size_t n)
{
	uint8_t now[STUB_SIZE];

	return pread(mem, now, n, (off_t)addr) == (ssize_t)n && memcmp(now, bytes, n) == 0;
}

static uint64_t jump_of(const struct stub_site *site)
{
	return site->syscall - site->before_len;
}

/* ---- many at once ---- */

/* What is read of a tracee's memory at a time: what is asked for next is there mostly. */
struct window {
	int mem;
	uint64_t at;
	size_t len;
	uint8_t bytes[PATCH_JOBS_MAX * STUB_SIZE];
};

/* n bytes at addr, and what follows within `ahead`. NULL: they can't be read. */
static const uint8_t *look(struct window *w, uint64_t addr, size_t n, size_t ahead)
{
	if (w->len < n || addr < w->at || addr - w->at > w->len - n) {
		size_t most = ahead < sizeof(w->bytes) ? ahead : sizeof(w->bytes);
		ssize_t got = pread(w->mem, w->bytes, most < n ? n : most, (off_t)addr);
		w->at = addr;
		w->len = got > 0 ? (size_t)got : 0;
	}
	return w->len >= n && addr >= w->at && addr - w->at <= w->len - n
		       ? w->bytes + (addr - w->at)
		       : NULL;
}

static bool is_as_expected(struct window *w, const struct stub_site *site)
{
	static const uint8_t syscall[SYSCALL_SIZE] = {0x0f, 0x05};
	uint64_t at = jump_of(site);
	const uint8_t *code = look(w, at, site->before_len + SYSCALL_SIZE, PAGE - at % PAGE);

	return code && memcmp(code, site->before, site->before_len) == 0 &&
	       memcmp(code + site->before_len, syscall, SYSCALL_SIZE) == 0;
}

static bool is_unused(struct window *w, uint64_t stub, size_t ahead)
{
	static const uint8_t unused[STUB_SIZE];
	const uint8_t *room = look(w, stub, STUB_SIZE, ahead);

	return room && memcmp(room, unused, sizeof(unused)) == 0;
}

/* Write the jobs [0, n), whose stubs follow one another. */
static void write_run(int mem, const uint8_t (*stub)[STUB_SIZE], const uint8_t (*jump)[STUB_JUMP],
		      struct patch_job *job, size_t n)
{
	int r = write_at(mem, job[0].stub, stub, n * STUB_SIZE);

	for (size_t i = 0; i < n; i++) {
		uint64_t at = jump_of(&job[i].site);
		job[i].result = r < 0 ? r : write_at(mem, at, jump[i], STUB_JUMP);
		if (r == 0 && job[i].result < 0) /* over the end of a page, half of it may stand */
			(void)write_at(mem, at, job[i].site.before, STUB_JUMP);
	}
}

void patch_sites(int mem, const struct stub_marks *marks, struct patch_job *job, size_t n)
{
	uint8_t stub[PATCH_JOBS_MAX][STUB_SIZE], jump[PATCH_JOBS_MAX][STUB_JUMP];
	struct window w = {.mem = mem};

	BUG(n > PATCH_JOBS_MAX);
	for (size_t i = 0; i < n; i++)
		job[i].result = is_as_expected(&w, &job[i].site) ? 0 : -ENOENT;
	for (size_t i = 0; i < n; i++)
		if (!is_unused(&w, job[i].stub, (n - i) * STUB_SIZE) ||
		    stub_build(&job[i].site, marks, job[i].stub, stub[i], jump[i]) < 0)
			job[i].result = -ENOENT;
	for (size_t i = 0, end; i < n; i = end) {
		for (end = i; end < n && job[end].result == 0 &&
			      job[end].stub == job[i].stub + (end - i) * STUB_SIZE;)
			end++;
		if (end > i)
			write_run(mem, &stub[i], &jump[i], &job[i], end - i);
		else
			end++;
	}
}

/* ---- one ---- */

static bool stub_stands(int mem, const struct mm_site *s, const struct stub_marks *marks,
			uint8_t jump[STUB_JUMP])
{
	uint8_t stub[STUB_SIZE];

	if (stub_build(&s->site, marks, s->stub, stub, jump) < 0)
		return false;
	return holds(mem, s->stub, stub, sizeof(stub));
}

bool patch_stands(int mem, const struct mm_site *s, const struct stub_marks *marks)
{
	uint8_t jump[STUB_JUMP];

	return stub_stands(mem, s, marks, jump) &&
	       holds(mem, jump_of(&s->site), jump, sizeof(jump));
}

int patch_undo(int mem, const struct mm_site *s, const struct stub_marks *marks)
{
	uint64_t at = jump_of(&s->site);
	uint8_t jump[STUB_JUMP], first;

	if (!stub_stands(mem, s, marks, jump) || !holds(mem, at + 1, jump + 1, STUB_JUMP - 1) ||
	    pread(mem, &first, 1, (off_t)at) != 1)
		return -ENOENT;
	if (first == jump[0])
		return write_at(mem, at, s->site.before, STUB_JUMP);
	if (first != BREAKPOINT && first != s->site.before[0])
		return -ENOENT;
	return write_at(mem, at + 1, s->site.before + 1, STUB_JUMP - 1);
}

int patch_mend(int mem, const struct mm_site *s, const struct stub_marks *marks, int64_t nr,
	       bool alone)
{
	struct mm_site then = *s;
	uint8_t jump[STUB_JUMP];

	then.stub = s->site.syscall + (uint64_t)nr;
	if (s->site.before[0] != STUB_MOV_EAX || s->site.before_len != STUB_JUMP ||
	    !stub_stands(mem, &then, marks, jump))
		return -ENOENT;
	jump[0] = STUB_MOV_EAX;
	if (!holds(mem, jump_of(&s->site), jump, STUB_JUMP))
		return -ENOENT;
	return alone ? patch_undo(mem, &then, marks) : 0;
}

int patch_switch(int mem, struct mm_site *s, const struct stub_marks *marks, enum stub_way way)
{
	uint8_t jump[STUB_JUMP];
	struct stub_site then = s->site;

	if (!stub_stands(mem, s, marks, jump))
		return -ENOENT;
	then.way = way;
	int r = write_at(mem, s->stub + stub_switch(&then), &(uint8_t){stub_switch_byte(&then)}, 1);
	if (r == 0)
		s->site.way = way;
	return r;
}
