#include "supervisor/exec_copy.h"

#include "tracer/util.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#ifndef MFD_EXEC
#define MFD_EXEC 0x0010U /* linux/memfd.h, 6.3 */
#endif

#define SCRIPT_HEAD 256 /* what the kernel reads of a script: BINPRM_BUF_SIZE */
#define LOAD_AT	    0x400000

/* ---- a script's stand-in ---- */

/*
 * The whole program: argv becomes interpreter [argument] script argv[1]..., and off it goes. Behind
 * the code are three offsets from themselves to the texts: interpreter, argument (0: none), script.
 * The stack at the entry: argc, argv[0], ... (a program's argc is at least 1 since 5.18).
 */
#if defined(__x86_64__)
__asm__(".pushsection .rodata\n"
	"exec_copy_code:\n"
	"	lea	exec_copy_texts(%rip), %rbx\n"
	"	mov	(%rsp), %rcx\n"
	"	lea	16(%rsp,%rcx,8), %rdx\n" /* envp */
	"	mov	8(%rbx), %eax\n"
	"	add	%rbx, %rax\n"
	"	mov	%rax, 8(%rsp)\n" /* the script, in argv[0]'s place */
	"	mov	4(%rbx), %eax\n"
	"	test	%eax, %eax\n"
	"	jz	1f\n"
	"	add	%rbx, %rax\n"
	"	mov	%rax, (%rsp)\n" /* the argument, in argc's place */
	"	push	%rax\n"
	"1:	mov	(%rbx), %edi\n"
	"	add	%rbx, %rdi\n"
	"	mov	%rdi, (%rsp)\n" /* the interpreter before it */
	"	mov	%rsp, %rsi\n"
	"	mov	$59, %eax\n" /* execve */
	"	syscall\n"
	"	mov	$126, %edi\n"
	"	mov	$60, %eax\n" /* exit */
	"	syscall\n"
	"	.balign 4\n"
	"exec_copy_texts:\n"
	"	.popsection\n");
#define MACHINE EM_X86_64
#elif defined(__aarch64__)
__asm__(".pushsection .rodata\n"
	"	.balign 4\n"
	"exec_copy_code:\n"
	"	adr	x19, exec_copy_texts\n"
	"	ldr	x0, [sp]\n"
	"	mov	x1, sp\n"
	"	add	x2, x1, x0, lsl #3\n"
	"	add	x2, x2, #16\n" /* envp */
	"	ldr	w3, [x19, #8]\n"
	"	add	x3, x19, x3\n"
	"	str	x3, [x1, #8]\n" /* the script, in argv[0]'s place */
	"	sub	sp, sp, #16\n"
	"	ldr	w3, [x19, #4]\n"
	"	cbz	w3, 1f\n"
	"	add	x3, x19, x3\n"
	"	str	x3, [x1], #-8\n" /* the argument, in argc's place */
	"1:	ldr	w3, [x19]\n"
	"	add	x0, x19, x3\n"
	"	str	x0, [x1]\n" /* the interpreter before it */
	"	mov	x8, #221\n" /* execve */
	"	svc	#0\n"
	"	mov	x0, #126\n"
	"	mov	x8, #93\n" /* exit */
	"	svc	#0\n"
	"exec_copy_texts:\n"
	"	.popsection\n");
#define MACHINE EM_AARCH64
#endif
/*
 * Hidden: they are of this file. Else aarch64's compiler asks the linker for a place that holds
 * each address, and for two local symbols of one section it is given one.
 */
extern const char exec_copy_code[] __attribute__((visibility("hidden")));
extern const char exec_copy_texts[] __attribute__((visibility("hidden")));

/* What a script's first line says. */
struct shebang {
	char line[SCRIPT_HEAD + 1];
	const char *interpreter, *argument; /* in line; argument "" where there is none */
};

/* As fs/binfmt_script.c takes it apart. 0 or -ENOEXEC. */
static int read_shebang(int file, struct shebang *ret)
{
	ssize_t n = pread(file, ret->line, SCRIPT_HEAD, 0);

	if (n < 3 || memcmp(ret->line, "#!", 2) != 0)
		return -ENOEXEC;
	ret->line[n] = '\0';
	char *end = ret->line + strcspn(ret->line, "\n");
	bool cut = !*end;
	while (end > ret->line + 2 && (end[-1] == ' ' || end[-1] == '\t'))
		end--;
	*end = '\0';
	char *s = ret->line + 2 + strspn(ret->line + 2, " \t");
	size_t len = strcspn(s, " \t");
	if (!len || (cut && n == SCRIPT_HEAD && !s[len]))
		return -ENOEXEC; /* the interpreter's name may be longer than that */
	ret->interpreter = s;
	ret->argument = s + len;
	if (s[len]) {
		s[len] = '\0';
		ret->argument = s + len + 1 + strspn(s + len + 1, " \t");
	}
	return 0;
}

struct stand_in {
	Elf64_Ehdr file;
	Elf64_Phdr load;
	char text[16384];
};

/* Append a string; its offset from the three offsets goes into the slot. */
static int add_text(struct stand_in *p, size_t *len, unsigned slot, const char *s)
{
	size_t n = strlen(s) + 1, texts = (size_t)(exec_copy_texts - exec_copy_code);
	uint32_t offset = (uint32_t)(*len - texts);

	if (n > sizeof(p->text) - *len)
		return -ENAMETOOLONG;
	memcpy(p->text + *len, s, n);
	memcpy(p->text + texts + slot * sizeof(offset), &offset, sizeof(offset));
	*len += n;
	return 0;
}

static int write_stand_in(int out, const struct shebang *line, const char *script)
{
	struct stand_in p = {
		.file = {.e_ident = {ELFMAG0, ELFMAG1, ELFMAG2, ELFMAG3, ELFCLASS64, ELFDATA2LSB,
				     EV_CURRENT},
			 .e_type = ET_EXEC,
			 .e_machine = MACHINE,
			 .e_version = EV_CURRENT,
			 .e_entry = LOAD_AT + offsetof(struct stand_in, text),
			 .e_phoff = offsetof(struct stand_in, load),
			 .e_ehsize = sizeof(Elf64_Ehdr),
			 .e_phentsize = sizeof(Elf64_Phdr),
			 .e_phnum = 1},
	};
	size_t len = (size_t)(exec_copy_texts - exec_copy_code);

	memcpy(p.text, exec_copy_code, len);
	len += 3 * sizeof(uint32_t);
	int r = add_text(&p, &len, 0, line->interpreter);
	if (r == 0 && *line->argument)
		r = add_text(&p, &len, 1, line->argument);
	if (r == 0)
		r = add_text(&p, &len, 2, script);
	if (r < 0)
		return r;
	size_t size = offsetof(struct stand_in, text) + len;
	p.load = (Elf64_Phdr){.p_type = PT_LOAD,
			      .p_flags = PF_R | PF_X,
			      .p_vaddr = LOAD_AT,
			      .p_filesz = size,
			      .p_memsz = size,
			      .p_align = 0x10000};
	return write(out, &p, size) == (ssize_t)size ? 0 : -EIO;
}

/* ---- a program ---- */

static int write_bytes(int out, int in, off_t size)
{
	while (size > 0) {
		ssize_t n = sendfile(out, in, NULL, (size_t)size);
		if (n < 0)
			return -errno;
		if (n == 0)
			return -EIO; /* it shrank */
		size -= n;
	}
	return 0;
}

static bool speaks_of_itself(int fd, size_t size)
{
	static const char *const signs[] = {"/proc/self/exe", "/proc/%", "$ORIGIN", "${ORIGIN}"};
	void *bytes = size ? mmap(NULL, size, PROT_READ, MAP_SHARED, fd, 0) : MAP_FAILED;
	bool found = false;

	if (bytes == MAP_FAILED)
		return true;
	for (size_t i = 0; i < ARRAY_LEN(signs) && !found; i++)
		found = memmem(bytes, size, signs[i], strlen(signs[i])) != NULL;
	munmap(bytes, size);
	return found;
}

/* ---- together ---- */

static int open_program(int object, struct stat *ret_st)
{
	char self[64];

	/* To open a device or a FIFO does something to it. */
	if (fstat(object, ret_st) < 0 || !S_ISREG(ret_st->st_mode))
		return -EACCES;
	if (syscall(SYS_faccessat2, object, "", X_OK, AT_EMPTY_PATH | AT_EACCESS) < 0)
		return -errno;
	if (ret_st->st_size > EXEC_COPY_MAX)
		return -EOPNOTSUPP;
	snprintf(self, sizeof(self), "/proc/thread-self/fd/%d", object);
	int fd = open(self, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return errno == EACCES ? -EOPNOTSUPP : -errno;
	return fd;
}

/* Nobody can change it any more, and no writer is left. */
static int seal(int fd)
{
	char self[64];

	if (fcntl(fd, F_ADD_SEALS, F_SEAL_WRITE | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) < 0)
		return -errno;
	snprintf(self, sizeof(self), "/proc/thread-self/fd/%d", fd);
	int ro = open(self, O_RDONLY | O_CLOEXEC);
	return ro < 0 ? -errno : ro;
}

static int new_memfd(const char *script_name)
{
	const char *slash = strrchr(script_name, '/');
	char name[64]; /* the kernel takes up to 249 bytes */

	snprintf(name, sizeof(name), "%s", slash ? slash + 1 : script_name);
	int fd = memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING | MFD_EXEC);
	if (fd < 0 && errno == EINVAL) /* before 6.3 every memfd may be run */
		fd = memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING);
	if (fd < 0)
		return errno == EACCES ? -EOPNOTSUPP : -errno; /* vm.memfd_noexec */
	return fd;
}

int exec_copy_make(int object, const char *script_name, bool scripts_alone, struct exec_copy *ret)
{
	struct shebang line;
	struct stat st;
	int in AUTOCLOSE = open_program(object, &st);

	if (in < 0)
		return in;
	bool script = read_shebang(in, &line) == 0;
	if (!script && scripts_alone)
		return -EOPNOTSUPP;
	int out AUTOCLOSE = new_memfd(script_name);
	if (out < 0)
		return out;
	int r = script ? write_stand_in(out, &line, script_name) : write_bytes(out, in, st.st_size);
	if (r < 0)
		return r;
	int sealed = seal(out);
	if (sealed < 0)
		return sealed;
	ret->fd = sealed;
	ret->finds_itself = !script && speaks_of_itself(sealed, (size_t)st.st_size);
	return 0;
}
