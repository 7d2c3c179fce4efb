#include "supervisor/tempname.h"

#include "tracer/util.h"

#include <criterion/criterion.h>

Test(tempname, made_up_for_the_moment)
{
	static const char *const names[] = {
		"ccQx7Zab.o",
		"cc1a2B3c.s",
		"tmp.k3Rt9xQz1B",
		"tmp3f9xq_a2",
		"x.cpython-311.pyc.140233912345",
		"0f8fad5b-d9cb-469f-a165-70867728950e",
		"part-1732912345.tmp",
		".sample-9f86d081884c7d65",
		"sh-thd-172839",
		"go-build2938475610",
		"pip-unpack-9ja3gk6x",
		"npm-31337-9f3e2a1c",
		"2026-11-30T10_22_33_123Z-debug-0.log",
		"run-2026-11-30.log",
	};
	for (size_t i = 0; i < ARRAY_LEN(names); i++)
		cr_expect(tempname_is(names[i]), "%s", names[i]);
}

Test(tempname, names_that_stay)
{
	static const char *const names[] = {
		"README2024.md", "libfoo.so.1.2.3", "main.c",	   "x86_64",
		"v10.0.1",	 "node_modules",    "MyClassTest", "HTMLElement.h",
		"utf8",		 "index.html",	    "a",	   "",
		".cache",	 "python3.11",	    "log4j2",	   "sha256sum",
		"deadbeef",	 "2024-11-29",	    "e2fsprogs",   "base64",
		"i18n.ts",	 "\303\244",	    "File1",	   "report_v2.pdf",
		"1.2.2024-1-1",	 "1202-11-30x",	    "2026-11-301", "3026-11-30.log",
	};
	for (size_t i = 0; i < ARRAY_LEN(names); i++)
		cr_expect_not(tempname_is(names[i]), "%s", names[i]);
}

/* In /tmp few names stay: letters that no word has are enough. */
Test(tempname, where_they_are)
{
	static const char *const drawn[] = {
		"tmp.mUDGCBLBQD", "sem.QmkNIC", "xyz.aBcDeFgH", "tmp.abcdefghij", "tmp.pwNxUet3SH",
		"ssh-XXab9Kqe12", "a3bcde",	"sem.ocqSbu",	"sem.abcdef",
	};
	static const char *const stay[] = {
		"Makefile", "README",	   "someWords", "MyProject",  "tmux-1000",
		"tmp.txt",  "notes2024",   "x86_64",	"plain",      "dbus.socket",
		"tmp",	    "sem.mylocks", "",		"2024-11-29",
	};
	for (size_t i = 0; i < ARRAY_LEN(drawn); i++)
		cr_expect(tempname_is_where_they_are(drawn[i]), "%s", drawn[i]);
	for (size_t i = 0; i < ARRAY_LEN(stay); i++)
		cr_expect_not(tempname_is_where_they_are(stay[i]), "%s", stay[i]);
}

Test(tempname, the_number_of_a_process)
{
	cr_expect(tempname_has_pid("tool-4711.sock", 4711));
	cr_expect_not(tempname_has_pid("tool-47110", 4711));
	cr_expect_not(tempname_has_pid("tool-7", 7), "too short to mean it");
	cr_expect_not(tempname_has_pid("tool", 4711));
}
