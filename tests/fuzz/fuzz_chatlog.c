/*
 * A saved session's file, read back: what comes is a conversation that can be sent to a server in
 * either dialect, and that is the same when it is read once more; its line in the list is one line
 * of text.
 */
#include "tests/fuzz/fuzz.h"

#include "agent/chatlist.h"
#include "agent/chatlog.h"
#include "agent/provider_body.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>

#define ID "20261130-000000-abcd"

static char state[] = "/dev/shm/warder-fuzz-XXXXXX";
static char sessions[64], file[96];

static void remove_all(void)
{
	unlink(file);
	rmdir(sessions);
	rmdir(state);
}

static void make_state(void)
{
	if (file[0])
		return;
	if (!mkdtemp(state))
		abort();
	snprintf(sessions, sizeof(sessions), "%s/sessions", state);
	snprintf(file, sizeof(file), "%s/" ID ".jsonl", sessions);
	if (mkdir(sessions, 0700))
		abort();
	atexit(remove_all);
}

static void put(const uint8_t *data, size_t size)
{
	int fd = open(file, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	if (fd < 0 || write(fd, data, size) != (ssize_t)size)
		abort();
	close(fd);
}

/* What a server would be sent; NULL: the file was refused. */
static char *resume(enum answer_dialect dialect, const char *project)
{
	struct convo c = {0};
	struct chatlog l;
	struct provider_usage usage;
	struct policy_error why = {0};
	struct buf body = {0};
	struct json *v = NULL;
	unsigned turns;
	if (chatlog_init(&l, state, &c))
		abort();
	l.project = project;
	int err = chatlog_resume(&l, "2026", &usage, &turns, &why);
	if (err && (!why.text[0] || strpbrk(why.text, "\n\033")))
		abort();
	if (!err) {
		const struct provider_request req = {.convo = &c, .model = "m"};
		if (convo_pending(&c) || body_write(dialect, &req, &body) ||
		    json_parse(buf_str(&body), body.len, &v, NULL))
			abort();
	}
	json_free(v);
	chatlog_release(&l);
	convo_free(&c);
	return err ? NULL : buf_take(&body);
}

static void check_list(void)
{
	struct buf out = {0};
	if (chatlist_write(sessions, NULL, 80, &out))
		abort();
	for (size_t i = 0; i < out.len; i++) {
		unsigned char c = (unsigned char)out.data[i];
		if ((c < ' ' && (c != '\n' || i + 1 != out.len)) || c == 0x7f)
			abort();
	}
	buf_free(&out);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	make_state();
	put(data, size);
	check_list();
	/* The first time may cut off a torn last line, and answer what never was. */
	char *once = resume(ANSWER_CHAT, "/nowhere");
	char *again = resume(ANSWER_CHAT, "/nowhere");
	char *other = resume(ANSWER_RESPONSES, NULL);
	if (!once != !again || !once != !other || (once && strcmp(once, again) != 0))
		abort();
	free(once);
	free(again);
	free(other);
	return 0;
}
