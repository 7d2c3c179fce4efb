/* The arguments and results of strace's text. A call is written down again in a form of our own. */
#include "tracer/straceargs.h"

#include "tracer/stracesym.h"
#include "tracer/util.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>

static void add_span(struct buf *out, struct strace_span s)
{
	buf_add(out, s.at, s.len);
}

static void write_values(struct buf *out, const struct straceargs *a,
			 const struct strace_value *parent)
{
	const struct strace_value *v = parent ? straceargs_first(a, parent) : straceargs_at(a, 0);
	for (bool first = true; v; v = straceargs_beside(a, parent, v), first = false) {
		buf_add_str(out, first ? "" : " ");
		if (v->key.len) {
			add_span(out, v->key);
			buf_add_char(out, ':');
		}
		if (v->kind == STRACE_STRING) {
			buf_add_str(out, v->abstract ? "@'" : "'");
			straceargs_unescape(v->text, out);
			buf_add_str(out, v->cut ? "'..." : "'");
		} else if (v->kind == STRACE_WORD) {
			add_span(out, v->text);
		} else {
			buf_add_char(out, v->kind == STRACE_STRUCT ? '{' : '[');
			write_values(out, a, v);
			buf_add_char(out, v->kind == STRACE_STRUCT ? '}' : ']');
		}
		if (v->about.len) {
			buf_add_char(out, '<');
			straceargs_unescape(v->about, out);
			buf_add_str(out, v->deleted ? ">!" : ">");
		}
	}
}

static void write_result(struct buf *out, const struct strace_result *r)
{
	if (r->kind == STRACE_RESULT_UNKNOWN)
		buf_add_str(out, "?");
	else
		buf_addf(out, "%lld", (long long)r->value);
	if (r->about.len) {
		buf_add_char(out, '<');
		straceargs_unescape(r->about, out);
		buf_add_str(out, r->deleted ? ">!" : ">");
	}
	if (r->here)
		buf_addf(out, " here %d", (int)r->here);
}

struct row {
	const char *text;
	const char *told; /* the arguments, then " = " and the result; NULL: an error */
	int error;
	size_t bad_at;
};

static const struct row rows[] = {
	{"AT_FDCWD, \"/etc/passwd\", O_RDONLY|O_CLOEXEC) = 3",
	 "AT_FDCWD '/etc/passwd' O_RDONLY|O_CLOEXEC = 3", 0, 0},
	{")                                  = 4029", " = 4029", 0, 0},
	{" )                                 = 4029", " = 4029", 0, 0},
	{"0) = ?", "0 = ?", 0, 0},
	{"-1, 0x7ff, 0) = ? ERESTARTSYS (To be restarted if SA_RESTART is set)", "-1 0x7ff 0 = ?",
	 0, 0},
	{"\"/nope\", R_OK) = -1 ENOENT (No such file or directory)", "'/nope' R_OK = -2", 0, 0},
	{"\"/nope\") = -1 EACCES (Permission denied) <0.000007>", "'/nope' = -13", 0, 0},
	{"0x1) = -1 (errno 38)", "0x1 = -38", 0, 0},
	{"0x1) = -1 EWOULDBLOCK (Resource temporarily unavailable)", "0x1 = -11", 0, 0},
	{"5) = -1", "5 = -1", 0, 0},
	{"3, F_GETFL) = 0x8000 (flags O_RDONLY|O_LARGEFILE)", "3 F_GETFL = 32768", 0, 0},
	{"NULL) = 0x55d5da6ba000", "NULL = 94376980881408", 0, 0},
	{"1, \"x\", 1) = 1 (INJECTED)", "1 'x' 1 = 1", 0, 0},
	/* strings */
	{"\"a\\nb\\tc\\\\\\\"d\\1\\0012\\377\\x41\\v\\f\\r\") = 0",
	 "'a\nb\tc\\\"d\1\0012\377A\v\f\r' = 0", 0, 0},
	{"\"\\x2f\\x65\\x74\\x63\") = 0", "'/etc' = 0", 0, 0},
	{"3, \"abc\"..., 832) = 832", "3 'abc'... 832 = 832", 0, 0},
	{"3, \"), = 1 <unfinished\", 4) = 4", "3 '), = 1 <unfinished' 4 = 4", 0, 0},
	{"3, \"\", 0) = 0", "3 '' 0 = 0", 0, 0},
	/* -y and -yy */
	{"3</etc/ld.so.cache>) = 0", "3</etc/ld.so.cache> = 0", 0, 0},
	{"AT_FDCWD</tmp/d>, \"x\", O_RDONLY) = 3</tmp/d/x>",
	 "AT_FDCWD</tmp/d> 'x' O_RDONLY = 3</tmp/d/x>", 0, 0},
	{"3</tmp/x\\74y\\76\\\"z\\n\\303\\244>) = 0", "3</tmp/x<y>\"z\n\303\244> = 0", 0, 0},
	{"3</tmp/gone>(deleted)) = 0", "3</tmp/gone>! = 0", 0, 0},
	{"3</tmp/gone (deleted)>) = 0", "3</tmp/gone (deleted)> = 0", 0, 0},
	{"0</dev/null<char 1:3>>, TCGETS, 0x7ff) = -1 ENOTTY (Inappropriate ioctl for device)",
	 "0</dev/null<char 1:3>> TCGETS 0x7ff = -25", 0, 0},
	{"4<socket:[123]>) = 0", "4<socket:[123]> = 0", 0, 0},
	{"4<TCP:[127.0.0.1:40->127.0.0.1:80]>, 1) = 0", "4<TCP:[127.0.0.1:40->127.0.0.1:80]> 1 = 0",
	 0, 0},
	{"4<UNIX-STREAM:[1->2, \"/run/a>b\"]>, 1) = 0", "4<UNIX-STREAM:[1->2, \"/run/a>b\"]> 1 = 0",
	 0, 0},
	{"4<anon_inode:[eventpoll]>) = 5<pidfd:12>", "4<anon_inode:[eventpoll]> = 5<pidfd:12>", 0,
	 0},
	/* structures */
	{"3, {st_mode=S_IFREG|0644, st_size=46679, ...}, AT_EMPTY_PATH) = 0",
	 "3 {st_mode:S_IFREG|0644 st_size:46679 ...} AT_EMPTY_PATH = 0", 0, 0},
	{"3, {st_dev=makedev(0xfe, 0), st_atime=17 /* 2026, } */, st_atime_nsec=6}) = 0",
	 "3 {st_dev:makedev(0xfe, 0) st_atime:17 st_atime_nsec:6} = 0", 0, 0},
	{"AT_FDCWD, \"x\", {flags=O_RDWR|O_CREAT, mode=0600, resolve=RESOLVE_BENEATH}, 24) = 3",
	 "AT_FDCWD 'x' {flags:O_RDWR|O_CREAT mode:0600 resolve:RESOLVE_BENEATH} 24 = 3", 0, 0},
	{"4, {sa_family=AF_UNIX, sun_path=\"/run/x\"}, 12) = 0",
	 "4 {sa_family:AF_UNIX sun_path:'/run/x'} 12 = 0", 0, 0},
	{"4, {sa_family=AF_UNIX, sun_path=@\"abs\"}, 6) = 0",
	 "4 {sa_family:AF_UNIX sun_path:@'abs'} 6 = 0", 0, 0},
	{"4, {sa_family=AF_INET, sin_port=htons(80), sin_addr=inet_addr(\"1.2.3.4\")}, 16) = 0",
	 "4 {sa_family:AF_INET sin_port:htons(80) sin_addr:inet_addr(\"1.2.3.4\")} 16 = 0", 0, 0},
	{"-1, [{WIFEXITED(s) && WEXITSTATUS(s) == 0}], 0, NULL) = 8",
	 "-1 [{WIFEXITED(s)}] 0 NULL = 8", 0, 0},
	{"SIG_SETMASK, ~[KILL STOP RTMIN RT_1], NULL, 8) = 0", "SIG_SETMASK [KILL] NULL 8 = 0", 0,
	 0},
	{"[3, 4]) = 0", "[3 4] = 0", 0, 0},
	{"[3<pipe:[7]>, 4<pipe:[7]>], O_CLOEXEC) = 0", "[3<pipe:[7]> 4<pipe:[7]>] O_CLOEXEC = 0", 0,
	 0},
	{"\"/bin/sh\", [\"sh\", \"-c\", \"a b\"...], 0x7ff /* 40 vars */) = 0",
	 "'/bin/sh' ['sh' '-c' 'a b'...] 0x7ff = 0", 0, 0},
	{"\"/bin/sh\", [\"sh\"], [\"A=1\", \"B=2\", ...]) = 0",
	 "'/bin/sh' ['sh'] ['A=1' 'B=2' ...] = 0", 0, 0},
	{"child_stack=NULL, flags=CLONE_VM|SIGCHLD, child_tidptr=0x7f) = 9",
	 "child_stack:NULL flags:CLONE_VM|SIGCHLD child_tidptr:0x7f = 9", 0, 0},
	{"{flags=CLONE_VM, exit_signal=0} => {parent_tid=[0]}, 88) = 9",
	 "{flags:CLONE_VM exit_signal:0} 88 = 9", 0, 0},
	{"1) = 8 /* 3 in strace's PID NS */", "1 = 8 here 3", 0, 0},
	{"AT_FDCWD [home_t], \"/x\" [etc_t], O_RDONLY) = 3 [etc_t]", "AT_FDCWD '/x' O_RDONLY = 3",
	 0, 0},
	{"0, SNDCTL_TMR_TIMEBASE or TCGETS, {B38400 opost isig}) = 0",
	 "0 SNDCTL_TMR_TIMEBASE {B38400} = 0", 0, 0},
	{"1<<CAP_CHOWN, 8192*1024) = 0", "1<<CAP_CHOWN 8192*1024 = 0", 0, 0},
	{"40000 /* O_??? */, 0x7 /* ??? */) = 0", "40000 0x7 = 0", 0, 0},
	/* the tail of a killed strace */
	{"AT_FDCWD, \"/etc/pas", NULL, -ENODATA, 19},
	{"AT_FDCWD, \"/etc/passwd\", O_RDONLY", NULL, -ENODATA, 33},
	{"AT_FDCWD, \"/etc/passwd\", O_RDONLY)", NULL, -ENODATA, 34},
	{"AT_FDCWD, \"/etc/passwd\", O_RDONLY) =", NULL, -ENODATA, 36},
	/* and what is none */
	{"1, 2] = 0", NULL, -EINVAL, 4},
	{"1, 2) 3", NULL, -EINVAL, 6},
	{"1, 2) = x", NULL, -EINVAL, 8},
	{"1,, 2) = 0", NULL, -EINVAL, 2},
	{"1) = -1 EWHATEVER (none)", NULL, -EINVAL, 17},
};

Test(straceargs, as_strace_writes_them)
{
	struct straceargs a = {0};
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		const struct row *row = &rows[i];
		struct buf told = {0};
		int r = straceargs_parse(&a, (struct strace_span){row->text, strlen(row->text)});
		cr_expect_eq(r, row->error, "%s: %d (%s at %zu)", row->text, r,
			     a.expected ? a.expected : "", a.bad_at);
		if (row->error) {
			cr_expect_eq(a.bad_at, row->bad_at, "%s: at %zu", row->text, a.bad_at);
			cr_expect_not_null(a.expected);
			continue;
		}
		write_values(&told, &a, NULL);
		buf_add_str(&told, " = ");
		write_result(&told, &a.result);
		cr_expect_str_eq(buf_str(&told), row->told, "%s: %s", row->text, buf_str(&told));
		buf_free(&told);
	}
	straceargs_free(&a);
}

Test(straceargs, cut_anywhere)
{
	struct straceargs a = {0};
	for (size_t i = 0; i < ARRAY_LEN(rows); i++)
		for (size_t len = strlen(rows[i].text); len-- > 0;) {
			char *copy AUTOFREE = malloc(len ? len : 1);
			cr_assert(copy);
			memcpy(copy, rows[i].text, len);
			int r = straceargs_parse(&a, (struct strace_span){copy, len});
			cr_expect(r == 0 || (a.expected && a.bad_at <= len), "%.*s", (int)len,
				  rows[i].text);
		}
	straceargs_free(&a);
}

Test(straceargs, hostile_nesting_and_lengths)
{
	struct straceargs a = {0};
	struct buf text = {0};
	for (int i = 0; i < 100000; i++)
		buf_add_char(&text, '[');
	cr_expect_eq(straceargs_parse(&a, (struct strace_span){text.data, text.len}), -E2BIG);
	buf_reset(&text);
	for (int i = 0; i < 2 * STRACEARGS_VALUES_MAX; i++)
		buf_add_str(&text, "1, ");
	cr_expect_eq(straceargs_parse(&a, (struct strace_span){text.data, text.len}), -E2BIG);
	buf_free(&text);
	straceargs_free(&a);
}

Test(straceargs, fields_and_names)
{
	const char *text =
		"{flags=CLONE_VM|CLONE_FS, exit_signal=0}, {a={flags=1}, flags=2}, flags=7) = 9";
	struct straceargs a = {0};
	cr_assert_eq(straceargs_parse(&a, (struct strace_span){text, strlen(text)}), 0);
	const struct strace_value *v = straceargs_field(&a, straceargs_at(&a, 1), "flags");
	cr_assert(v);
	cr_expect(strace_span_is(v->text, "2"), "a field of a field is not taken for it");
	v = straceargs_named(&a, "flags");
	cr_assert(v);
	cr_expect(strace_span_is(v->text, "7"));
	cr_expect_null(straceargs_at(&a, 3));
	cr_expect_null(straceargs_field(&a, NULL, "flags"));
	cr_expect_null(straceargs_field(&a, straceargs_at(&a, 2), "flags"));
	straceargs_free(&a);
}

Test(straceargs, numbers)
{
	static const struct {
		const char *text;
		bool known;
		uint64_t value;
	} numbers[] = {
		{"0", true, 0},
		{"0644", true, 0644},
		{"0x1f", true, 0x1f},
		{"18446744073709551615", true, UINT64_MAX},
		{"18446744073709551616", false, 0},
		{"089", false, 0},
		{"O_RDONLY", true, O_RDONLY},
		{"O_WRONLY|O_CREAT|O_TRUNC", true, O_WRONLY | O_CREAT | O_TRUNC},
		{"O_RDWR|0x40000000", true, O_RDWR | 0x40000000},
		{"O_RDWR|O_NEWER", false, O_RDWR},
		{"S_IFIFO|0666", true, 0010666},
		{"AT_SYMLINK_NOFOLLOW|AT_EMPTY_PATH", true, AT_SYMLINK_NOFOLLOW | AT_EMPTY_PATH},
		{"", false, 0},
		{"|", false, 0},
		{"O_CREA", false, 0},
		{"O_CREATE", false, 0},
	};
	for (size_t i = 0; i < ARRAY_LEN(numbers); i++) {
		uint64_t got = 1;
		struct strace_span s = {numbers[i].text, strlen(numbers[i].text)};
		cr_expect_eq(straceargs_number(s, &got), numbers[i].known, "%s", numbers[i].text);
		cr_expect_eq(got, numbers[i].value, "%s: %llu", numbers[i].text,
			     (unsigned long long)got);
	}
}

Test(stracesym, rows_are_sorted)
{
	for (size_t i = 1; stracesym_at(i); i++)
		cr_expect_lt(strcmp(stracesym_at(i - 1), stracesym_at(i)), 0, "%s is before %s",
			     stracesym_at(i - 1), stracesym_at(i));
}
