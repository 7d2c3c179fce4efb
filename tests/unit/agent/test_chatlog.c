/* A conversation on disk: what is written is what is read, whatever a crash left of the last line.
 */
#include "agent/chatlog.h"

#include "agent/chatlist.h"
#include "tracer/util.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static char dir[64];

static void enter(void)
{
	strcpy(dir, "/tmp/warder-chatlog-XXXXXX");
	cr_assert_not_null(mkdtemp(dir));
}

static void leave(void)
{
	char command[128];
	snprintf(command, sizeof(command), "rm -rf '%s'", dir);
	cr_assert_eq(system(command), 0);
}

TestSuite(chatlog, .init = enter, .fini = leave, .timeout = 30);

static const char *const model = "m";

static void begin(struct chatlog *l, struct convo *c, const char *project)
{
	cr_assert_eq(chatlog_init(l, dir, c), 0);
	l->project = project;
	l->cwd = "/p/sub";
	l->provider = "script";
	l->model = &model;
}

/* system, user, an assistant with two calls, one answered: as a crash would leave it. */
static void talk(struct convo *c)
{
	struct convo_message m = {.role = CONVO_ASSISTANT, .text = strdup("I look \033[2J\n")};
	cr_assert_eq(convo_add_text(c, CONVO_SYSTEM, "system"), 0);
	cr_assert_eq(convo_add_text(c, CONVO_USER, "first words\nmore"), 0);
	cr_assert_eq(convo_message_add_call(&m, "a", "list_dir", "{\"path\":\".\"}"), 0);
	cr_assert_eq(convo_message_add_call(&m, "b", "run_shell", "{\"command\":\"x\"}"), 0);
	cr_assert_eq(convo_add_assistant(c, &m), 0);
	cr_assert_eq(convo_add_result(c, "a", "{\"entries\":[]}"), 0);
}

static char *write_convo(const struct convo *c)
{
	struct buf out = {0};
	struct jsonw w;
	jsonw_init(&w, &out);
	convo_write(&w, c, NULL);
	return buf_take(&out);
}

static void path_of(const char *id, char room[256])
{
	snprintf(room, 256, "%s/sessions/%s.jsonl", dir, id);
}

/* A session that ended without a word; its id is the caller's. */
static char *crashed(const char *project)
{
	struct convo c = {0};
	struct chatlog l;
	begin(&l, &c, project);
	talk(&c);
	cr_assert_eq(l.error, 0);
	char *id = strdup(l.id);
	chatlog_release(&l);
	convo_free(&c);
	return id;
}

static int resume(struct chatlog *l, const char *id, struct policy_error *why)
{
	struct provider_usage usage;
	unsigned turns;
	return chatlog_resume(l, id, &usage, &turns, why);
}

Test(chatlog, nothing_is_made_before_the_users_words)
{
	struct convo c = {0};
	struct chatlog l;
	char path[256];
	begin(&l, &c, "/p");
	cr_assert_eq(convo_add_text(&c, CONVO_SYSTEM, "system"), 0);
	snprintf(path, sizeof(path), "%s/sessions", dir);
	cr_expect(access(path, F_OK) && !l.id);
	cr_assert_eq(convo_add_text(&c, CONVO_USER, "hello"), 0);
	struct stat st;
	cr_assert_eq(stat(path, &st), 0);
	cr_expect_eq(st.st_mode & 07777, 0700);
	path_of(l.id, path);
	cr_assert_eq(stat(path, &st), 0);
	cr_expect_eq(st.st_mode & 07777, 0600);
	chatlog_release(&l);
	convo_free(&c);
}

Test(chatlog, what_was_said_comes_back)
{
	struct convo c = {0}, again = {0};
	struct chatlog l, other;
	struct provider_usage usage = {.prompt = 100, .cached = -1, .completion = 7}, sum;
	unsigned turns = 0;
	struct policy_error why = {0};
	begin(&l, &c, "/p");
	talk(&c);
	cr_assert_eq(convo_complete(&c, "never"), 1);
	cr_assert_eq(convo_add_text(&c, CONVO_USER, "taken back"), 0);
	convo_truncate(&c, c.n - 1);
	chatlog_usage(&l, &usage);
	chatlog_usage(&l, &usage);
	char *id = strdup(l.id), *before = write_convo(&c);
	chatlog_release(&l);
	begin(&other, &again, "/p");
	cr_assert_eq(chatlog_resume(&other, id, &sum, &turns, &why), 0, "%s", why.text);
	char *after = write_convo(&again);
	cr_expect_str_eq(after, before);
	cr_expect_eq(turns, 2);
	cr_expect_eq(sum.prompt, 200);
	cr_expect_eq(sum.cached, -1);
	cr_expect_eq(sum.completion, 14);
	free(before);
	free(after);
	free(id);
	chatlog_release(&other);
	convo_free(&c);
	convo_free(&again);
}

/* Cut at every byte: every whole line is there, the conversation is valid, and it goes on. */
Test(chatlog, a_cut_end_costs_at_most_the_last_line)
{
	char *id = crashed("/p"), path[256];
	struct stat st;
	path_of(id, path);
	cr_assert_eq(stat(path, &st), 0);
	for (off_t size = st.st_size; size > 0; size--) {
		struct convo c = {0};
		struct chatlog l;
		struct policy_error why = {0};
		cr_assert_eq(truncate(path, size), 0);
		begin(&l, &c, "/p");
		int err = resume(&l, id, &why);
		if (err) { /* not even the first line is left */
			cr_assert(!c.n && why.text[0]);
		} else {
			cr_assert_null(convo_pending(&c));
			cr_assert(!c.n || c.messages[c.n - 1].role != CONVO_USER);
			cr_assert_eq(convo_add_text(&c, CONVO_USER, "next"), 0);
			cr_assert_eq(l.error, 0);
		}
		chatlog_release(&l);
		convo_free(&c);
		if (!err) {
			cr_assert_eq(stat(path, &st), 0);
			if (st.st_size < size)
				size = st.st_size;
		}
	}
	free(id);
}

Test(chatlog, a_broken_line_is_named_and_nothing_is_taken)
{
	static const char *const lines[] = {
		"nonsense\n",
		"{\"message\":{\"role\":\"tool\",\"tool_call_id\":\"zz\",\"content\":\"x\"}}\n",
		"{\"message\":{\"role\":\"king\",\"content\":\"x\"}}\n",
		"{\"keep\":99}\n",
	};
	for (size_t i = 0; i < ARRAY_LEN(lines); i++) {
		char *id = crashed("/p"), path[256];
		struct convo c = {0};
		struct chatlog l;
		struct policy_error why = {0};
		path_of(id, path);
		FILE *f = fopen(path, "a");
		cr_assert(f && fputs(lines[i], f) >= 0 && !fclose(f));
		begin(&l, &c, "/p");
		cr_expect_eq(resume(&l, id, &why), -EINVAL, "row %zu", i);
		cr_expect(strstr(why.text, "line 6"), "row %zu: %s", i, why.text);
		cr_expect_eq(c.n, 0);
		chatlog_release(&l);
		convo_free(&c);
		free(id);
	}
}

Test(chatlog, one_at_a_time_has_a_session)
{
	struct convo c = {0}, other = {0};
	struct chatlog l, second;
	struct policy_error why = {0};
	begin(&l, &c, "/p");
	talk(&c);
	begin(&second, &other, "/p");
	cr_expect_eq(resume(&second, l.id, &why), -EWOULDBLOCK);
	cr_expect(strstr(why.text, "in use"), "%s", why.text);
	chatlog_release(&second);
	chatlog_release(&l);
	convo_free(&c);
	convo_free(&other);
}

Test(chatlog, sessions_are_found_and_listed)
{
	char *mine = crashed("/p"), *theirs = crashed("/q"), *found = NULL;
	char path[256];
	struct buf out = {0};
	snprintf(path, sizeof(path), "%s/sessions", dir);
	cr_assert_eq(chatlist_find(path, NULL, "/p", NULL, &found), 0);
	cr_expect_str_eq(found, mine);
	free(found);
	cr_expect_eq(chatlist_find(path, NULL, "/p", mine, &found), -ENOENT);
	cr_assert_eq(chatlist_find(path, theirs, "/p", NULL, &found), 0);
	cr_expect_str_eq(found, theirs);
	free(found);
	cr_expect_eq(chatlist_find(path, "2", "/p", NULL, &found), -ENOTUNIQ);
	cr_expect_eq(chatlist_find(path, "none", "/p", NULL, &found), -ENOENT);
	cr_assert_eq(chatlist_write(path, "/p", 100, &out), 0);
	cr_expect(strstr(buf_str(&out), mine) && strstr(buf_str(&out), "first words\n"));
	buf_reset(&out);
	size_t narrow = strlen(mine) + 4 + 7;
	cr_assert_eq(chatlist_write(path, "/p", narrow, &out), 0);
	cr_expect_eq(strcspn(buf_str(&out), "\n"), narrow + strlen("…") - 1);
	cr_expect_not(strstr(buf_str(&out), theirs));
	buf_reset(&out);
	cr_assert_eq(chatlist_write(path, NULL, 100, &out), 0);
	cr_expect(strstr(buf_str(&out), mine) && strstr(buf_str(&out), theirs));
	buf_free(&out);
	cr_expect_eq(chatlist_write("/nonexistent", NULL, 100, &out), 0);
	free(mine);
	free(theirs);
}
