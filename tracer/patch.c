#include "tracer/patch.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define SYSCALL_SIZE 2

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

int patch_site(int mem, const struct stub_site *site, const struct stub_marks *marks, uint64_t at)
{
	static const uint8_t unused[STUB_SIZE];
	uint8_t code[STUB_INSN_MAX + SYSCALL_SIZE], stub[STUB_SIZE], jump[STUB_JUMP];

	memcpy(code, site->before, site->before_len);
	memcpy(code + site->before_len, (const uint8_t[]){0x0f, 0x05}, SYSCALL_SIZE);
	if (stub_build(site, marks, at, stub, jump) < 0 ||
	    !holds(mem, jump_of(site), code, site->before_len + SYSCALL_SIZE) ||
	    !holds(mem, at, unused, sizeof(unused)))
		return -ENOENT;
	int r = write_at(mem, at, stub, sizeof(stub));
	if (r < 0)
		return r;
	r = write_at(mem, jump_of(site), jump, sizeof(jump));
	if (r < 0) /* over the end of a page, half of it may stand */
		(void)write_at(mem, jump_of(site), site->before, sizeof(jump));
	return r;
}

static bool stub_stands(int mem, const struct mm_site *s, const struct stub_marks *marks,
			uint8_t jump[STUB_JUMP])
{
	uint8_t stub[STUB_SIZE];

	if (stub_build(&s->site, marks, s->stub, stub, jump) < 0)
		return false;
	if (s->off)
		stub[stub_switch(&s->site)] = 0;
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
	if (!patch_stands(mem, s, marks))
		return -ENOENT;
	return write_at(mem, jump_of(&s->site), s->site.before, STUB_JUMP);
}

int patch_switch_off(int mem, const struct mm_site *s, const struct stub_marks *marks)
{
	uint8_t jump[STUB_JUMP];

	if (!stub_stands(mem, s, marks, jump))
		return -ENOENT;
	return write_at(mem, s->stub + stub_switch(&s->site), &(uint8_t){0}, 1);
}
