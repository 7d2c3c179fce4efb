#include "agent/copilot.h"

#include "tracer/util.h"

/* GitHub's names, and ours. */
static const struct {
	const char *name, *words;
} quotas[] = {
	{"premium_interactions", "premium requests"},
	{"chat", "chat requests"},
};

static void write_one(const struct json *quota, const char *words, struct buf *out)
{
	int64_t left = 0, all = 0;
	bool unlimited = false, more = false;
	if (!json_is_object(quota))
		return;
	json_bool(json_get(quota, "unlimited"), &unlimited);
	json_bool(json_get(quota, "overage_permitted"), &more);
	bool told =
		json_get_int(quota, "remaining", &left) && json_get_int(quota, "entitlement", &all);
	if (!unlimited && !told)
		return;
	buf_addf(out, "%s%s: ", out->len ? "; " : "", words);
	if (unlimited)
		buf_add_str(out, "unlimited");
	else
		buf_addf(out, "%lld of %lld left%s", (long long)left, (long long)all,
			 more ? ", more is billed" : "");
}

void copilot_write_quota(const struct json *root, struct buf *out)
{
	const struct json *all = json_get(root, "quota_snapshots");
	const char *date = json_get_str(root, "quota_reset_date");
	for (size_t i = 0; i < ARRAY_LEN(quotas); i++)
		write_one(json_get(all, quotas[i].name), quotas[i].words, out);
	if (!out->len)
		buf_add_str(out, "the account's quotas are not told");
	else if (date)
		buf_addf(out, "; anew on %s", date);
}
