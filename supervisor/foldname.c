#include "supervisor/foldname.h"

#include <limits.h>
#include <string.h>
#include <strings.h>

#define FOREIGN '\200' /* one character that is not ASCII */

/* Lower case, each foreign character one FOREIGN. The new length. */
static size_t squeeze(const char *s, size_t n, char ret[NAME_MAX + 1])
{
	size_t len = 0;

	for (size_t i = 0; i < n; i++) {
		unsigned char c = (unsigned char)s[i];
		bool more = (c & 0xc0) == 0x80 && len && ret[len - 1] == FOREIGN;
		if (c >= 0x80 && more)
			continue;
		ret[len++] = c >= 0x80 ? FOREIGN : (char)(c >= 'A' && c <= 'Z' ? c | 0x20 : c);
	}
	return len;
}

/* row[j]: the part of a seen so far could be the first j of b. */
static void advance(bool row[NAME_MAX + 2], char a, const char *b, size_t bn)
{
	bool next[NAME_MAX + 2] = {false};

	for (size_t j = 0; j <= bn; j++) {
		if (!row[j])
			continue;
		if (a == FOREIGN)
			next[j] = true;
		if (j < bn && (a == FOREIGN || b[j] == FOREIGN || a == b[j]))
			next[j + 1] = true;
	}
	/* a foreign character of b that counts for nothing */
	for (size_t j = 0; j < bn; j++)
		if (next[j] && b[j] == FOREIGN)
			next[j + 1] = true;
	memcpy(row, next, sizeof(next));
}

bool foldname_alike(const char *a, size_t an, const char *b, size_t bn)
{
	char as[NAME_MAX + 1], bs[NAME_MAX + 1];
	bool row[NAME_MAX + 2] = {true};

	if (an > NAME_MAX || bn > NAME_MAX)
		return false;
	if (an == bn && strncasecmp(a, b, an) == 0)
		return true;
	an = squeeze(a, an, as);
	bn = squeeze(b, bn, bs);
	for (size_t j = 0; j < bn && bs[j] == FOREIGN; j++)
		row[j + 1] = true;
	for (size_t i = 0; i < an; i++)
		advance(row, as[i], bs, bn);
	return row[bn];
}

enum foldname_relation foldname_relation(const char *path, const char *of)
{
	bool same = true;

	for (;;) {
		path += strspn(path, "/");
		of += strspn(of, "/");
		size_t n = strcspn(path, "/"), m = strcspn(of, "/");
		if (n == 0 && m)
			return FOLDNAME_ABOVE;
		if (n == 0)
			return same ? FOLDNAME_AT : FOLDNAME_ALIKE;
		bool last = path[n] == '\0';
		if (m == 0 || (last ? !foldname_alike(path, n, of, m)
				    : n != m || strncasecmp(path, of, n) != 0))
			return FOLDNAME_FREE;
		same = same && n == m && memcmp(path, of, n) == 0;
		path += n;
		of += m;
	}
}
