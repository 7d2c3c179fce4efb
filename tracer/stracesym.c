#include "tracer/stracesym.h"

#include "tracer/util.h"

#include <fcntl.h>
#include <linux/close_range.h>
#include <linux/fiemap.h>
#include <linux/fs.h>
#include <linux/openat2.h>
#include <sched.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/stat.h>

struct symbol {
	const char *word;
	uint64_t value;
};

static const struct symbol symbols[] = {
#define SYM(word)	    {#word, (uint64_t)word},
#define SYM_IS(word, value) {#word, value},
#include "tracer/stracesym.def"
#undef SYM
#undef SYM_IS
};

/* As strcmp() of the two. */
static int compare(struct strace_span word, const char *with)
{
	size_t len = strlen(with);
	int order = memcmp(word.at, with, word.len < len ? word.len : len);
	return order ? order : (word.len > len) - (word.len < len);
}

bool stracesym_find(struct strace_span word, uint64_t *ret)
{
	size_t low = 0;
	size_t high = ARRAY_LEN(symbols);
	while (low < high) {
		size_t mid = (low + high) / 2;
		int order = compare(word, symbols[mid].word);
		if (order == 0) {
			*ret = symbols[mid].value;
			return true;
		}
		if (order < 0)
			high = mid;
		else
			low = mid + 1;
	}
	return false;
}

const char *stracesym_at(size_t i)
{
	return i < ARRAY_LEN(symbols) ? symbols[i].word : NULL;
}
