#include "supervisor/access.h"

#include "landlock/llright.h"
#include "tracer/util.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>

Test(access, writes_and_reads)
{
	static const struct {
		uint32_t mask;
		const char *text;
	} rows[] = {
		{ACCESS_R, "r"},
		{ACCESS_W, "w"},
		{ACCESS_X, "x"},
		{ACCESS_R | ACCESS_W, "rw"},
		{ACCESS_R | ACCESS_X, "rx"},
		{ACCESS_R | ACCESS_W | ACCESS_X, "rwx"},
		{ACCESS_READ, "read"},
		{ACCESS_R | ACCESS_WRITE, "read,list,write"},
		{ACCESS_CONNECT, "connect"},
		{ACCESS_R | ACCESS_IOCTL, "read,list,ioctl"},
		{ACCESS_WRITE | ACCESS_CREATE, "write,create"},
	};
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct buf out = {0};
		uint32_t mask = 0;
		size_t at = 0;
		access_format(&out, rows[i].mask);
		cr_assert_str_eq(buf_str(&out), rows[i].text);
		cr_assert_eq(access_parse(rows[i].text, strlen(rows[i].text), &mask, &at), 0);
		cr_assert_eq(mask, rows[i].mask, "%s", rows[i].text);
		buf_free(&out);
	}
}

Test(access, every_mask_round_trips)
{
	for (uint32_t mask = 1; mask <= ACCESS_ALL; mask++) {
		struct buf out = {0};
		uint32_t back = 0;
		size_t at = 0;
		access_format(&out, mask);
		cr_assert_eq(access_parse(out.data, out.len, &back, &at), 0, "%s", out.data);
		cr_assert_eq(back, mask, "%s", out.data);
		buf_free(&out);
	}
}

Test(access, mixes_letters_and_names)
{
	static const struct {
		const char *text;
		uint32_t mask;
	} rows[] = {{"r,write", ACCESS_R | ACCESS_WRITE},
		    {"wr", ACCESS_R | ACCESS_W},
		    {"connect,rx", ACCESS_R | ACCESS_X | ACCESS_CONNECT},
		    {"list,list", ACCESS_LIST}};
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		uint32_t mask = 0;
		size_t at;
		cr_assert_eq(access_parse(rows[i].text, strlen(rows[i].text), &mask, &at), 0);
		cr_assert_eq(mask, rows[i].mask, "%s", rows[i].text);
	}
}

Test(access, says_where_the_word_is_none)
{
	static const struct {
		const char *text;
		size_t at;
	} rows[] = {{"", 0},	  {"raed", 0},	  {"rr", 0},	{"R", 0},	  {"read,", 5},
		    {",read", 0}, {"read,,w", 5}, {"rw,ex", 3}, {"read list", 0}, {"rwxr", 0}};
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		uint32_t mask = 77;
		size_t at = 99;
		cr_assert_eq(access_parse(rows[i].text, strlen(rows[i].text), &mask, &at), -EINVAL,
			     "%s", rows[i].text);
		cr_assert_eq(at, rows[i].at, "%s: %zu", rows[i].text, at);
		cr_assert_eq(mask, 77, "touched on failure");
	}
}

Test(access, rights_of_landlock)
{
	cr_assert_eq(access_rights(ACCESS_READ), LLR_READ_FILE);
	cr_assert_eq(access_rights(ACCESS_R), LLR_READ_FILE | LLR_READ_DIR);
	cr_assert_eq(access_rights(ACCESS_WRITE), LLR_WRITE_FILE | LLR_TRUNCATE);
	cr_assert_eq(access_rights(ACCESS_META), 0);
	cr_assert_eq(access_rights(ACCESS_ALL), LLR_ALL, "every right belongs to an access");
	cr_assert_str_eq(access_name(ACCESS_DELETE), "delete");
}

/* What the one path of an open needs. */
Test(access, open_family)
{
	enum { ABSENT, REGULAR, DIRECTORY, DEVICE };
	static const struct {
		uint64_t flags;
		int object;
		uint32_t want;
	} rows[] = {
		{O_RDONLY, REGULAR, ACCESS_READ},
		{O_WRONLY, REGULAR, ACCESS_WRITE},
		{O_RDWR, REGULAR, ACCESS_READ | ACCESS_WRITE},
		{O_WRONLY | O_APPEND, REGULAR, ACCESS_WRITE},
		{O_RDONLY | O_TRUNC, REGULAR, ACCESS_READ | ACCESS_WRITE},
		{O_RDONLY | O_TRUNC, DEVICE, ACCESS_READ},
		{O_WRONLY | O_CREAT | O_TRUNC, REGULAR, ACCESS_WRITE},
		{O_WRONLY | O_CREAT | O_TRUNC, ABSENT, ACCESS_WRITE | ACCESS_CREATE},
		{O_RDONLY | O_CREAT, ABSENT, ACCESS_READ | ACCESS_CREATE},
		{O_RDONLY | O_CREAT, REGULAR, ACCESS_READ},
		{O_WRONLY | O_CREAT | O_EXCL, REGULAR, ACCESS_WRITE | ACCESS_CREATE},
		{O_RDONLY, ABSENT, ACCESS_READ},
		{O_RDONLY, DIRECTORY, ACCESS_LIST},
		{O_RDONLY | O_DIRECTORY, DIRECTORY, ACCESS_LIST},
		{O_WRONLY | O_TMPFILE, DIRECTORY, ACCESS_WRITE | ACCESS_CREATE},
		{O_RDWR | O_TMPFILE, DIRECTORY, ACCESS_READ | ACCESS_WRITE | ACCESS_CREATE},
		{O_PATH, REGULAR, 0},
		{O_PATH | O_DIRECTORY, DIRECTORY, 0},
		{3, REGULAR, 0},
	};
	static const mode_t modes[] = {0, S_IFREG, S_IFDIR, S_IFCHR};
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct call c = {.open_flags = rows[i].flags};
		struct need need[CALL_PATHS];
		c.path[0].need = CALL_NEED_OPEN;
		c.path[0].at.parent = -1;
		c.path[0].at.exists = rows[i].object != ABSENT;
		c.path[0].at.st.st_mode = modes[rows[i].object];
		access_needed(&c, need);
		cr_assert_eq(need[0].access, rows[i].want, "row %zu: %x", i, need[0].access);
		cr_assert_eq(need[0].at, &c.path[0].at);
		cr_assert_eq(need[1].access, 0);
		cr_assert_null(need[1].at);
	}
}

Test(access, one_path_calls)
{
	static const struct {
		enum call_need need;
		uint32_t want;
	} rows[] = {
		{CALL_NEED_EXEC, ACCESS_EXEC | ACCESS_READ},
		{CALL_NEED_TRUNCATE, ACCESS_WRITE},
		{CALL_NEED_MKDIR, ACCESS_CREATE},
		{CALL_NEED_MKNOD, ACCESS_CREATE},
		{CALL_NEED_SYMLINK, ACCESS_CREATE},
		{CALL_NEED_BIND, ACCESS_CREATE},
		{CALL_NEED_UNLINK, ACCESS_DELETE},
		{CALL_NEED_RMDIR, ACCESS_DELETE},
		{CALL_NEED_META, ACCESS_META},
		{CALL_NEED_CONNECT, ACCESS_CONNECT},
		{CALL_NEED_LOOK, 0},
		{CALL_NEED_NONE, 0},
	};
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct call c = {0};
		struct need need[CALL_PATHS];
		c.path[0].need = rows[i].need;
		access_needed(&c, need);
		cr_assert_eq(need[0].access, rows[i].want, "row %zu", i);
		c.path[0].error = -EFAULT;
		access_needed(&c, need);
		cr_assert_eq(need[0].access, rows[i].want, "row %zu, not read", i);
		cr_assert_null(need[0].at);
	}
}

Test(access, a_path_that_could_not_be_walked)
{
	static const struct {
		enum call_need need;
		uint64_t flags;
		uint32_t want;
	} rows[] = {
		{CALL_NEED_OPEN, O_RDONLY, ACCESS_READ},
		{CALL_NEED_OPEN, O_WRONLY | O_CREAT | O_TRUNC, ACCESS_WRITE},
		{CALL_NEED_OPEN, O_PATH, 0},
		{CALL_NEED_MKDIR, 0, ACCESS_CREATE},
		{CALL_NEED_NONE, 0, 0},
	};
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct call c = {.open_flags = rows[i].flags};
		struct need need[CALL_PATHS];
		c.path[0].need = rows[i].need;
		c.path[0].given = (char *)"closed/file";
		c.path[0].error = -EACCES;
		access_needed(&c, need);
		cr_assert_eq(need[0].access, rows[i].want, "row %zu", i);
		cr_assert_null(need[0].at);
	}
}

Test(access, two_path_calls)
{
	static const struct {
		enum call_need from, to;
		uint32_t flags;
		const char *a, *b;
		bool exists;
		uint32_t want_from, want_to;
	} rows[] = {
		{CALL_NEED_MOVE_FROM, CALL_NEED_MOVE_TO, 0, "/d/a", "/d/b", false, ACCESS_DELETE,
		 ACCESS_CREATE},
		{CALL_NEED_MOVE_FROM, CALL_NEED_MOVE_TO, 0, "/d/a", "/d/b", true, ACCESS_DELETE,
		 ACCESS_CREATE | ACCESS_DELETE},
		{CALL_NEED_MOVE_FROM, CALL_NEED_MOVE_TO, RENAME_NOREPLACE, "/d/a", "/d/b", true,
		 ACCESS_DELETE, ACCESS_CREATE},
		{CALL_NEED_MOVE_FROM, CALL_NEED_MOVE_TO, 0, "/d/a", "/e/b", false,
		 ACCESS_DELETE | ACCESS_MOVE, ACCESS_CREATE | ACCESS_MOVE},
		{CALL_NEED_MOVE_FROM, CALL_NEED_MOVE_TO, 0, "/d/a", "/dd/b", false,
		 ACCESS_DELETE | ACCESS_MOVE, ACCESS_CREATE | ACCESS_MOVE},
		{CALL_NEED_MOVE_FROM, CALL_NEED_MOVE_TO, RENAME_EXCHANGE, "/d/a", "/e/b", true,
		 ACCESS_DELETE | ACCESS_CREATE | ACCESS_MOVE,
		 ACCESS_DELETE | ACCESS_CREATE | ACCESS_MOVE},
		{CALL_NEED_MOVE_FROM, CALL_NEED_MOVE_TO, 0, NULL, "/e/b", false,
		 ACCESS_DELETE | ACCESS_MOVE, ACCESS_CREATE | ACCESS_MOVE},
		{CALL_NEED_LINK_FROM, CALL_NEED_LINK_TO, 0, "/d/a", "/d/b", false, 0,
		 ACCESS_CREATE},
		{CALL_NEED_LINK_FROM, CALL_NEED_LINK_TO, 0, "/d/a", "/e/b", false, ACCESS_MOVE,
		 ACCESS_CREATE | ACCESS_MOVE},
	};
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct call c = {.at_flags = rows[i].flags};
		struct need need[CALL_PATHS];
		c.path[0] = (struct call_path){
			.need = rows[i].from,
			.at = {.parent = -1, .exists = true, .real = (char *)rows[i].a}};
		c.path[1] = (struct call_path){
			.need = rows[i].to,
			.at = {.parent = -1, .exists = rows[i].exists, .real = (char *)rows[i].b}};
		access_needed(&c, need);
		cr_assert_eq(need[0].access, rows[i].want_from, "row %zu: %x", i, need[0].access);
		cr_assert_eq(need[1].access, rows[i].want_to, "row %zu: %x", i, need[1].access);
	}
}

Test(access, directories_are_compared_by_what_is_held)
{
	int a AUTOCLOSE = open("/usr", O_PATH | O_CLOEXEC);
	int b AUTOCLOSE = open("/usr/../usr", O_PATH | O_CLOEXEC);
	int other AUTOCLOSE = open("/", O_PATH | O_CLOEXEC);
	struct call c = {0};
	struct need need[CALL_PATHS];
	c.path[0] = (struct call_path){.need = CALL_NEED_MOVE_FROM, .at = {.parent = a}};
	c.path[1] = (struct call_path){.need = CALL_NEED_MOVE_TO, .at = {.parent = b}};
	access_needed(&c, need);
	cr_assert_eq(need[0].access, ACCESS_DELETE);
	c.path[1].at.parent = other;
	access_needed(&c, need);
	cr_assert_eq(need[0].access, ACCESS_DELETE | ACCESS_MOVE);
}
