/*
 * ask COMMAND [ARG...]: runs it with libwarder, asks on the terminal, names what stayed refused.
 *
 *	cc ask.c $(pkg-config --static --cflags --libs warder) -o ask
 *	./ask cat ~/.gitconfig
 */
#include <warder.h>

#include <cjson/cJSON.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

static enum warder_answer on_question(void *tty, const struct warder_question *q, unsigned *scope)
{
	char line[16];
	/* Names are bytes of the program's choice: a real front end escapes them. */
	if (q->text)
		fprintf(stderr, "run it once more? so far it changed:\n%s", q->text);
	else
		fprintf(stderr, "%s wants to %s %s%s\n", q->argv[0], q->access, q->path,
			q->sensitive ? " (SENSITIVE)" : "");
	for (size_t i = 0; i < q->scopes_len; i++)
		fprintf(stderr, "  %zu: %s\n", i, q->scopes[i].rule);
	fprintf(stderr, "[n]o, [y]es once, or a number for this session: ");
	if (!fgets(line, sizeof line, tty))
		return WARDER_NO;
	if (line[0] >= '0' && line[0] < '0' + (int)q->scopes_len) {
		*scope = (unsigned)(line[0] - '0');
		return WARDER_SESSION;
	}
	return line[0] == 'y' ? WARDER_ONCE : WARDER_NO;
}

static void print_denials(const char *report)
{
	cJSON *root = cJSON_Parse(report);
	const cJSON *denial, *word;
	cJSON_ArrayForEach(denial, cJSON_GetObjectItem(root, "denials"))
	{
		if (strcmp(cJSON_GetObjectItem(denial, "answer")->valuestring, "deny") != 0)
			continue;
		fprintf(stderr, "refused %s:", cJSON_GetObjectItem(denial, "path")->valuestring);
		cJSON_ArrayForEach(word, cJSON_GetObjectItem(denial, "access"))
			fprintf(stderr, " %s", word->valuestring);
		fprintf(stderr, " (%s)\n", cJSON_GetObjectItem(denial, "verdict")->valuestring);
	}
	cJSON_Delete(root);
}

int main(int argc, char **argv)
{
	struct warder_result result;
	FILE *tty = fopen("/dev/tty", "r"); /* stdin is the command's */
	struct warder_options options = {.ask = on_question, .ask_arg = tty ? tty : stdin};
	if (argc < 2 || warder_run(&options, argv + 1, &result))
		return 125;
	if (result.report)
		print_denials(result.report);
	else
		fprintf(stderr, "ask: %s\n", result.error);
	warder_result_release(&result);
	return result.status < 0 ? (raise(-result.status), 128) : result.status;
}
