#include "tracer/objects.h"

#include "tracer/filter.h"
#include "tracer/insn.h"
#include "tracer/mem.h"
#include "tracer/util.h"

#include <string.h>
#include <unistd.h>

#define OBJECTS_MAX  1024
#define FUNCTION_MAX 4096 /* bytes decoded for one site */
#define SLOTS_MAX    24	  /* stubs in one object */
#define SLOTS_SPARE  4	  /* of them, for sites that a program comes to */
#define SYSCALL_SIZE 2
#define SCAN_MAX     (4u << 20) /* bytes of one text */
#define SCAN_CHUNK   (64u << 10)

struct objects {
	struct object *first;
	size_t len;
};

struct objects *objects_new(void)
{
	return calloc(1, sizeof(struct objects));
}

void objects_free(struct objects *os)
{
	while (os && os->first) {
		struct object *o = os->first;
		os->first = o->next;
		free(o->site);
		free(o);
	}
	free(os);
}

static struct object *find(const struct objects *os, const struct maps_region *where)
{
	struct object *o = os->first;

	while (o && (o->dev != where->dev || o->ino != where->ino))
		o = o->next;
	return o;
}

static bool knows(const struct object *o, uint64_t offset)
{
	for (size_t i = 0; i < o->len; i++)
		if (o->site[i].offset == offset)
			return true;
	return false;
}

static uint64_t offset_of(const struct maps_region *where, uint64_t address)
{
	return address - where->start + where->offset;
}

/* A segment may begin and end within a page: in the middle it surely is. */
static uint64_t middle_of(const struct maps_region *where)
{
	return where->start + (where->end - where->start) / 2;
}

/*
 * The filler behind the segment's last byte, up to the end of its last page: how many stubs fit,
 * and in *ret_room the file offset of the first.
 */
static size_t measure_room(const struct maps_region *where, const struct elfmem_text *text,
			   uint64_t *ret_room)
{
	uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);
	uint64_t begin = (text->end + 15) & ~(uint64_t)15, end = (text->end + page - 1) & -page;

	*ret_room = 0;
	if (begin < text->end || begin <= where->start)
		return 0;
	if (end > where->end)
		end = where->end;
	*ret_room = offset_of(where, begin);
	size_t slots = begin < end ? (end - begin) / STUB_SIZE : 0;
	return slots < SLOTS_MAX ? slots : SLOTS_MAX;
}

size_t objects_room(const struct maps_region *where, const struct elfmem_text *text)
{
	uint64_t room;

	return measure_room(where, text, &room);
}

const struct object *objects_known(const struct objects *os, pid_t tid,
				   const struct maps_region *where, uint64_t base)
{
	const struct object *o = find(os, where);
	struct elfmem_text text;
	uint64_t room, within = middle_of(where);

	/* Another file may have the inode by now: then what is zero there is its data, maybe. */
	if (!o || !o->len || !base ||
	    elfmem_text(tid, base, within, offset_of(where, within), &text) < 0 ||
	    measure_room(where, &text, &room) < o->len || room != o->room)
		return NULL;
	return o;
}

const struct object *objects_find(const struct objects *os, pid_t tid,
				  const struct maps_region *where, uint64_t base, uint64_t syscall)
{
	const struct object *o = find(os, where);

	return o && knows(o, offset_of(where, syscall)) ? objects_known(os, tid, where, base)
							: NULL;
}

/* ---- learning ---- */

/* mov $nr,%eax: it needs no word from the unwind table to be known. */
static bool is_number_move(const uint8_t *before, int32_t nr)
{
	return before[0] == 0xb8 && memcmp(before + 1, &nr, sizeof(nr)) == 0;
}

static unsigned length_before(pid_t tid, const struct elfmem_text *text, uint64_t syscall)
{
	uint8_t code[FUNCTION_MAX];
	uint64_t function;

	if (elfmem_function(tid, text, syscall, &function) < 0 ||
	    syscall - function > sizeof(code) ||
	    mem_read(tid, function, code, syscall - function) < 0)
		return 0;
	return insn_movable_before(code, syscall - function, STUB_JUMP);
}

static struct stub_site site_of(const struct sysent *ent)
{
	return (struct stub_site){.nr = ent->nr[SYS_ARCH_X86_64],
				  .mark_arg = (uint8_t)ent->mark,
				  .two_paths = ent->need[1] != CALL_NEED_NONE};
}

/* What stands before the syscall. False: nothing that can be replaced. */
static bool look_at_site(pid_t tid, const struct sysent *ent, const struct elfmem_text *text,
			 uint64_t syscall, struct stub_site *ret)
{
	struct stub_site site = site_of(ent);
	unsigned len = STUB_JUMP;

	if (mem_read(tid, syscall - len, site.before, len) < 0)
		return false;
	if (!is_number_move(site.before, site.nr)) {
		len = length_before(tid, text, syscall);
		if (!len || mem_read(tid, syscall - len, site.before, len) < 0)
			return false;
	}
	site.before_len = (uint8_t)len;
	*ret = site;
	return true;
}

bool objects_can_change(pid_t tid, const struct sysent *ent, const struct elfmem_text *text,
			uint64_t syscall)
{
	struct stub_site site;

	return look_at_site(tid, ent, text, syscall, &site);
}

/* NULL: no memory, or no more of them. */
static struct object *add_object(struct objects *os, const struct maps_region *where)
{
	struct object *o = os->len < OBJECTS_MAX ? calloc(1, sizeof(*o)) : NULL;

	if (!o)
		return NULL;
	o->site = calloc(SLOTS_MAX, sizeof(*o->site));
	if (!o->site) {
		free(o);
		return NULL;
	}
	o->dev = where->dev;
	o->ino = where->ino;
	o->next = os->first;
	os->first = o;
	os->len++;
	return o;
}

static void add_site(struct object *o, uint64_t offset, const struct stub_site *site)
{
	if (o->len < o->slots && !knows(o, offset))
		o->site[o->len++] = (struct object_site){offset, *site};
}

/*
 * Functions through which every call goes, with whatever number: no number stands before their
 * `syscall`. They are known by their code; what they open by is the number that their stub is for.
 */
static const uint8_t go_code[] = {/* mov %rsi,%r10; mov %rdi,%rdx; mov %rcx,%rsi; mov %rbx,%rdi */
				  0x49, 0x89, 0xf2, 0x48, 0x89, 0xfa, 0x48,
				  0x89, 0xce, 0x48, 0x89, 0xdf, 0x0f, 0x05};
/* mov %rdi,%r11; mov %rsi,%rax; ...; mov %r11,8(%rsp) */
static const uint8_t cancel_code[] = {0x49, 0x89, 0xfb, 0x48, 0x89, 0xf0, 0x48, 0x89, 0xd7,
				      0x48, 0x89, 0xce, 0x4c, 0x89, 0xc2, 0x4d, 0x89, 0xca,
				      0x4c, 0x8b, 0x44, 0x24, 0x08, 0x4c, 0x8b, 0x4c, 0x24,
				      0x10, 0x4c, 0x89, 0x5c, 0x24, 0x08, 0x0f, 0x05};
/* mov %rdi,%rax; mov %r8,%r10; ...; mov 8(%rsp),%r9; mov %rcx,%rdx */
static const uint8_t musl_code[] = {0x48, 0x89, 0xf8, 0x4d, 0x89, 0xc2, 0x48, 0x89, 0xf7,
				    0x4d, 0x89, 0xc8, 0x48, 0x89, 0xd6, 0x4c, 0x8b, 0x4c,
				    0x24, 0x08, 0x48, 0x89, 0xca, 0x0f, 0x05};

/*
 * mov 16(%rsp),%rax; and behind the `syscall`: pop %rbx; ret. (A static program has no index of its
 * functions by which it could be learned.)
 */
static const uint8_t plain_code[] = {0x48, 0x8b, 0x44, 0x24, 0x10, 0x0f, 0x05, 0x5b, 0xc3};

/* Behind the test whether the thread was cancelled, and its jump, musl's and glibc's are alike. */
#define TEST_AT	  8
#define LOOK_BACK (TEST_AT + sizeof(cancel_code))

static const struct known_code {
	const uint8_t *code;
	uint8_t size, tail; /* so many bytes of it are behind the `syscall`, */
	uint8_t moves;	    /* so many before that are replaced: */
	bool several;	    /* more than one instruction */
	uint8_t test[2];    /* what stands TEST_AT bytes before, 0: anything */
	enum sys_id id;
} known_codes[] = {
	/* Syscall6, 1.18 to 1.24 */
	{go_code, sizeof(go_code), 0, 6, true, {0}, SYS_ID_openat},
	/* __syscall_cancel_arch, glibc 2.41 */
	{cancel_code, sizeof(cancel_code), 0, 5, false, {0x07, 0x08}, SYS_ID_openat},
	/* __internal_syscall_cancel, the same without threads as Debian's gcc makes it */
	{plain_code, sizeof(plain_code), 2, 5, false, {0}, SYS_ID_openat},
	/* __syscall_cp_asm, and what it is without threads as gcc makes it */
	{cancel_code, sizeof(cancel_code), 0, 5, false, {0x85, 0xc0}, SYS_ID_open},
	{musl_code, sizeof(musl_code), 0, 8, true, {0}, SYS_ID_open},
};

/* What the `syscall` at p is known to open by: what stands before it, and in one case behind. */
static const struct known_code *known_at(const uint8_t *code, const uint8_t *end, const uint8_t *p)
{
	for (size_t i = 0; i < ARRAY_LEN(known_codes); i++) {
		const struct known_code *k = &known_codes[i];
		size_t before = k->size - k->tail - SYSCALL_SIZE;
		size_t needed = before + (k->test[0] ? TEST_AT : 0);
		const uint8_t *begin = p - before;

		if ((size_t)(p - code) >= needed && (size_t)(end - begin) >= k->size &&
		    memcmp(begin, k->code, k->size) == 0 &&
		    (!k->test[0] || memcmp(begin - TEST_AT, k->test, 2) == 0))
			return k;
	}
	return NULL;
}

/* mov $nr,%eax; syscall */
static const struct sysent *opens_at(const uint8_t *code, const uint8_t *p)
{
	int32_t nr;

	if (p - code < STUB_JUMP || p[-STUB_JUMP] != 0xb8)
		return NULL;
	memcpy(&nr, p - sizeof(nr), sizeof(nr));
	const struct sysent *ent = sysent_by_nr(SYS_ARCH_X86_64, nr);
	return ent && filter_passes(ent) && ent->need[0] == CALL_NEED_OPEN ? ent : NULL;
}

static void add_if_opens(struct object *o, uint64_t offset, const uint8_t *code, const uint8_t *end,
			 const uint8_t *p)
{
	const struct sysent *ent = opens_at(code, p);
	const struct known_code *k = ent ? NULL : known_at(code, end, p);

	if (!k && (!ent || o->len + SLOTS_SPARE >= o->slots))
		return;
	struct stub_site site = site_of(ent ? ent : &sysents[k->id]);
	site.before_len = k ? k->moves : STUB_JUMP;
	site.several = k && k->several;
	memcpy(site.before, p - site.before_len, site.before_len);
	add_site(o, offset, &site);
}

/* Every `syscall` (0f 05), by its rarer byte: one pass. */
static void scan(struct object *o, const struct maps_region *where, uint64_t at,
		 const uint8_t *code, size_t len)
{
	const uint8_t *end = code + len, *p = code + 1;

	while (p < end && (p = memchr(p, 0x05, (size_t)(end - p)))) {
		const uint8_t *syscall = p - 1;
		if (*syscall == 0x0f)
			add_if_opens(o, offset_of(where, at + (size_t)(syscall - code)), code, end,
				     syscall);
		p++;
	}
}

static void scan_text(struct object *o, pid_t tid, const struct maps_region *where,
		      const struct elfmem_text *text)
{
	const size_t overlap = LOOK_BACK - 1;
	uint8_t *code AUTOFREE = malloc(SCAN_CHUNK);
	uint64_t at = where->start, end = text->end < where->end ? text->end : where->end;

	if (end - at > SCAN_MAX) /* Go's own packages come first */
		end = at + SCAN_MAX;
	while (code && at + overlap < end && o->len < o->slots) {
		size_t n = end - at < SCAN_CHUNK ? end - at : SCAN_CHUNK;
		if (mem_read(tid, at, code, n) < 0)
			return;
		scan(o, where, at, code, n);
		at += n - overlap;
	}
}

/* The object that has this text, new or known; *ret_fresh: nothing is known of it yet. */
static struct object *take_object(struct objects *os, const struct maps_region *where,
				  const struct elfmem_text *text, bool *ret_fresh)
{
	uint64_t room;
	size_t slots = measure_room(where, text, &room);
	struct object *o = find(os, where);

	if (!o && slots)
		o = add_object(os, where);
	if (!o)
		return NULL;
	*ret_fresh = o->room != room || o->slots != slots;
	if (*ret_fresh) /* another file has that inode now */
		o->len = 0;
	o->room = room;
	o->slots = slots;
	return o;
}

const struct object *objects_learn(struct objects *os, const struct tracee *t,
				   const struct sysent *ent, const struct maps_region *where,
				   uint64_t base)
{
	uint64_t syscall = t->at.ip - SYSCALL_SIZE;
	struct elfmem_text text;
	struct stub_site site;
	bool fresh;

	if (!base || syscall - where->start < STUB_INSN_MAX ||
	    elfmem_text(t->tid, base, syscall, offset_of(where, syscall), &text) < 0)
		return NULL;
	struct object *o = take_object(os, where, &text, &fresh);
	if (!o)
		return NULL;
	if (look_at_site(t->tid, ent, &text, syscall, &site))
		add_site(o, offset_of(where, syscall), &site);
	if (fresh)
		scan_text(o, t->tid, where, &text);
	return knows(o, offset_of(where, syscall)) ? o : NULL;
}

const struct object *objects_survey(struct objects *os, pid_t tid, const struct maps_region *where,
				    uint64_t base)
{
	uint64_t within = middle_of(where);
	struct elfmem_text text;
	bool fresh;

	if (elfmem_text(tid, base, within, offset_of(where, within), &text) < 0)
		return NULL;
	struct object *o = take_object(os, where, &text, &fresh);
	if (o && fresh)
		scan_text(o, tid, where, &text);
	return o && o->len ? o : NULL;
}

bool object_site(const struct object *o, size_t i, const struct maps_region *where,
		 struct stub_site *ret, uint64_t *ret_stub)
{
	uint64_t size = where->end - where->start;
	uint64_t site = o->site[i].offset - where->offset;
	uint64_t room = o->room + i * STUB_SIZE - where->offset;

	if (site >= size || room + STUB_SIZE > size || site < STUB_INSN_MAX)
		return false;
	*ret = o->site[i].site;
	ret->syscall = where->start + site;
	*ret_stub = where->start + room;
	return true;
}
