#include "agent/github.h"

#include "tracer/util.h"

#include <criterion/criterion.h>
#include <errno.h>

Test(github, what_is_set_stands_and_the_rest_follows)
{
	static const struct {
		const char *host, *web, *api; /* given */
		const char *is_host, *is_web, *is_api, *copilot;
	} rows[] = {
		{NULL, NULL, NULL, "github.com", "https://github.com", "https://api.github.com",
		 "https://api.githubcopilot.com"},
		{"octo.ghe.com", NULL, NULL, "octo.ghe.com", "https://octo.ghe.com",
		 "https://api.octo.ghe.com", "https://copilot-api.octo.ghe.com"},
		{NULL, "https://octo.ghe.com/", NULL, "octo.ghe.com", "https://octo.ghe.com/",
		 "https://api.octo.ghe.com", "https://copilot-api.octo.ghe.com"},
		{NULL, NULL, "https://api.octo.ghe.com", "octo.ghe.com", "https://octo.ghe.com",
		 "https://api.octo.ghe.com", "https://copilot-api.octo.ghe.com"},
		{NULL, "http://127.0.0.1:81", "http://127.0.0.1:82", "127.0.0.1:81",
		 "http://127.0.0.1:81", "http://127.0.0.1:82", "https://api.githubcopilot.com"},
		{NULL, "http://127.0.0.1:81", NULL, "127.0.0.1:81", "http://127.0.0.1:81",
		 "http://127.0.0.1:81", "https://api.githubcopilot.com"},
	};
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct github g = {0};
		cr_assert_eq(github_make(rows[i].host, rows[i].web, rows[i].api, &g), 0);
		cr_assert_str_eq(g.host, rows[i].is_host, "row %zu", i);
		cr_assert_str_eq(g.web, rows[i].is_web, "row %zu", i);
		cr_assert_str_eq(g.api, rows[i].is_api, "row %zu", i);
		cr_assert_str_eq(g.copilot, rows[i].copilot, "row %zu", i);
		github_release(&g);
	}
}

Test(github, what_is_no_host)
{
	static const struct {
		const char *host, *web, *api;
	} rows[] = {
		{"", NULL, NULL},	  {"a b", NULL, NULL},	       {"evil/x", NULL, NULL},
		{"-x", NULL, NULL},	  {"a@b", NULL, NULL},	       {NULL, "octo.ghe.com", NULL},
		{NULL, "https://", NULL}, {NULL, NULL, "https://a@b"}, {NULL, NULL, "x"},
	};
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct github g = {0};
		cr_assert_eq(github_make(rows[i].host, rows[i].web, rows[i].api, &g), -EINVAL,
			     "row %zu", i);
		cr_assert_null(g.host);
	}
}
