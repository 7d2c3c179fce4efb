#include "supervisor/broker.h"

#include "tracer/util.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <poll.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#define ROUNDS	    8000
#define PATIENCE_MS 20000

/* An abstract name with a listener whose queue is full: one more connect waits. */
struct full {
	int listener, first;
	struct sockaddr_un address;
	socklen_t len;
};

static void fill(struct full *f)
{
	*f = (struct full){.address = {.sun_family = AF_UNIX}};
	int n = snprintf(f->address.sun_path + 1, sizeof(f->address.sun_path) - 1,
			 "warder-test-broker-%d", getpid());
	f->len = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)n);
	const struct sockaddr *to = (const struct sockaddr *)&f->address;
	f->listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	f->first = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	cr_assert_eq(bind(f->listener, to, f->len), 0);
	cr_assert_eq(listen(f->listener, 0), 0);
	cr_assert_eq(connect(f->first, to, f->len), 0);
}

static uint64_t submit(struct broker *b, const struct full *f, const struct identity *self)
{
	struct call call = {.ent = sysent_by_name("connect")};
	struct call_view view = {.tid = getpid(), .tgid = getpid()};
	struct broker_connect k = {.socket = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0),
				   .address_len = f->len,
				   .view = view};
	struct broker_request request = {.call = &call, .view = view, .as = self, .connect = &k};
	uint64_t id = 0;

	memcpy(&k.address, &f->address, sizeof(f->address));
	cr_assert_eq(broker_submit(b, &request, &id), 0);
	return id;
}

static void spin(long ns)
{
	struct timespec from, now;

	clock_gettime(CLOCK_MONOTONIC, &from);
	do {
		clock_gettime(CLOCK_MONOTONIC, &now);
	} while ((now.tv_sec - from.tv_sec) * 1000000000 + now.tv_nsec - from.tv_nsec < ns);
}

/* However little of it had happened: a lost wake-up would leave the worker there for good. */
Test(broker, a_cancelled_connect_always_ends, .timeout = 60)
{
	struct broker *b = NULL;
	struct identity self;
	struct full f;

	fill(&f);
	cr_assert_eq(identity_self(&self), 0);
	cr_assert_eq(broker_new(&b), 0);
	for (int i = 0; i < ROUNDS; i++) {
		struct pollfd p = {.fd = broker_fd(b), .events = POLLIN};
		struct broker_done done;
		uint64_t id = submit(b, &f, &self);

		spin(i % 400 * 250L);
		broker_cancel(b, id);
		while (broker_next(b, &done) == 0)
			cr_assert_eq(poll(&p, 1, PATIENCE_MS), 1, "round %d: it waits still", i);
		cr_expect_eq(done.id, id);
		cr_expect(done.result == -EINTR || done.result == -512, "%ld", (long)done.result);
	}
	broker_free(b);
	close(f.first);
	close(f.listener);
}
