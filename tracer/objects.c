#include "tracer/objects.h"

#include "tracer/elfmem.h"
#include "tracer/insn.h"
#include "tracer/mem.h"
#include "tracer/util.h"

#include <string.h>
#include <unistd.h>

#define FUNCTION_MAX 4096 /* bytes decoded for one site */
#define SLOTS_MAX    16	  /* stubs in one object */
#define SYSCALL_SIZE 2

struct objects {
	struct object *first;
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

const struct object *objects_find(const struct objects *os, const struct maps_region *where,
				  uint64_t syscall)
{
	const struct object *o = find(os, where);
	uint64_t offset = syscall - where->start + where->offset;

	for (size_t i = 0; o && i < o->len; i++)
		if (o->site[i].offset == offset)
			return o;
	return NULL;
}

/* ---- learning ---- */

/* mov $nr,%eax: it needs no word from the unwind table to be known. */
static bool is_number_move(const uint8_t *before, int32_t nr)
{
	return before[0] == 0xb8 && memcmp(before + 1, &nr, sizeof(nr)) == 0;
}

static unsigned length_before(const struct tracee *t, const struct elfmem_text *text,
			      uint64_t syscall)
{
	uint8_t code[FUNCTION_MAX];
	uint64_t function;

	if (elfmem_function(t->tid, text, syscall, &function) < 0 ||
	    syscall - function > sizeof(code) ||
	    mem_read(t->tid, function, code, syscall - function) < 0)
		return 0;
	return insn_movable_before(code, syscall - function, STUB_JUMP);
}

/* What stands before the syscall. False: nothing that can be replaced. */
static bool look_at_site(const struct tracee *t, const struct sysent *ent,
			 const struct elfmem_text *text, struct stub_site *ret)
{
	uint64_t syscall = t->at.ip - SYSCALL_SIZE;
	struct stub_site site = {.nr = (int32_t)t->at.nr,
				 .mark_arg = (uint8_t)ent->mark,
				 .two_paths = ent->need[1] != CALL_NEED_NONE};
	unsigned len = length_before(t, text, syscall);

	if (!len && mem_read(t->tid, syscall - STUB_JUMP, site.before, STUB_JUMP) == 0 &&
	    is_number_move(site.before, site.nr))
		len = STUB_JUMP;
	if (!len || mem_read(t->tid, syscall - len, site.before, len) < 0)
		return false;
	site.before_len = (uint8_t)len;
	*ret = site;
	return true;
}

/* Behind the segment's last byte, up to the end of its last page. */
static void measure_room(struct object *o, const struct maps_region *where,
			 const struct elfmem_text *text)
{
	uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);
	uint64_t begin = (text->end + 15) & ~(uint64_t)15, end = (text->end + page - 1) & -page;

	if (end > where->end)
		end = where->end;
	o->room = begin - where->start + where->offset;
	o->slots = begin < end ? (end - begin) / STUB_SIZE : 0;
	if (o->slots > SLOTS_MAX)
		o->slots = SLOTS_MAX;
}

static struct object *add_object(struct objects *os, const struct maps_region *where,
				 const struct elfmem_text *text)
{
	struct object *o = calloc(1, sizeof(*o));

	if (!o)
		return NULL;
	o->dev = where->dev;
	o->ino = where->ino;
	measure_room(o, where, text);
	o->site = calloc(o->slots + 1, sizeof(*o->site));
	if (!o->site) {
		free(o);
		return NULL;
	}
	o->next = os->first;
	os->first = o;
	return o;
}

const struct object *objects_learn(struct objects *os, const struct tracee *t,
				   const struct sysent *ent, const struct maps_region *where,
				   uint64_t base)
{
	uint64_t syscall = t->at.ip - SYSCALL_SIZE;
	uint64_t offset = syscall - where->start + where->offset;
	struct elfmem_text text;
	struct stub_site site;

	if (!base || elfmem_text(t->tid, base, syscall, offset, &text) < 0 ||
	    !look_at_site(t, ent, &text, &site))
		return NULL;
	struct object *o = find(os, where);
	if (!o)
		o = add_object(os, where, &text);
	if (!o || o->len == o->slots)
		return NULL;
	o->site[o->len++] = (struct object_site){offset, site};
	return o;
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
