#include "agent/provider_body.h"

#include "tracer/util.h"

#include <criterion/criterion.h>
#include <string.h>

#define KEPT                                                                                       \
	"[{\"type\":\"reasoning\",\"encrypted_content\":\"S\"},\"c2\",\"\",{\"type\":"             \
	"\"reasoning\","                                                                           \
	"\"encrypted_content\":\"T\"},\"c1\",\"gone\"]"

/* A system's word, a question, an answer with two calls, their results. */
static void fill(struct convo *c, const char *kept)
{
	struct convo_message m = {.role = CONVO_ASSISTANT, .text = strdup("I look")};
	cr_assert_eq(convo_add_text(c, CONVO_SYSTEM, "be good"), 0);
	cr_assert_eq(convo_add_text(c, CONVO_USER, "why?"), 0);
	cr_assert_eq(convo_message_add_call(&m, "c1", "f", "{\"a\":1}"), 0);
	cr_assert_eq(convo_message_add_call(&m, "c2", "g", "broken"), 0);
	m.kept = kept ? strdup(kept) : NULL;
	m.kept_model = kept ? strdup("gpt") : NULL;
	cr_assert_eq(convo_add_assistant(c, &m), 0);
	cr_assert_eq(convo_add_result(c, "c1", "one"), 0);
	cr_assert_eq(convo_add_result(c, "c2", "two"), 0);
}

static void expect(enum answer_dialect dialect, const char *kept, const char *model,
		   const char *body)
{
	struct convo c = {0};
	struct buf out = {0};
	fill(&c, kept);
	const struct provider_request req = {.convo = &c,
					     .model = model,
					     .tools_json = "[{\"type\":\"function\",\"function\":{"
							   "\"name\":\"f\",\"parameters\":{}}}]"};
	cr_assert_eq(body_write(dialect, &req, &out), 0);
	cr_assert_str_eq(buf_str(&out), body);
	buf_free(&out);
	convo_free(&c);
}

#define CALL1                                                                                      \
	"{\"type\":\"function_call\",\"call_id\":\"c1\",\"name\":\"f\",\"arguments\":\"{"          \
	"\\\"a\\\":1}\"}"
#define CALL2                                                                                      \
	"{\"type\":\"function_call\",\"call_id\":\"c2\",\"name\":\"g\",\"arguments\":"             \
	"\"{\\\"unparsed\\\":\\\"broken\\\"}\"}"
#define SAID "{\"role\":\"assistant\",\"content\":\"I look\"}"
#define BODY(model, answer)                                                                        \
	"{\"model\":\"" model "\",\"instructions\":\"be good\",\"input\":[{\"role\":\"user\","     \
	"\"content\":\"why?\"}," answer                                                            \
	",{\"type\":\"function_call_output\",\"call_id\":\"c1\",\"output\":\"one\"},"              \
	"{\"type\":\"function_call_output\",\"call_id\":\"c2\",\"output\":\"two\"}],"              \
	"\"stream\":true,\"store\":false,\"include\":[\"reasoning.encrypted_content\"],"           \
	"\"tools\":[{\"type\":\"function\",\"name\":\"f\",\"parameters\":{}}]}"

Test(provider_body, of_responses)
{
	expect(ANSWER_RESPONSES, NULL, "gpt", BODY("gpt", SAID "," CALL1 "," CALL2));
	/* In the order they came, each once; what names nothing is left out. */
	expect(ANSWER_RESPONSES, KEPT, "gpt",
	       BODY("gpt", "{\"type\":\"reasoning\",\"encrypted_content\":\"S\"}," CALL2 "," SAID
			   ",{\"type\":\"reasoning\",\"encrypted_content\":\"T\"}," CALL1));
	/* Another model can't read it. */
	expect(ANSWER_RESPONSES, KEPT, "other", BODY("other", SAID "," CALL1 "," CALL2));
	/* Kept by the other dialect, or broken: nothing. */
	expect(ANSWER_RESPONSES, "{\"reasoning_opaque\":\"S\"}", "gpt",
	       BODY("gpt", SAID "," CALL1 "," CALL2));
	expect(ANSWER_RESPONSES, "[", "gpt", BODY("gpt", SAID "," CALL1 "," CALL2));
}

static void expect_chat(const char *kept, const char *model, bool sealed)
{
	struct convo c = {0};
	struct buf out = {0};
	fill(&c, kept);
	const struct provider_request req = {.convo = &c, .model = model};
	cr_assert_eq(body_write(ANSWER_CHAT, &req, &out), 0);
	cr_assert_eq(strstr(buf_str(&out), ",\"reasoning_opaque\":\"S\"}") != NULL, sealed);
	buf_free(&out);
	convo_free(&c);
}

Test(provider_body, of_chat_gives_sealed_reasoning_back)
{
	expect_chat("{\"reasoning_opaque\":\"S\"}", "gpt", true);
	expect_chat("{\"reasoning_opaque\":\"S\"}", "other", false);
	expect_chat(KEPT, "gpt", false);
}
