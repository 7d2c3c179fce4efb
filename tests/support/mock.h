/*
 * mock: start tests/support/mock_copilot.c from a Criterion test, and read what it was asked.
 *
 * One at a time. Everything lies under a mkdtemp directory that mock_stop() removes.
 */
#pragma once

#include "tracer/json.h"

#include <criterion/criterion.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

struct mock {
	char dir[64];
	char scenario[96], log[96];
	char url[64]; /* http://127.0.0.1:PORT */
	pid_t pid;
	int stdin_fd;	    /* it ends when this is closed, so also when the test dies */
	bool without_lists; /* leave the requests for /models out */
	struct json *requests[64];
	size_t n_requests;
};

static inline void mock_write_file(const char *path, const char *text)
{
	FILE *f = fopen(path, "we");
	cr_assert_not_null(f, "%s", path);
	cr_assert_eq(fwrite(text, 1, strlen(text), f), strlen(text));
	cr_assert_eq(fclose(f), 0);
}

/* Only execs or exits. */
static inline void mock_child(const struct mock *m, const char *bearer, const char *direct, int in,
			      int out)
{
	if (dup2(in, 0) < 0 || dup2(out, 1) < 0)
		_exit(126);
	execl(MOCK_COPILOT, "mock_copilot", "--scenario", m->scenario, "--log", m->log, "--bearer",
	      bearer ? bearer : "", "--direct", direct ? direct : "", (char *)NULL);
	_exit(127);
}

/*
 * Scenario lines as mock_copilot.c explains them; bearer is one that it takes as it is, direct a
 * GitHub token that it takes as a bearer and does not exchange (each may be NULL).
 */
static inline void mock_start_with(struct mock *m, const char *scenario, const char *bearer,
				   const char *direct)
{
	int in[2], out[2], port = 0;
	*m = (struct mock){.dir = "/tmp/warder-mock-XXXXXX"};
	cr_assert_not_null(mkdtemp(m->dir));
	snprintf(m->scenario, sizeof(m->scenario), "%s/scenario", m->dir);
	snprintf(m->log, sizeof(m->log), "%s/log", m->dir);
	mock_write_file(m->scenario, scenario);
	cr_assert_eq(pipe2(in, O_CLOEXEC), 0);
	cr_assert_eq(pipe2(out, O_CLOEXEC), 0);
	m->pid = fork();
	cr_assert_geq(m->pid, 0);
	if (!m->pid)
		mock_child(m, bearer, direct, in[0], out[1]);
	close(in[0]);
	close(out[1]);
	m->stdin_fd = in[1];
	FILE *f = fdopen(out[0], "r");
	cr_assert_eq(fscanf(f, "port %d", &port), 1, "the mock server does not start");
	fclose(f);
	snprintf(m->url, sizeof(m->url), "http://127.0.0.1:%d", port);
	/* The tests' machine may have a proxy. */
	setenv("no_proxy", "127.0.0.1", 1);
	setenv("NO_PROXY", "127.0.0.1", 1);
}

static inline void mock_start(struct mock *m, const char *scenario, const char *bearer)
{
	mock_start_with(m, scenario, bearer, NULL);
}

/* Read the log: requests[0 .. n_requests). The server goes on. */
static inline void mock_read_log(struct mock *m)
{
	char *line = NULL;
	size_t cap = 0;
	while (m->n_requests)
		json_free(m->requests[--m->n_requests]);
	FILE *f = fopen(m->log, "re");
	if (!f)
		return; /* nothing was asked */
	for (ssize_t n; (n = getline(&line, &cap, f)) > 0;) {
		cr_assert_lt(m->n_requests, sizeof(m->requests) / sizeof(m->requests[0]));
		struct json *v = NULL;
		cr_assert_eq(json_parse(line, (size_t)n, &v, NULL), 0);
		if (m->without_lists && !strcmp(json_get_str(v, "path"), "/models"))
			json_free(v);
		else
			m->requests[m->n_requests++] = v;
	}
	free(line);
	fclose(f);
}

static inline const char *mock_header(const struct mock *m, size_t request, const char *name)
{
	cr_assert_lt(request, m->n_requests, "there was no request %zu", request);
	return json_get_str(json_get(m->requests[request], "headers"), name);
}

static inline const char *mock_path(const struct mock *m, size_t request)
{
	cr_assert_lt(request, m->n_requests, "there was no request %zu", request);
	return json_get_str(m->requests[request], "path");
}

static inline const char *mock_body(const struct mock *m, size_t request)
{
	cr_assert_lt(request, m->n_requests, "there was no request %zu", request);
	return json_get_str(m->requests[request], "body");
}

static inline void mock_stop(struct mock *m)
{
	while (m->n_requests)
		json_free(m->requests[--m->n_requests]);
	close(m->stdin_fd);
	kill(m->pid, SIGKILL);
	waitpid(m->pid, NULL, 0);
	unlink(m->scenario);
	unlink(m->log);
	rmdir(m->dir);
}
