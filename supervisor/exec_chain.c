#include "supervisor/exec_chain.h"

#include "tracer/util.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define PROGRAM_HEADERS_MAX 64
#define HEAD_MAX	    4096

static int script_interpreter(const char *head, char *ret, size_t cap)
{
	const char *s = head + 2 + strspn(head + 2, " \t");
	size_t len = strcspn(s, " \t\n");
	if (!len || len >= cap)
		return -ENOENT;
	memcpy(ret, s, len);
	ret[len] = '\0';
	return 0;
}

/* One program header of either class, in the wide form. */
static bool program_header(int fd, const char *head, unsigned i, Elf64_Phdr *ret)
{
	if (head[EI_CLASS] == ELFCLASS64) {
		const Elf64_Ehdr *e = (const void *)head;
		return i < e->e_phnum &&
		       pread(fd, ret, sizeof *ret, (off_t)(e->e_phoff + i * sizeof *ret)) ==
			       sizeof *ret;
	}
	const Elf32_Ehdr *e = (const void *)head;
	Elf32_Phdr narrow;
	if (i >= e->e_phnum || pread(fd, &narrow, sizeof narrow,
				     (off_t)(e->e_phoff + i * sizeof narrow)) != sizeof narrow)
		return false;
	*ret = (Elf64_Phdr){
		.p_type = narrow.p_type, .p_offset = narrow.p_offset, .p_filesz = narrow.p_filesz};
	return true;
}

static int elf_loader(int fd, const char *head, char *ret, size_t cap)
{
	Elf64_Phdr ph;
	for (unsigned i = 0; i < PROGRAM_HEADERS_MAX && program_header(fd, head, i, &ph); i++) {
		if (ph.p_type != PT_INTERP || ph.p_filesz < 2 || ph.p_filesz > cap)
			continue;
		if (pread(fd, ret, ph.p_filesz, (off_t)ph.p_offset) != (ssize_t)ph.p_filesz)
			return -ENOENT;
		ret[ph.p_filesz - 1] = '\0';
		return 0;
	}
	return -ENOENT;
}

int exec_chain_next(int object, char *ret, size_t cap)
{
	char self[64];
	_Alignas(Elf64_Ehdr) char head[HEAD_MAX + 1] = "";
	struct stat st;
	snprintf(self, sizeof self, "/proc/thread-self/fd/%d", object);
	/* To open a device or a FIFO does something to it. */
	if (fstat(object, &st) || !S_ISREG(st.st_mode))
		return -ENOENT;
	int fd AUTOCLOSE = open(self, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	if (fd < 0)
		return -errno;
	ssize_t n = pread(fd, head, HEAD_MAX, 0);
	if (n < 4)
		return -ENOENT;
	if (head[0] == '#' && head[1] == '!')
		return script_interpreter(head, ret, cap);
	if (memcmp(head, ELFMAG, SELFMAG) != 0 || n < (ssize_t)sizeof(Elf64_Ehdr))
		return -ENOENT;
	return elf_loader(fd, head, ret, cap);
}
