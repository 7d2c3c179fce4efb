/*
 * broker_job: a call as the broker's workers have it: copies of all that was decided on, so that
 * nobody can change it any more. Inside the broker.
 */
#pragma once

#include "supervisor/broker.h"

#include <pthread.h>
#include <sys/socket.h>
#include <sys/un.h>

/* One side of an act: what was decided on. */
struct broker_thing {
	int object; /* O_PATH, -1 */
	int parent; /* O_PATH, -1 */
	char name[256];
	bool exists;
	dev_t dev;
	ino_t ino;
	mode_t mode;
};

struct broker_job {
	uint64_t id;
	struct broker_job *next;
	enum call_need need;
	struct broker_thing at[CALL_PATHS];
	struct identity as;
	uint64_t flags;	  /* O_* or AT_*/
	uint64_t resolve; /* openat2's */
	uint32_t mode;
	uint64_t dev;
	uint64_t length;
	char *text; /* symlink: its target; exec: what a script is called */
	bool scripts_alone;
	struct broker_connect connect;
	struct broker_meta meta;
	struct call probe; /* what is looked at, owned; or the descriptor `socket` */
	struct call_view view;
	bool no_ioctl;
	struct pool *pool;
	int socket; /* bind: our copy of the tracee's socket; a probe: of its file */
	int cwd;    /* bind: the directory that the address is relative to */
	struct sockaddr_un address;
	socklen_t address_len;
	/* state, under the broker's lock */
	pthread_t thread;
	bool may_block;
	bool running;
	bool cancelled;
	struct broker_done done;
};

/* Takes its own copies (descriptors too), and what request->connect owns where it succeeds. */
int broker_job_new(const struct broker_request *request, struct broker_job **ret);
void broker_job_free(struct broker_job *j);
