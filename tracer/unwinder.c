#include "tracer/unwinder.h"

#include "tracer/ehscan.h"
#include "tracer/libunwind.h"
#include "tracer/objmap.h"
#include "tracer/util.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/audit.h>
#include <linux/close_range.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#define PAGE	     4096u
#define PAGES	     256u /* of the tracee's memory that are kept */
#define SEGMENTS_MAX 64u  /* program headers that are looked at */

struct page {
	uint64_t at; /* 0: none */
	bool there;
	unsigned char bytes[PAGE];
};

/* What an object's ELF header in memory tells. */
struct image {
	bool looked, known;
	uint64_t bias;		      /* address in memory - address in the object */
	uint64_t hdr;		      /* .eh_frame_hdr in memory; 0: none */
	bool sought;		      /* the file was asked for .eh_frame */
	uint64_t frames, frames_size; /* .eh_frame in memory, where there is no hdr; 0: none */
};

struct helper {
	const struct libunwind *lib;
	struct objmap map;
	struct image image[OBJMAP_OBJECTS_MAX];
	struct page page[PAGES];
	struct regs_dwarf regs;
	struct elfsym_want want[UNWIND_FRAMES_MAX];
	int owner[UNWIND_FRAMES_MAX]; /* the frame's object, -1: none */
	int mem;
	size_t max;
	const struct elfsym_cache *cache;
	struct unwinder_result *result;
	int32_t index[2]; /* what TABLE_OF_ONE shows of itself to libunwind */
};

/* An address that no process has: an index of one entry, made for an object without one. */
#define TABLE_OF_ONE 0xffffffffffff0000u

/* ---- the tracee's memory ---- */

static const struct page *page_of(struct helper *h, uint64_t addr)
{
	uint64_t at = addr & ~(uint64_t)(PAGE - 1);
	struct page *p = &h->page[(at / PAGE) % PAGES];
	if (!at || at > INT64_MAX)
		return NULL;
	if (p->at != at) {
		p->at = at;
		p->there = pread(h->mem, p->bytes, PAGE, (off_t)at) == PAGE;
	}
	return p->there ? p : NULL;
}

static bool peek(struct helper *h, uint64_t addr, void *buf, size_t n)
{
	unsigned char *to = buf;
	while (n) {
		const struct page *p = page_of(h, addr);
		size_t in = addr & (PAGE - 1), part = PAGE - in < n ? PAGE - in : n;
		if (!p)
			return false;
		memcpy(to, p->bytes + in, part);
		to += part;
		addr += part;
		n -= part;
	}
	return true;
}

/* ---- objects in memory ---- */

static void use_segment(struct image *i, uint64_t base, const Elf64_Phdr *p, bool *biased)
{
	if (p->p_type == PT_LOAD && !*biased) {
		i->bias = base - (p->p_vaddr - p->p_offset);
		*biased = true;
	}
	if (p->p_type == PT_GNU_EH_FRAME)
		i->hdr = p->p_vaddr;
}

static Elf64_Phdr widen(const Elf32_Phdr *p)
{
	return (Elf64_Phdr){.p_type = p->p_type, .p_vaddr = p->p_vaddr, .p_offset = p->p_offset};
}

/* Program headers start with the lowest PT_LOAD (the ELF specification orders them by address). */
static void look(struct helper *h, uint64_t base, struct image *i)
{
	Elf64_Ehdr wide;
	Elf32_Ehdr narrow;
	bool biased = false;
	if (!peek(h, base, &wide, sizeof(wide)) || memcmp(wide.e_ident, ELFMAG, SELFMAG) != 0)
		return;
	memcpy(&narrow, &wide, sizeof(narrow));
	bool is_wide = wide.e_ident[EI_CLASS] == ELFCLASS64;
	uint64_t at = is_wide ? wide.e_phoff : narrow.e_phoff;
	unsigned count = is_wide ? wide.e_phnum : narrow.e_phnum;
	for (unsigned k = 0; k < count && k < SEGMENTS_MAX; k++) {
		Elf64_Phdr p;
		Elf32_Phdr n;
		if (is_wide ? !peek(h, base + at + k * sizeof(p), &p, sizeof(p))
			    : !peek(h, base + at + k * sizeof(n), &n, sizeof(n)))
			return;
		if (!is_wide)
			p = widen(&n);
		use_segment(i, base, &p, &biased);
	}
	i->known = biased;
	if (i->hdr)
		i->hdr += i->bias;
}

static const struct image *image_of(struct helper *h, int object)
{
	struct image *i = &h->image[object];
	if (!i->looked && h->map.object[object].base)
		look(h, h->map.object[object].base, i);
	i->looked = true;
	return i;
}

/* Another file under the mapped one's name has another header, if only by its build id. */
static bool is_mapped_file(struct helper *h, const struct objmap_object *o)
{
	unsigned char theirs[PAGE], file[PAGE];
	if (!o->by_path)
		return true;
	ssize_t n = pread(o->fd, file, PAGE, 0);
	return n >= (ssize_t)sizeof(Elf32_Ehdr) && peek(h, o->base, theirs, (size_t)n) &&
	       !memcmp(theirs, file, (size_t)n);
}

/* ---- libunwind's questions ---- */

/* The Linux Standard Base's .eh_frame_hdr, in the form that every linker writes. */
struct eh_frame_hdr {
	uint8_t version, frame_encoding, count_encoding, table_encoding;
	int32_t frame;
	uint32_t count;
};

#define EH_SDATA4_PCREL	  0x1b
#define EH_UDATA4	  0x03
#define EH_SDATA4_DATAREL 0x3b

static bool has_index(struct helper *h, const struct image *i, struct eh_frame_hdr *hdr)
{
	return i->hdr && peek(h, i->hdr, hdr, sizeof(*hdr)) && hdr->version == 1 &&
	       hdr->frame_encoding == EH_SDATA4_PCREL && hdr->count_encoding == EH_UDATA4 &&
	       hdr->table_encoding == EH_SDATA4_DATAREL;
}

static bool read_frames(void *arg, uint64_t addr, void *buf, size_t n)
{
	return peek(arg, addr, buf, n);
}

/* Where the section is only the file knows: no program header tells. */
static void seek_frames(struct helper *h, int object, struct image *i)
{
	const struct objmap_object *o = &h->map.object[object];
	const struct elfsym_image file = {.fd = o->fd};
	if (i->sought || o->fd < 0 || !is_mapped_file(h, o))
		return;
	i->sought = true;
	if (elfsym_section(&file, ".eh_frame", &i->frames, &i->frames_size) && i->frames)
		i->frames += i->bias;
}

/* The entries' offsets are of 32 bits, from segbase: the found entry itself. */
static bool make_index(struct helper *h, int object, uint64_t ip, unw_dyn_info_t *di)
{
	struct image *i = &h->image[object];
	struct ehscan_entry e;
	seek_frames(h, object, i);
	if (!i->frames || !ehscan_find(read_frames, h, i->frames, i->frames_size, ip, &e))
		return false;
	h->index[0] = (int32_t)(e.start - e.at);
	h->index[1] = 0;
	di->u.rti.segbase = e.at;
	di->u.rti.table_data = TABLE_OF_ONE;
	di->u.rti.table_len = 1;
	return true;
}

static int find_proc_info(unw_addr_space_t as, unw_word_t ip, unw_proc_info_t *pi, int need_info,
			  void *arg)
{
	struct helper *h = arg;
	struct eh_frame_hdr hdr;
	const struct objmap_code *code = objmap_find(&h->map, ip);
	const struct image *i = code && code->object >= 0 ? image_of(h, code->object) : NULL;
	if (!i || !i->known)
		return -UNW_ENOINFO;
	unw_dyn_info_t di = {.start_ip = code->start,
			     .end_ip = code->end,
			     .format = UNW_INFO_FORMAT_REMOTE_TABLE};
	if (has_index(h, i, &hdr)) {
		di.u.rti.segbase = i->hdr;
		di.u.rti.table_data = i->hdr + sizeof(hdr);
		di.u.rti.table_len = hdr.count; /* entries are of one word's size */
	} else if (!make_index(h, code->object, ip, &di)) {
		return -UNW_ENOINFO;
	}
	return h->lib->dwarf_search_unwind_table(as, ip, &di, pi, need_info, arg);
}

/* The helper ends with the stack: nothing is worth freeing. */
static void put_unwind_info(unw_addr_space_t as, unw_proc_info_t *pi, void *arg)
{
	(void)as;
	(void)pi;
	(void)arg;
}

static int no_dyn_info(unw_addr_space_t as, unw_word_t *ret, void *arg)
{
	(void)as;
	(void)ret;
	(void)arg;
	return -UNW_ENOINFO;
}

static int access_mem(unw_addr_space_t as, unw_word_t addr, unw_word_t *value, int write, void *arg)
{
	struct helper *h = arg;
	(void)as;
	if (write)
		return -UNW_EINVAL;
	if (addr == TABLE_OF_ONE) {
		memcpy(value, h->index, sizeof(*value));
		return 0;
	}
	return peek(h, addr, value, sizeof(*value)) ? 0 : -UNW_EINVAL;
}

static int access_reg(unw_addr_space_t as, unw_regnum_t reg, unw_word_t *value, int write,
		      void *arg)
{
	const struct helper *h = arg;
	(void)as;
	if (write)
		return -UNW_EREADONLYREG;
	if (reg < 0 || (unsigned)reg >= h->regs.len)
		return -UNW_EBADREG;
	*value = h->regs.word[reg];
	return 0;
}

static int no_fpreg(unw_addr_space_t as, unw_regnum_t reg, unw_fpreg_t *value, int write, void *arg)
{
	(void)as;
	(void)reg;
	(void)value;
	(void)write;
	(void)arg;
	return -UNW_EBADREG;
}

static int no_resume(unw_addr_space_t as, unw_cursor_t *c, void *arg)
{
	(void)as;
	(void)c;
	(void)arg;
	return -UNW_EINVAL;
}

static int no_proc_name(unw_addr_space_t as, unw_word_t ip, char *buf, size_t n, unw_word_t *offset,
			void *arg)
{
	(void)as;
	(void)ip;
	(void)buf;
	(void)n;
	(void)offset;
	(void)arg;
	return -UNW_ENOINFO;
}

/* ---- frames ---- */

static uint32_t keep_text(struct unwinder_result *r, const char *s)
{
	size_t n = strlen(s) + 1;
	if (n == 1 || n > sizeof(r->text) - r->text_len)
		return 0;
	uint32_t at = r->text_len;
	memcpy(r->text + at, s, n);
	r->text_len += (uint32_t)n;
	return at;
}

/* Frames of one object share its name. */
static uint32_t keep_object(struct helper *h, int object)
{
	struct unwinder_result *r = h->result;
	for (uint32_t i = 0; i < r->len; i++)
		if (h->owner[i] == object)
			return r->frame[i].object;
	return keep_text(r, h->map.names + h->map.object[object].name);
}

/* called: ip is where a call returns to, which may be behind the caller's last instruction. */
static void add_frame(struct helper *h, uint64_t ip, bool called)
{
	struct unwinder_result *r = h->result;
	uint32_t n = r->len;
	struct unwinder_frame *f = &r->frame[n];
	const struct objmap_code *code = objmap_find(&h->map, ip - called);
	*f = (struct unwinder_frame){.ip = ip};
	h->owner[n] = code ? code->object : -1;
	if (h->owner[n] >= 0) {
		const struct image *i = image_of(h, code->object);
		f->object = keep_object(h, code->object);
		f->object_offset = i->known ? ip - i->bias : ip - code->start + code->offset;
		f->lookup = f->object_offset - called;
	}
	__atomic_store_n(&r->len, n + 1, __ATOMIC_RELEASE);
}

/*
 * Where libunwind went to must be code, and not further down the stack. At the same place is fine:
 * a leaf function of aarch64 has no frame of its own.
 */
static bool is_plausible(const struct helper *h, uint64_t ip, uint64_t sp, uint64_t last_sp)
{
	return sp >= last_sp && objmap_find(&h->map, ip);
}

static enum unwind_end walk(struct helper *h, unw_cursor_t *c)
{
	bool called = false; /* the first frame stands at its own instruction */
	unw_word_t last_sp = 0;
	int r = 1;
	for (; r > 0; r = h->lib->step(c)) {
		unw_word_t ip = 0, sp = 0;
		size_t n = h->result->len;
		if (h->lib->get_reg(c, UNW_REG_IP, &ip) || h->lib->get_reg(c, UNW_REG_SP, &sp))
			return UNWIND_LOST;
		if (!ip)
			return UNWIND_COMPLETE;
		/* Then the last frame was the kernel's, and this one was interrupted, not called.
		 */
		if (n && h->lib->is_signal_frame(c) > 0) {
			h->result->frame[n - 1].is_signal = true;
			called = false;
			last_sp = 0; /* a handler on a stack of its own may return to a lower one */
		}
		if (n && !is_plausible(h, ip - called, sp, last_sp))
			return UNWIND_LOST;
		if (n == h->max)
			return UNWIND_MORE;
		add_frame(h, ip, called);
		called = true;
		last_sp = sp;
	}
	return r == 0 ? UNWIND_COMPLETE : UNWIND_LOST;
}

/*
 * i386: the frame itself, and who called the vdso's __kernel_vsyscall: behind the call it pops ebp,
 * edx and ecx and returns (arch/x86/entry/vdso/vdso32/system_call.S).
 */
static enum unwind_end walk_narrow(struct helper *h)
{
	static const unsigned char way_out[] = {0x5d, 0x5a, 0x59, 0xc3};
	unsigned char code[sizeof(way_out)];
	uint32_t ip;
	add_frame(h, h->regs.ip, false);
	if (h->max > 1 && peek(h, h->regs.ip, code, sizeof(code)) &&
	    !memcmp(code, way_out, sizeof(code)) && peek(h, h->regs.sp + 12, &ip, sizeof(ip)) &&
	    objmap_find(&h->map, ip))
		add_frame(h, ip, true);
	return UNWIND_NARROW;
}

/* ---- names ---- */

static bool id_of(int fd, struct elfsym_id *ret)
{
	struct stat st;
	if (fd < 0 || fstat(fd, &st))
		return false;
	*ret = (struct elfsym_id){.dev = st.st_dev,
				  .ino = st.st_ino,
				  .size = (uint64_t)st.st_size,
				  .changed_ns =
					  st.st_ctim.tv_sec * 1000000000 + st.st_ctim.tv_nsec};
	return true;
}

static void set_name(struct helper *h, size_t i, const char *name, uint64_t start)
{
	struct unwinder_frame *f = &h->result->frame[i];
	f->function_offset = f->object_offset - start;
	__atomic_store_n(&f->function, keep_text(h->result, name), __ATOMIC_RELEASE);
}

/* The names of all frames of one object, in one search. */
static void name_object(struct helper *h, int object)
{
	const struct objmap_object *o = &h->map.object[object];
	struct elfsym_id id = {0};
	struct elfsym_image image = {.fd = o->ino ? o->fd : h->mem, .at = o->ino ? 0 : o->base};
	size_t frame[UNWIND_FRAMES_MAX], n = 0;
	if (!image_of(h, object)->known ||
	    (o->ino && (!id_of(o->fd, &id) || !is_mapped_file(h, o))))
		return;
	for (size_t i = 0; i < h->result->len; i++) {
		if (h->owner[i] != object)
			continue;
		h->result->frame[i].id = id;
		const struct elfsym_known *known =
			id.ino ? elfsym_cache_find(h->cache, &id, h->result->frame[i].lookup)
			       : NULL;
		if (known && known->name[0])
			set_name(h, i, known->name, known->start);
		if (known)
			continue;
		h->want[n] = (struct elfsym_want){.addr = h->result->frame[i].lookup};
		frame[n++] = i;
	}
	if (!n)
		return;
	h->result->tables++;
	elfsym_find(&image, h->want, n);
	for (size_t k = 0; k < n; k++) {
		if (h->want[k].found)
			set_name(h, frame[k], h->want[k].name, h->want[k].start);
		h->result->frame[frame[k]].searched = true;
	}
}

static void name_all(struct helper *h)
{
	for (size_t i = 0; i < h->result->len; i++) {
		bool first = h->owner[i] >= 0;
		for (size_t k = 0; k < i && first; k++)
			first = h->owner[k] != h->owner[i];
		if (first)
			name_object(h, h->owner[i]);
	}
}

/* ---- the walls ---- */

#define ALLOW(nr)                                                                                  \
	BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (nr), 0, 1),                                           \
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)

#ifdef __x86_64__
#define OWN_ARCH AUDIT_ARCH_X86_64
#else
#define OWN_ARCH AUDIT_ARCH_AARCH64
#endif

/* From here on: reading what is open, memory, and the end. Nothing that writes, opens or signals.
 */
static int lock_down(void)
{
	static const struct sock_filter insns[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, arch)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, OWN_ARCH, 1, 0),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		ALLOW(__NR_pread64),
		ALLOW(__NR_fstat),
		ALLOW(__NR_newfstatat), /* glibc's fstat */
		ALLOW(__NR_mmap),
		ALLOW(__NR_munmap),
		ALLOW(__NR_brk),
		ALLOW(__NR_rt_sigprocmask),
		ALLOW(__NR_exit_group),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
	};
	const struct sock_fprog prog = {.len = ARRAY_LEN(insns), .filter = (void *)insns};
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) ||
	    prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &prog))
		return -errno;
	return 0;
}

/* Nothing of the supervisor's stays open, and it does not outlive it or leave a core file. */
static int strip(int *mem)
{
	if (prctl(PR_SET_PDEATHSIG, SIGKILL) || prctl(PR_SET_DUMPABLE, 0))
		return -errno;
	if (dup2(*mem, 0) < 0 || close_range(1, ~0u, 0))
		return -errno;
	*mem = 0;
	for (int sig = 1; sig < NSIG; sig++)
		signal(sig, SIG_DFL);
	return 0;
}

static enum unwind_end unwind(struct helper *h)
{
	unw_accessors_t accessors = {
		.find_proc_info = find_proc_info,
		.put_unwind_info = put_unwind_info,
		.get_dyn_info_list_addr = no_dyn_info,
		.access_mem = access_mem,
		.access_reg = access_reg,
		.access_fpreg = no_fpreg,
		.resume = no_resume,
		.get_proc_name = no_proc_name,
	};
	unw_cursor_t c;
	unw_addr_space_t as = h->lib->create_addr_space(&accessors, 0);
	if (!as || h->lib->init_remote(&c, as, h))
		return UNWIND_LOST;
	h->lib->set_caching_policy(as, UNW_CACHE_NONE);
	if (lock_down())
		return UNWIND_UNREADABLE;
	return h->regs.narrow ? walk_narrow(h) : walk(h, &c);
}

void unwinder_main(const struct unwinder_job *job)
{
	struct helper *h =
		mmap(NULL, sizeof(*h), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (h == MAP_FAILED)
		_exit(1);
	h->lib = job->lib;
	h->mem = job->mem;
	h->regs = *job->regs;
	h->max = job->max;
	h->cache = job->cache;
	h->result = job->result;
	if (strip(&h->mem) || objmap_read(&h->map, job->tid))
		_exit(1);
	objmap_open_files(&h->map, job->tid);
	enum unwind_end end = unwind(h);
	if (h->result->len)
		name_all(h);
	h->result->end = end;
	_exit(0);
}
