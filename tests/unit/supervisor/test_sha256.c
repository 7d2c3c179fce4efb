#include "supervisor/report.h"
#include "supervisor/sha256.h"
#include "tracer/util.h"

#include <criterion/criterion.h>
#include <string.h>

/* NIST's examples for FIPS 180-4. */
static const struct row {
	const char *text;
	const char *hex;
} rows[] = {
	{"", "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"},
	{"abc", "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"},
	{"abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq",
	 "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1"},
	{"abcdefghbcdefghicdefghijdefghijkefghijklfghijklmghijklmnhijklmno"
	 "ijklmnopjklmnopqklmnopqrlmnopqrsmnopqrstnopqrstu",
	 "cf5b16a778af8380036ce59e7b0492370b249b11e8f07a51afac45037afee9d1"},
};

Test(sha256, examples, .timeout = 10)
{
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		char hex[SHA256_HEX], reported[65];
		sha256_hex(rows[i].text, strlen(rows[i].text), hex);
		report_sha256(rows[i].text, strlen(rows[i].text), reported);
		cr_expect_str_eq(hex, rows[i].hex, "row %zu", i);
		cr_expect_str_eq(reported, rows[i].hex, "row %zu", i);
	}
}

Test(sha256, a_million_letters, .timeout = 30)
{
	size_t n = 1000000;
	char *text = malloc(n), hex[SHA256_HEX];
	cr_assert(text);
	memset(text, 'a', n);
	sha256_hex(text, n, hex);
	cr_expect_str_eq(hex, "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
	free(text);
}

/* Every length around the padding's edges, against coreutils. */
Test(sha256, as_coreutils, .timeout = 60)
{
	static const size_t lengths[] = {1, 54, 55, 56, 57, 63, 64, 65, 119, 120, 127, 128, 129};
	for (size_t i = 0; i < ARRAY_LEN(lengths); i++) {
		char command[128], text[256], hex[SHA256_HEX], theirs[SHA256_HEX] = "";
		memset(text, 'x', sizeof(text));
		sha256_hex(text, lengths[i], hex);
		snprintf(command, sizeof(command), "head -c %zu /dev/zero | tr '\\0' x | sha256sum",
			 lengths[i]);
		FILE *f = popen(command, "r");
		cr_assert(f);
		cr_assert_eq(fread(theirs, 1, 64, f), 64);
		cr_assert_eq(pclose(f), 0);
		cr_expect_str_eq(hex, theirs, "length %zu", lengths[i]);
	}
}
