#include "supervisor/protocol_text.h"
#include "supervisor/stack.h"
#include "tracer/util.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <string.h>

/* Everything that a question can say. */
static const char full[] =
	"{\"event\":\"ask\",\"id\":7,\"group\":3,\"time\":\"2025-01-31T23:59:59.123Z\",\"pid\":42,"
	"\"exe\":\"/usr/bin/mv\",\"title\":\"run_shell\",\"argv\":[\"mv\",\"a b\",\"\"],"
	"\"cwd\":\"/srv\",\"call\":\"renameat2\",\"path\":\"/srv/a b\",\"given\":\"a b\","
	"\"path2\":\"/srv/\\u00ff\",\"below\":\"/srv\",\"default_scope\":1,"
	"\"access\":[\"delete\",\"move\"],\"note\":\"it gains\",\"exists\":true,\"sensitive\":true,"
	"\"lifetimes\":[\"once\",\"session\",\"always\"],"
	"\"scopes\":[{\"path\":\"/srv/a b\",\"path2\":\"/srv/x\",\"kind\":\"exact\","
	"\"access\":[\"delete\"],\"surplus\":0,\"sensitive\":true,\"rule\":\"allow delete x\"},"
	"{\"path\":\"/srv\",\"kind\":\"tree\",\"access\":[\"read\",\"list\"],\"surplus\":20000,"
	"\"surplus_more\":true,\"sensitive\":false,\"rule\":\"allow r /srv\"}]}";

static int read_text(const char *text, struct question **ret)
{
	struct json *event;

	cr_assert_eq(json_parse(text, strlen(text), &event, NULL), 0, "%s", text);
	int r = protocol_text_read_question(event, ret);
	json_free(event);
	return r;
}

Test(protocol_text, a_question_survives_the_way)
{
	struct question *q, *again;
	struct buf once = {0}, twice = {0};
	struct jsonw w;

	cr_assert_eq(read_text(full, &q), 0);
	cr_assert_eq(q->id, 7);
	cr_assert_eq(q->scopes.len, 2);
	cr_assert_str_eq(q->call, "renameat2");
	cr_assert_str_eq(q->argv[1], "a b");
	cr_assert_str_eq(q->note, "it gains");
	cr_assert(q->exists && q->sensitive && !q->no_saving && !q->is_rerun);
	jsonw_init(&w, &once);
	protocol_text_question(&w, q);
	cr_assert_eq(read_text(buf_str(&once), &again), 0);
	again->group = q->group; /* the queue's to give, as the time is */
	again->time = q->time;
	jsonw_init(&w, &twice);
	protocol_text_question(&w, again);
	cr_assert_str_eq(buf_str(&once), buf_str(&twice));
	question_free(q);
	question_free(again);
	buf_free(&once);
	buf_free(&twice);
}

Test(protocol_text, a_rerun_has_no_scopes)
{
	struct question *q;

	cr_assert_eq(read_text("{\"event\":\"ask\",\"id\":1,\"rerun\":true,\"text\":\"it wrote x\","
			       "\"call\":\"rerun\",\"lifetimes\":[\"once\",\"session\"]}",
			       &q),
		     0);
	cr_assert(q->is_rerun && q->no_saving);
	cr_assert_str_eq(q->text, "it wrote x");
	question_free(q);
}

Test(protocol_text, what_is_no_question)
{
	static const char *const bad[] = {
		"[]",
		"{}",
		"{\"id\":0}",
		"{\"id\":-1}",
		"{\"id\":\"1\"}",
		"{\"id\":1}",
		"{\"id\":1,\"path\":\"/x\",\"scopes\":[]}",
		"{\"id\":1,\"path\":\"/x\",\"scopes\":[{}]}",
		"{\"id\":1,\"path\":\"/x\",\"access\":[\"fly\"],\"scopes\":[]}",
		"{\"id\":1,\"path\":\"/x\",\"access\":[7],\"scopes\":[]}",
		"{\"id\":1,\"path\":\"/x\",\"scopes\":[{\"kind\":\"odd\",\"path\":\"/x\","
		"\"rule\":\"r\"}]}",
		"{\"id\":1,\"path\":\"/x\",\"scopes\":[{\"kind\":\"tree\",\"path\":\"/x\"}]}",
		"{\"id\":1,\"path\":\"/x\",\"default_scope\":1,\"scopes\":[{\"kind\":\"tree\","
		"\"path\":\"/x\",\"rule\":\"r\"}]}",
	};
	struct question *q;

	for (size_t i = 0; i < ARRAY_LEN(bad); i++)
		cr_assert_eq(read_text(bad[i], &q), -EINVAL, "%s", bad[i]);
}

Test(protocol_text, no_more_scopes_than_there_is_room_for)
{
	static const char one[] = "{\"kind\":\"tree\",\"path\":\"/x\",\"rule\":\"r\"}";
	struct buf text = {0};
	struct question *q;

	for (int n = PLAN_SCOPES_MAX; n <= PLAN_SCOPES_MAX + 1; n++) {
		buf_reset(&text);
		buf_add_str(&text, "{\"id\":1,\"path\":\"/x\",\"scopes\":[");
		for (int i = 0; i < n; i++)
			buf_addf(&text, "%s%s", i ? "," : "", one);
		buf_add_str(&text, "]}");
		int r = read_text(buf_str(&text), &q);
		cr_assert_eq(r, n > PLAN_SCOPES_MAX ? -EINVAL : 0);
		if (!r)
			question_free(q);
	}
	buf_free(&text);
}

Test(protocol_text, a_stack_survives_the_way)
{
	static const char text[] =
		"{\"stack\":[{\"function\":\"f\",\"offset\":26,\"object\":\"/lib/x.so\","
		"\"object_offset\":4660},{\"function\":null,\"object\":null,\"ip\":99,"
		"\"signal\":true}],\"stack_end\":\"more\"}";
	struct unwind_stack *s;
	struct json *event;
	struct buf out = {0};
	struct jsonw w;

	cr_assert_eq(json_parse(text, strlen(text), &event, NULL), 0);
	cr_assert_eq(stack_read(event, &s), 0);
	json_free(event);
	cr_assert_eq(s->len, 2);
	cr_assert_str_eq(s->frame[0].object, "/lib/x.so");
	jsonw_init(&w, &out);
	jsonw_begin_object(&w);
	stack_write(&w, s);
	jsonw_end_object(&w);
	cr_assert_str_eq(buf_str(&out), text);
	unwind_unref(s);
	buf_free(&out);
}

Test(protocol_text, what_is_no_stack)
{
	static const struct {
		const char *text;
		int error;
	} bad[] = {{"{}", -EINVAL},
		   {"{\"stack\":[],\"stack_end\":\"odd\"}", -EINVAL},
		   {"{\"stack\":[],\"stack_end\":\"none\"}", -ENOENT},
		   {"{\"stack\":7,\"stack_end\":\"more\"}", 0}};
	struct unwind_stack *s;
	struct json *event;

	for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
		cr_assert_eq(json_parse(bad[i].text, strlen(bad[i].text), &event, NULL), 0);
		int r = stack_read(event, &s);
		cr_assert_eq(r, bad[i].error, "%s", bad[i].text);
		if (!r)
			unwind_unref(s);
		json_free(event);
	}
}
