#include "supervisor/doorstep.h"

#include "landlock/llright.h"
#include "supervisor/listener.h"
#include "supervisor/permits.h"
#include "tracer/util.h"

#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <sys/stat.h>
#include <sys/syscall.h>

static bool is_meta(const struct waiter *w)
{
	return w->call->ent->group != SYS_GROUP_CONNECT;
}

/* On a file system that may keep us waiting it is looked at by somebody else first. */
static bool is_to_be_probed(const struct run *r, struct waiter *w, struct call_view view)
{
	w->probes = !w->slow && (w->meta.by_fd ? slowfs_has(r->slowfs, w->verdict.refused.object)
					       : slowfs_concerns(r->slowfs, w->call, view));
	return w->probes;
}

/* By descriptor: its file, as if a path had led there. */
static int look_at_fd(const struct run *r, struct waiter *w)
{
	struct path_at *at = &w->verdict.refused;
	int err = pathname_fill(r->names, at);
	at->unreachable = at->exists && err == -ENOENT;
	return at->unreachable ? 0 : err;
}

/* Of such a descriptor (O_PATH) no call that is by descriptor is possible. */
static bool is_only_a_place(int fd)
{
	return fcntl(fd, F_GETFL) & O_PATH;
}

static int take_fd(const struct run *r, struct waiter *w, struct call_view view)
{
	int *fd = &w->verdict.refused.object;
	int err = tracee_fd_take(r->fds, view, (int)w->call->args[0], fd);
	/* Else the act itself says so, or doorstep_fails_anyway(). */
	bool told = r->recorder || r->mode == ENGINE_PERMISSIVE;
	return !err && told && is_only_a_place(*fd) ? -EBADF : err;
}

/* 0; or -errno, the call's result. */
static int look_at_meta(const struct run *r, struct waiter *w, struct call_view view)
{
	int err = broker_meta_read(w->call, view, &w->meta);
	if (!err && !w->meta.done && w->meta.by_fd)
		err = take_fd(r, w, view);
	if (err || w->meta.done)
		return err;
	if (is_to_be_probed(r, w, view))
		return -EINPROGRESS;
	struct need *need = &w->verdict.need[0];
	need->access = ACCESS_META;
	if (w->meta.by_fd) {
		need->at = &w->verdict.refused;
		return look_at_fd(r, w);
	}
	err = call_resolve(w->call, view);
	if (!err)
		err = w->call->path[0].error;
	need->at = &w->call->path[0].at;
	return !err && !need->at->exists ? -ENOENT : err;
}

/* Landlock's own scope: in the tree's place we must keep it too. */
static bool is_out_of_scope(const struct run *r, const struct broker_connect *k)
{
	int type = 0;
	socklen_t len = sizeof type;
	if (!broker_connect_is_abstract(k) || !r->ruleset ||
	    !(llruleset_scoped(r->ruleset) & LLR_SCOPE_ABSTRACT_UNIX_SOCKET))
		return false;
	return getsockopt(k->socket, SOL_SOCKET, SO_TYPE, &type, &len) ||
	       !listener_may_be_abstract(r->tracer, &k->address, k->address_len, type);
}

static bool is_tcp(int socket)
{
	int protocol = 0;
	socklen_t len = sizeof protocol;
	return !getsockopt(socket, SOL_SOCKET, SO_PROTOCOL, &protocol, &len) &&
	       protocol == IPPROTO_TCP;
}

/*
 * Made by us, a connection would not be held to the sandbox that the program gave itself. By TCP it
 * is made in one like that (netdomain.h), so that the kernel says which ports it allows; where
 * there is none, and to abstract names, none is. As that one would say it; 0: not its affair.
 */
static int refused_by_its_own(struct waiter *w)
{
	if ((w->own_about & TRACER_OWN_ABSTRACT) && broker_connect_is_abstract(&w->connect))
		return -EPERM;
	/* To AF_UNSPEC it would let go of a connection: that is always allowed. */
	if (!w->own_net || w->connect.is_send || w->connect.address.ss_family == AF_UNSPEC ||
	    !is_tcp(w->connect.socket))
		return 0;
	w->connect.in = w->own_net;
	return w->own_net == TRACER_NET_UNKNOWN ? -EACCES : 0;
}

/* 0; or -errno, the call's result. */
static int look_at_connect(const struct run *r, struct waiter *w, struct call_view view)
{
	int err = broker_connect_read(w->call, view, r->fds, &w->connect);
	if (w->connect.passes_socket)
		w->verdict.note = "a unix datagram socket is passed on to nobody: who has it could "
				  "send to any path";
	if (err || w->connect.done)
		return err;
	if (!w->connect.by_path && is_out_of_scope(r, &w->connect)) {
		w->verdict.note = "an abstract unix socket outside of the command's own processes";
		return -EPERM;
	}
	if (!w->connect.by_path) {
		err = refused_by_its_own(w);
		if (err)
			w->verdict.note =
				"it has a Landlock sandbox of its own, which is not reached round";
		return err;
	}
	const struct call_path *p = &w->call->path[0];
	if (is_to_be_probed(r, w, view))
		return -EINPROGRESS;
	err = call_resolve(w->call, view);
	if (err || p->error)
		return err ? err : p->error;
	if (!p->at.exists)
		return -ENOENT;
	w->verdict.need[0] = (struct need){.access = ACCESS_CONNECT, .at = &p->at};
	return 0;
}

uint32_t doorstep_access(const struct waiter *w)
{
	return is_meta(w) ? ACCESS_META : ACCESS_CONNECT;
}

bool doorstep_look(const struct run *r, struct waiter *w, int64_t *ret_result)
{
	struct call_view view = {w->who.tid, w->pid, r->names};
	w->verdict.verdict = VERDICT_SANDBOX;
	broker_meta_release(&w->meta);
	broker_connect_release(&w->connect);
	path_release(&w->verdict.refused);
	int err = is_meta(w) ? look_at_meta(r, w, view) : look_at_connect(r, w, view);
	bool done = w->meta.done || w->connect.done;
	if (!err && !done) {
		if (r->one_identity)
			identity_copy(&w->as, &r->self);
		else
			err = whose_is(r->whose, w->who, w->turn, false, &w->as);
	}
	/* Did all that was read belong to the one who waits? Else nobody hears this. */
	if (!tracer_is_held(r->tracer, w->who)) {
		w->verdict.note = NULL;
		*ret_result = -ESRCH;
		return false;
	}
	/* The kernel itself never says so to what could be read. */
	if (err == -EPERM && !w->verdict.note)
		w->verdict.note = "the program lets nobody read its memory (it is not dumpable)";
	*ret_result = err;
	return !err && !done;
}

/* Modes, owners and times ask for few capabilities, attributes and flags for any. */
static bool is_caller(const struct run *r, const struct waiter *w)
{
	if (r->one_identity)
		return true;
	bool few = w->meta.kind == BROKER_META_MODE || w->meta.kind == BROKER_META_OWNER ||
		   w->meta.kind == BROKER_META_TIMES;
	return few ? identity_same_to_files(&w->as, &r->self) : identity_same(&w->as, &r->self);
}

/* As the call's caller, who must be able to come to the thing by its path. */
static int begin_as_caller(const struct run *r, const struct waiter *w)
{
	struct permits_who who = {{.tid = w->who.tid, .tgid = w->pid}, &w->as, &r->self};
	int err = permits_way(&who, w->call, 0);
	return err || is_caller(r, w) ? err : identity_enter(&w->as);
}

static void end_as_caller(const struct run *r, const struct waiter *w)
{
	/* Staying somebody else would make every later act wrong. */
	if (!is_caller(r, w))
		BUG(identity_enter(&r->self) != 0);
}

/* net/unix/af_unix.c, unix_find_bsd(): it must be writable, and then be a socket. */
static int connect_fails_anyway(const struct path_at *at)
{
	if (syscall(SYS_faccessat2, at->object, "", W_OK, AT_EMPTY_PATH | AT_EACCESS))
		return -errno;
	return S_ISSOCK(at->st.st_mode) ? 0 : -ECONNREFUSED;
}

int doorstep_fails_anyway(const struct run *r, const struct waiter *w)
{
	const struct path_at *at = w->verdict.need[0].at;
	if (!at)
		return 0;
	if (is_meta(w) && w->meta.by_fd && is_only_a_place(at->object))
		return -EBADF;
	int err = begin_as_caller(r, w);
	if (!err && is_meta(w))
		err = broker_meta_fails_anyway(&w->meta, at->object, &at->st, &w->as);
	else if (!err)
		err = connect_fails_anyway(at);
	end_as_caller(r, w);
	return err;
}

bool doorstep_is_instant(const struct waiter *w)
{
	return is_meta(w) && !w->slow;
}

int doorstep_request(const struct run *r, struct waiter *w, struct broker_request *rq)
{
	if (!is_meta(w)) {
		rq->connect = &w->connect;
		rq->domains = r->netdomains;
		return 0;
	}
	struct permits_who who = {{.tid = w->who.tid, .tgid = w->pid}, &w->as, &r->self};
	rq->meta = &w->meta;
	rq->object = w->verdict.refused.object;
	return permits_way(&who, w->call, 0);
}

int64_t doorstep_perform(const struct run *r, const struct waiter *w)
{
	int err = begin_as_caller(r, w);
	if (!err)
		err = broker_meta_perform(&w->meta, w->verdict.need[0].at->object);
	end_as_caller(r, w);
	return err;
}
