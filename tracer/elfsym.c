#include "tracer/elfsym.h"

#include "tracer/util.h"

#include <elf.h>
#include <string.h>

#define SECTIONS_MAX 4096u
#define CHUNK	     (64u << 10)
#define UNSIZED_MAX  4096u /* how far a symbol without a size is believed to reach */

/* Sections and symbols of either class are read as the wider one. */
struct table {
	uint64_t offset, size, strings, strings_size;
};

static bool read_at(const struct elfsym_image *image, uint64_t offset, void *buf, size_t n)
{
	uint64_t at;
	return !__builtin_add_overflow(image->at, offset, &at) && at <= INT64_MAX &&
	       pread(image->fd, buf, n, (off_t)at) == (ssize_t)n;
}

/* ---- the header and the sections ---- */

struct header {
	bool wide;
	uint64_t sections;
	unsigned count;
	unsigned names; /* the section of the sections' names */
};

static bool read_header(const struct elfsym_image *image, struct header *ret)
{
	union {
		unsigned char ident[EI_NIDENT];
		Elf32_Ehdr narrow;
		Elf64_Ehdr wide;
	} h;
	if (!read_at(image, 0, &h, sizeof(h.narrow)) || memcmp(h.ident, ELFMAG, SELFMAG) != 0)
		return false;
	ret->wide = h.ident[EI_CLASS] == ELFCLASS64;
	if (ret->wide && !read_at(image, 0, &h, sizeof(h.wide)))
		return false;
	size_t entry = ret->wide ? h.wide.e_shentsize : h.narrow.e_shentsize;
	ret->sections = ret->wide ? h.wide.e_shoff : h.narrow.e_shoff;
	ret->count = ret->wide ? h.wide.e_shnum : h.narrow.e_shnum;
	ret->names = ret->wide ? h.wide.e_shstrndx : h.narrow.e_shstrndx;
	if (ret->count > SECTIONS_MAX)
		ret->count = SECTIONS_MAX;
	return ret->sections && entry == (ret->wide ? sizeof(Elf64_Shdr) : sizeof(Elf32_Shdr));
}

static bool read_section(const struct elfsym_image *image, const struct header *h, unsigned i,
			 Elf64_Shdr *ret)
{
	Elf32_Shdr narrow;
	uint64_t at;
	size_t entry = h->wide ? sizeof(*ret) : sizeof(narrow);
	if (i >= h->count || __builtin_add_overflow(h->sections, (uint64_t)i * entry, &at))
		return false;
	if (h->wide)
		return read_at(image, at, ret, sizeof(*ret));
	if (!read_at(image, at, &narrow, sizeof(narrow)))
		return false;
	*ret = (Elf64_Shdr){.sh_name = narrow.sh_name,
			    .sh_type = narrow.sh_type,
			    .sh_addr = narrow.sh_addr,
			    .sh_offset = narrow.sh_offset,
			    .sh_size = narrow.sh_size,
			    .sh_link = narrow.sh_link};
	return true;
}

/* .symtab where it was not stripped, else .dynsym. */
static bool find_table(const struct elfsym_image *image, const struct header *h, struct table *ret)
{
	bool found = false;
	for (unsigned i = 0; i < h->count; i++) {
		Elf64_Shdr s, strings;
		if (!read_section(image, h, i, &s))
			break;
		if (s.sh_type != SHT_SYMTAB && (found || s.sh_type != SHT_DYNSYM))
			continue;
		if (!read_section(image, h, s.sh_link, &strings))
			continue;
		*ret = (struct table){.offset = s.sh_offset,
				      .size = s.sh_size,
				      .strings = strings.sh_offset,
				      .strings_size = strings.sh_size};
		found = true;
		if (s.sh_type == SHT_SYMTAB)
			break;
	}
	return found;
}

/* ---- the symbols ---- */

static void read_name(const struct elfsym_image *image, const struct table *t, uint32_t at,
		      char name[ELFSYM_NAME_MAX])
{
	size_t n = 0;
	uint64_t offset;
	name[0] = '\0';
	if (at >= t->strings_size || __builtin_add_overflow(t->strings, (uint64_t)at, &offset) ||
	    __builtin_add_overflow(image->at, offset, &offset) || offset > INT64_MAX)
		return;
	ssize_t got = pread(image->fd, name, ELFSYM_NAME_MAX - 1, (off_t)offset);
	if (got > 0)
		n = (size_t)got;
	name[n] = '\0';
}

/* Of several names for one place: fewest leading underscores, then the shortest. */
static bool is_better_name(const char *a, const char *b)
{
	size_t under_a = strspn(a, "_"), under_b = strspn(b, "_");
	if (!*a || !*b)
		return *a != '\0';
	return under_a != under_b ? under_a < under_b : strlen(a) < strlen(b);
}

static void consider(const struct elfsym_image *image, const struct table *t, const Elf64_Sym *s,
		     struct elfsym_want *w)
{
	char name[ELFSYM_NAME_MAX];
	/* A size beats none, then the nearest start. */
	bool same = w->found && w->start == s->st_value && !w->size == !s->st_size;
	bool nearer = !w->found || (!w->size && s->st_size) ||
		      (!w->size == !s->st_size && s->st_value > w->start);
	if (!same && !nearer)
		return;
	read_name(image, t, s->st_name, name);
	if (!*name || (same && !is_better_name(name, w->name)))
		return;
	w->found = true;
	w->start = s->st_value;
	w->size = s->st_size;
	memcpy(w->name, name, sizeof(name));
}

static Elf64_Sym symbol_at(const struct header *h, const char *bytes)
{
	Elf64_Sym wide;
	Elf32_Sym narrow;
	if (h->wide) {
		memcpy(&wide, bytes, sizeof(wide));
		return wide;
	}
	memcpy(&narrow, bytes, sizeof(narrow));
	return (Elf64_Sym){.st_name = narrow.st_name,
			   .st_info = narrow.st_info,
			   .st_shndx = narrow.st_shndx,
			   .st_value = narrow.st_value,
			   .st_size = narrow.st_size};
}

static bool is_code(const Elf64_Sym *s)
{
	unsigned type = ELF64_ST_TYPE(s->st_info);
	return s->st_shndx != SHN_UNDEF && (type == STT_FUNC || type == STT_GNU_IFUNC);
}

/* By rising address: a symbol is compared with few of them. */
struct wants {
	struct elfsym_want *item[ELFSYM_WANT_MAX];
	size_t len;
};

static void sort(struct elfsym_want *want, size_t n, struct wants *ret)
{
	for (ret->len = 0; ret->len < n; ret->len++) {
		size_t at = ret->len;
		want[at].found = false;
		for (; at && ret->item[at - 1]->addr > want[ret->len].addr; at--)
			ret->item[at] = ret->item[at - 1];
		ret->item[at] = &want[ret->len];
	}
}

static size_t first_from(const struct wants *w, uint64_t addr)
{
	size_t low = 0, high = w->len;
	while (low < high) {
		size_t middle = (low + high) / 2;
		if (w->item[middle]->addr < addr)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

static void take_symbol(const struct elfsym_image *image, const struct table *t, const Elf64_Sym *s,
			const struct wants *w)
{
	uint64_t reach = s->st_size ? s->st_size : UNSIZED_MAX;
	if (!is_code(s))
		return;
	for (size_t i = first_from(w, s->st_value);
	     i < w->len && w->item[i]->addr - s->st_value < reach; i++)
		consider(image, t, s, w->item[i]);
}

void elfsym_find(const struct elfsym_image *image, struct elfsym_want *want, size_t n)
{
	char chunk[CHUNK];
	struct header h;
	struct table t = {0};
	struct wants wants;
	BUG(n > ELFSYM_WANT_MAX);
	sort(want, n, &wants);
	if (!n || !read_header(image, &h) || !find_table(image, &h, &t))
		return;
	size_t entry = h.wide ? sizeof(Elf64_Sym) : sizeof(Elf32_Sym);
	size_t step = CHUNK / entry * entry;
	uint64_t size = t.size < ELFSYM_TABLE_MAX ? t.size : ELFSYM_TABLE_MAX;
	for (uint64_t at = 0; at < size; at += step) {
		size_t part = size - at < step ? (size_t)(size - at) / entry * entry : step;
		uint64_t offset;
		if (!part || __builtin_add_overflow(t.offset, at, &offset) ||
		    !read_at(image, offset, chunk, part))
			return;
		for (size_t k = 0; k < part; k += entry) {
			Elf64_Sym s = symbol_at(&h, chunk + k);
			take_symbol(image, &t, &s, &wants);
		}
	}
}

bool elfsym_section(const struct elfsym_image *image, const char *name, uint64_t *ret_addr,
		    uint64_t *ret_size)
{
	char text[ELFSYM_NAME_MAX];
	struct header h;
	Elf64_Shdr s, names;
	if (!read_header(image, &h) || !read_section(image, &h, h.names, &names))
		return false;
	const struct table t = {.strings = names.sh_offset, .strings_size = names.sh_size};
	for (unsigned i = 0; i < h.count && read_section(image, &h, i, &s); i++) {
		read_name(image, &t, s.sh_name, text);
		if (strcmp(text, name) != 0)
			continue;
		*ret_addr = s.sh_addr;
		*ret_size = s.sh_size;
		return true;
	}
	return false;
}

/* ---- what is known ---- */

static bool same_id(const struct elfsym_id *a, const struct elfsym_id *b)
{
	return a->dev == b->dev && a->ino == b->ino && a->size == b->size &&
	       a->changed_ns == b->changed_ns;
}

const struct elfsym_known *elfsym_cache_find(const struct elfsym_cache *c,
					     const struct elfsym_id *id, uint64_t addr)
{
	for (size_t i = 0; i < ELFSYM_CACHE_SIZE; i++)
		if (c->known[i].id.ino && c->known[i].addr == addr && same_id(&c->known[i].id, id))
			return &c->known[i];
	return NULL;
}

void elfsym_cache_add(struct elfsym_cache *c, const struct elfsym_known *known)
{
	if (!known->id.ino || elfsym_cache_find(c, &known->id, known->addr))
		return;
	c->known[c->next] = *known;
	c->next = (c->next + 1) % ELFSYM_CACHE_SIZE;
}
