#include "tracer/objects.h"

#include "tracer/filter.h"
#include "tracer/insn.h"
#include "tracer/mem.h"
#include "tracer/util.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#define OBJECTS_MAX  1024
#define FUNCTION_MAX 4096 /* bytes decoded for one site */
#define SMALL_FILE   32768
#define SLOTS_MAX    SITEFILE_SITES_MAX /* stubs in one object */
#define SLOTS_SPARE  4			/* of them, for sites that a program comes to */
#define SYSCALL_SIZE 2
#define SCAN_MAX     (4u << 20) /* bytes of one text */
#define SCAN_CHUNK   (64u << 10)

struct objects {
	struct object *first;
	size_t len;
	struct sitefile *file; /* of earlier runs; NULL: none */
};

struct objects *objects_new(const char *state_dir)
{
	struct objects *os = calloc(1, sizeof(*os));

	if (os && state_dir)
		os->file = sitefile_new(state_dir, OBJECTS_RULES);
	return os;
}

static void keep(struct objects *os, const struct object *o)
{
	struct sitefile_site site[SITEFILE_SITES_MAX];

	for (size_t i = 0; i < o->len; i++)
		site[i] = (struct sitefile_site){.offset = o->site[i].offset,
						 .nr = o->site[i].site.nr,
						 .function = o->site[i].function};
	sitefile_put(os->file, &o->key, site, o->len);
}

void objects_free(struct objects *os)
{
	while (os && os->first) {
		struct object *o = os->first;
		os->first = o->next;
		if (o->news && o->whole && o->key.id_len && !o->doubtful)
			keep(os, o);
		free(o->site);
		free(o);
	}
	if (os)
		sitefile_free(os->file);
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
	/* In a small file every call is near its end. */
	if (where->end - where->start <= SMALL_FILE &&
	    begin + STUB_NEAREST + SLOTS_MAX / 2 * STUB_SIZE <= end)
		begin += STUB_NEAREST;
	*ret_room = offset_of(where, begin);
	size_t slots = begin < end ? (end - begin) / STUB_SIZE : 0;
	return slots < SLOTS_MAX ? slots : SLOTS_MAX;
}

size_t objects_room(const struct maps_region *where, const struct elfmem_text *text)
{
	uint64_t room;

	return measure_room(where, text, &room);
}

/* ---- learning ---- */

/* mov $nr,%eax: it needs no word from the unwind table to be known. */
static bool is_number_move(const uint8_t *before, int32_t nr)
{
	return before[0] == 0xb8 && memcmp(before + 1, &nr, sizeof(nr)) == 0;
}

/* What ends before the syscall and can be moved, by its function's code up to there. */
static unsigned length_before(pid_t tid, uint64_t function, uint64_t syscall)
{
	uint8_t code[FUNCTION_MAX];

	if (syscall - function > sizeof(code) ||
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

/* The same for a site whose function begins there. False: nothing that can be replaced. */
static bool decode_site(pid_t tid, const struct sysent *ent, uint64_t function, uint64_t syscall,
			struct stub_site *ret)
{
	struct stub_site site = site_of(ent);
	unsigned len = length_before(tid, function, syscall);

	if (!len || mem_read(tid, syscall - len, site.before, len) < 0)
		return false;
	site.before_len = (uint8_t)len;
	*ret = site;
	return true;
}

/* What stands before the syscall; the offset is the caller's. False as above. */
static bool look_at_site(pid_t tid, const struct sysent *ent, const struct elfmem_text *text,
			 uint64_t syscall, struct object_site *ret)
{
	struct object_site s = {.site = site_of(ent)};
	uint64_t function;

	if (mem_read(tid, syscall - STUB_JUMP, s.site.before, STUB_JUMP) < 0)
		return false;
	s.site.before_len = STUB_JUMP;
	if (!is_number_move(s.site.before, s.site.nr)) {
		if (elfmem_function(tid, text, syscall, &function) < 0 ||
		    !decode_site(tid, ent, function, syscall, &s.site))
			return false;
		s.function = (uint32_t)(syscall - function);
	}
	*ret = s;
	return true;
}

bool objects_can_change(pid_t tid, const struct sysent *ent, const struct elfmem_text *text,
			uint64_t syscall)
{
	struct object_site site;

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

static void add_site(struct object *o, const struct object_site *site)
{
	if (o->len >= o->slots || knows(o, site->offset))
		return;
	o->site[o->len++] = *site;
	o->news = true;
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

/* The site at p: one that is known, or mov $nr,%eax for ent. */
static struct stub_site site_at(const struct sysent *ent, const struct known_code *k,
				const uint8_t *p)
{
	struct stub_site site = site_of(k ? &sysents[k->id] : ent);

	site.before_len = k ? k->moves : STUB_JUMP;
	site.several = k && k->several;
	memcpy(site.before, p - site.before_len, site.before_len);
	return site;
}

static void add_if_opens(struct object *o, uint64_t offset, const uint8_t *code, const uint8_t *end,
			 const uint8_t *p)
{
	const struct sysent *ent = opens_at(code, p);
	const struct known_code *k = ent ? NULL : known_at(code, end, p);

	if (!k && (!ent || o->len + SLOTS_SPARE >= o->slots))
		return;
	struct object_site site = {.offset = offset, .site = site_at(ent, k, p)};
	add_site(o, &site);
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

	o->whole = o->news = true;
	o->doubtful |= !code;
	if (end - at > SCAN_MAX) /* Go's own packages come first */
		end = at + SCAN_MAX;
	while (code && at + overlap < end && o->len < o->slots) {
		size_t n = end - at < SCAN_CHUNK ? end - at : SCAN_CHUNK;
		if (mem_read(tid, at, code, n) < 0) {
			o->doubtful = true;
			return;
		}
		scan(o, where, at, code, n);
		at += n - overlap;
	}
}

/* ---- what earlier runs have learned ---- */

/* Up to so many bytes of text around a `syscall` say what it is. */
#define PIECE_BEFORE 48
#define PIECE_BEHIND 16

/* The text around one of them, and a copy of it. */
struct piece {
	uint64_t syscall;  /* where it is in the tracee */
	const uint8_t *at; /* the same in the copy, */
	const uint8_t *code, *end;
};

/*
 * Its function begins where the unwind table says. What was kept is the word of another program,
 * which may have changed its own copy of the table: decoded from the middle of an instruction, a
 * function's code is another.
 */
static bool accept_function(pid_t tid, const struct elfmem_text *text, const struct sysent *ent,
			    uint64_t syscall, struct object_site *s)
{
	uint64_t function;

	return elfmem_function(tid, text, syscall, &function) == 0 &&
	       s->function == syscall - function &&
	       decode_site(tid, ent, function, syscall, &s->site);
}

/* Looked at again as if it were come upon now. */
static bool accept_site(pid_t tid, const struct elfmem_text *text, const struct piece *piece,
			int32_t nr, struct object_site *s)
{
	const struct sysent *ent = sysent_by_nr(SYS_ARCH_X86_64, nr);
	const uint8_t *p = piece->at;

	if (!ent || !filter_passes(ent) || memcmp(p, "\x0f\x05", SYSCALL_SIZE) != 0)
		return false;
	if (s->function)
		return accept_function(tid, text, ent, piece->syscall, s);
	bool moves = p - piece->code >= STUB_JUMP && is_number_move(p - STUB_JUMP, nr);
	const struct known_code *k = moves ? NULL : known_at(piece->code, piece->end, p);
	if (!moves && (!k || sysents[k->id].nr[SYS_ARCH_X86_64] != nr))
		return false;
	s->site = site_at(ent, k, p);
	return true;
}

/* The text around each of them. False: one of them is not in it. */
static bool cut_pieces(const struct maps_region *where, const struct elfmem_text *text,
		       const struct sitefile_site *site, size_t n, struct iovec *ret)
{
	uint64_t end = text->end < where->end ? text->end : where->end;
	uint64_t size = end - where->start;

	for (size_t i = 0; i < n; i++) {
		uint64_t at = site[i].offset - where->offset;
		if (at < STUB_INSN_MAX || at >= size || size - at < SYSCALL_SIZE)
			return false;
		uint64_t before = at < PIECE_BEFORE ? at : PIECE_BEFORE;
		uint64_t behind = size - at < PIECE_BEHIND ? size - at : PIECE_BEHIND;
		ret[i] = (struct iovec){(void *)(uintptr_t)(where->start + at - before),
					before + behind};
	}
	return true;
}

/* All of them or none. */
static bool accept_all(struct object *o, pid_t tid, const struct maps_region *where,
		       const struct elfmem_text *text, const struct sitefile_site *site, size_t n)
{
	struct iovec around[SLOTS_MAX];
	uint8_t bytes[SLOTS_MAX * (PIECE_BEFORE + PIECE_BEHIND)], *code = bytes;

	if (n > o->slots || !cut_pieces(where, text, site, n, around) ||
	    (n && mem_read_pieces(tid, around, n, bytes) < 0))
		return false;
	for (size_t i = 0; i < n; i++) {
		struct object_site s = {.offset = site[i].offset, .function = site[i].function};
		struct piece piece = {.syscall = where->start + (s.offset - where->offset),
				      .code = code,
				      .end = code + around[i].iov_len};
		piece.at = code + (piece.syscall - (uintptr_t)around[i].iov_base);
		if (!accept_site(tid, text, &piece, site[i].nr, &s))
			break;
		add_site(o, &s); /* but one that comes twice */
		code += around[i].iov_len;
	}
	if (o->len < n)
		o->len = 0;
	o->news = false;
	return o->len == n;
}

static void recall(struct objects *os, struct object *o, pid_t tid, const struct maps_region *where,
		   uint64_t base, const struct elfmem_text *text)
{
	struct sitefile_site site[SITEFILE_SITES_MAX];
	struct sitefile_key key = {
		.dev = o->dev, .ino = o->ino, .room = o->room, .slots = (uint32_t)o->slots};
	int n = os->file ? elfmem_build_id(tid, base, key.id, sizeof(key.id)) : -ENOENT;

	key.id_len = n > 0 ? (uint32_t)n : 0;
	o->key = key;
	n = n > 0 ? sitefile_find(os->file, &key, site) : -ENOENT;
	if (n < 0)
		return;
	o->whole = accept_all(o, tid, where, text, site, (size_t)n);
	o->doubtful = !o->whole;
}

/* ---- the face ---- */

/* The object that has this text, new or known. NULL: it has no room, or there is no memory. */
static struct object *take_object(struct objects *os, pid_t tid, const struct maps_region *where,
				  uint64_t base, const struct elfmem_text *text)
{
	uint64_t room;
	size_t slots = measure_room(where, text, &room);
	struct object *o = find(os, where);

	if (!o && slots)
		o = add_object(os, where);
	if (!o || (o->room == room && o->slots == slots))
		return o;
	/* New, or another file has that inode now. */
	o->room = room;
	o->slots = slots;
	o->len = 0;
	o->whole = o->news = o->doubtful = false;
	recall(os, o, tid, where, base, text);
	return o;
}

const struct object *objects_known(struct objects *os, pid_t tid, const struct maps_region *where,
				   uint64_t base)
{
	const struct object *o = find(os, where);
	struct elfmem_text text;
	uint64_t room;

	if ((o ? !o->len : !os->file) || !base ||
	    elfmem_text(tid, base, where->start, where->offset, &text) < 0)
		return NULL;
	if (!o)
		o = take_object(os, tid, where, base, &text);
	/* Another file may have the inode by now: then what is zero there is its data, maybe. */
	if (!o || !o->len || measure_room(where, &text, &room) < o->len || room != o->room)
		return NULL;
	return o;
}

const struct object *objects_find(struct objects *os, pid_t tid, const struct maps_region *where,
				  uint64_t base, uint64_t syscall)
{
	const struct object *o = objects_known(os, tid, where, base);

	return o && knows(o, offset_of(where, syscall)) ? o : NULL;
}

const struct object *objects_learn(struct objects *os, const struct tracee *t,
				   const struct sysent *ent, const struct maps_region *where,
				   uint64_t base)
{
	uint64_t syscall = t->at.ip - SYSCALL_SIZE;
	struct elfmem_text text;
	struct object_site site;

	if (!base || syscall - where->start < STUB_INSN_MAX ||
	    elfmem_text(t->tid, base, syscall, offset_of(where, syscall), &text) < 0)
		return NULL;
	struct object *o = take_object(os, t->tid, where, base, &text);
	if (!o)
		return NULL;
	if (!knows(o, offset_of(where, syscall)) &&
	    look_at_site(t->tid, ent, &text, syscall, &site)) {
		site.offset = offset_of(where, syscall);
		add_site(o, &site);
	}
	if (!o->whole)
		scan_text(o, t->tid, where, &text);
	return knows(o, offset_of(where, syscall)) ? o : NULL;
}

const struct object *objects_survey(struct objects *os, pid_t tid, const struct maps_region *where,
				    uint64_t base)
{
	struct elfmem_text text;

	if (elfmem_text(tid, base, where->start, where->offset, &text) < 0)
		return NULL;
	struct object *o = take_object(os, tid, where, base, &text);
	if (o && !o->whole)
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
