#include "supervisor/broker_connect.h"

#include "supervisor/broker_message.h"
#include "tracer/mem.h"
#include "tracer/util.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/un.h>

#define KERNEL_ERESTARTSYS 512

#define PATH_AT offsetof(struct sockaddr_un, sun_path)

/* ---- reading ---- */

static int option_of(int socket, int name)
{
	int value = -1;
	socklen_t len = sizeof value;
	return getsockopt(socket, SOL_SOCKET, name, &value, &len) ? -1 : value;
}

/* A stream is connected, or refuses an address (net/unix/af_unix.c): there no path is followed. */
static bool follows_paths(const struct broker_connect *k)
{
	if (option_of(k->socket, SO_DOMAIN) != AF_UNIX)
		return false;
	return !k->is_send || option_of(k->socket, SO_TYPE) == SOCK_DGRAM;
}

bool broker_connect_tells_sender(const struct broker_connect *k)
{
	int domain = option_of(k->socket, SO_DOMAIN);
	return domain == AF_UNIX || domain == AF_NETLINK;
}

static bool is_unix(const struct broker_connect *k)
{
	return k->address_len > PATH_AT && k->address.ss_family == AF_UNIX;
}

static int read_address(struct call_view view, uint64_t from, uint64_t size,
			struct broker_connect *k)
{
	int len = (int)size; /* as the kernel takes it */
	if (len < 0 || (size_t)len > sizeof k->address)
		return -EINVAL;
	k->address_len = (socklen_t)len;
	return len ? mem_read(view.tid, from, &k->address, (size_t)len) : 0;
}

int broker_connect_room(struct broker_connect *k, uint64_t size)
{
	bool stream = option_of(k->socket, SO_TYPE) == SOCK_STREAM;
	if (size > BROKER_SEND_MAX && !stream)
		return -EMSGSIZE;
	k->size = size < BROKER_SEND_MAX ? (size_t)size : BROKER_SEND_MAX;
	k->data = malloc(k->size ? k->size : 1);
	return k->data ? 0 : -ENOMEM;
}

static int read_data(struct call_view view, uint64_t from, uint64_t size, struct broker_connect *k)
{
	int err = broker_connect_room(k, size);
	return !err && k->size ? mem_read(view.tid, from, k->data, k->size) : err;
}

/* The decoder's own reading of the address is of another moment: this one counts. */
static int put_path(struct call *c, struct broker_connect *k)
{
	struct call_path *p = &c->path[0];
	const struct sockaddr_un *un = (const struct sockaddr_un *)&k->address;
	path_release(&p->at);
	free(p->given);
	*p = (struct call_path){.need = CALL_NEED_NONE, .dirfd = AT_FDCWD};
	path_init(&p->at);
	k->by_path =
		is_unix(k) && un->sun_path[0] && k->address_len <= sizeof *un && follows_paths(k);
	if (!k->by_path)
		return 0;
	p->need = CALL_NEED_CONNECT;
	p->given = strndup(un->sun_path, k->address_len - PATH_AT);
	return p->given ? 0 : -ENOMEM;
}

static int read_all(struct call *c, struct call_view view, struct tracee_fds *fds,
		    struct broker_connect *k)
{
	int at = k->is_send ? 4 : 1;
	int err = tracee_fd_take(fds, view, (int)c->args[0], &k->socket);
	if (!err && (fcntl(k->socket, F_GETFL) & O_PATH))
		err = -EBADF;
	if (!err && k->is_message)
		err = option_of(k->socket, SO_TYPE) < 0 ? -ENOTSOCK : broker_message_read(c, k);
	if (err || k->is_message)
		return err ? err : put_path(c, k);
	if (!err)
		err = read_address(view, c->args[at], c->args[at + 1], k);
	if (!err && option_of(k->socket, SO_TYPE) < 0)
		err = -ENOTSOCK;
	if (!err && k->is_send)
		err = read_data(view, c->args[1], c->args[2], k);
	return err ? err : put_path(c, k);
}

int broker_connect_read(struct call *c, struct call_view view, struct tracee_fds *fds,
			struct broker_connect *ret)
{
	enum sys_id id = sysent_id(c->ent);
	struct broker_connect k = {.socket = -1,
				   .is_send = id != SYS_ID_connect,
				   .is_message = id == SYS_ID_sendmsg || id == SYS_ID_sendmmsg,
				   .view = {.tid = view.tid, .tgid = view.tgid}};
	/* Without the copy's pages waiting for the network card: ours are gone before that. */
	if (k.is_send && !k.is_message)
		k.flags = (int)c->args[3] & ~MSG_ZEROCOPY;
	int err = read_all(c, view, fds, &k);
	if (err)
		broker_connect_release(&k);
	*ret = k; /* also what is known of a failure */
	return err;
}

void broker_connect_release(struct broker_connect *k)
{
	util_close(&k->socket);
	k->socket = -1;
	free(k->data);
	free(k->control);
	for (size_t i = 0; i < k->npassed; i++)
		close(k->passed[i]);
	free(k->passed);
	k->npassed = 0;
	k->data = k->control = k->passed = NULL;
}

bool broker_connect_is_abstract(const struct broker_connect *k)
{
	const struct sockaddr_un *un = (const struct sockaddr_un *)&k->address;
	return is_unix(k) && !un->sun_path[0] && follows_paths(k);
}

/* ---- doing ---- */

/* The kernel would tell the sending thread's real ids, which stay ours (supervisor/identity.h). */
static void name_sender(char *at, const struct identity_ids *real)
{
	struct ucred sender = {.pid = getpid(), .uid = real->uid, .gid = real->gid};
	struct cmsghdr head = {.cmsg_len = CMSG_LEN(sizeof sender),
			       .cmsg_level = SOL_SOCKET,
			       .cmsg_type = SCM_CREDENTIALS};
	memcpy(at, &head, sizeof head);
	memcpy(at + CMSG_LEN(0), &sender, sizeof sender);
}

/* What is beside the data, with the sender named where it would be told as us. */
static int put_control(struct broker_connect *k, const struct identity *as, char **ret_room)
{
	size_t more = CMSG_SPACE(sizeof(struct ucred));
	bool ours = as->real.uid == getuid() && as->real.gid == getgid();
	*ret_room = NULL;
	if (!k->is_send || !broker_connect_tells_sender(k) || (ours && !k->names_sender))
		return 0;
	if (!k->names_sender) {
		*ret_room = calloc(1, k->control_len + more);
		if (!*ret_room)
			return -ENOMEM;
		if (k->control_len)
			memcpy(*ret_room, k->control, k->control_len);
		name_sender(*ret_room + k->control_len, &as->real);
		k->control = *ret_room;
		k->control_len += more;
	}
	return identity_claim(as);
}

static long once(const struct broker_connect *k)
{
	const struct sockaddr *to = (const struct sockaddr *)&k->address;
	if (!k->is_send)
		return connect(k->socket, to, k->address_len);
	struct iovec data = {k->data, k->size};
	struct msghdr m = {.msg_name = k->address_len ? (void *)to : NULL,
			   .msg_namelen = k->address_len,
			   .msg_iov = &data,
			   .msg_iovlen = 1,
			   .msg_control = k->control_len ? k->control : NULL,
			   .msg_controllen = k->control_len};
	return sendmsg(k->socket, &m, k->flags | MSG_NOSIGNAL);
}

/* signal(7): with a timeout on the socket the call is never begun anew. */
static bool has_timeout(int socket)
{
	struct timeval t = {0};
	socklen_t len = sizeof t;
	return !getsockopt(socket, SOL_SOCKET, SO_SNDTIMEO, &t, &len) && (t.tv_sec || t.tv_usec);
}

static long attempt(const struct broker_connect *k, int object, const struct identity *as)
{
	char *room AUTOFREE = NULL;
	struct broker_connect here = *k;
	int no = put_control(&here, as, &room);
	if (no)
		return no;
	struct sockaddr_un *un = (struct sockaddr_un *)&here.address;
	if (k->by_path) {
		int n = snprintf(un->sun_path, sizeof un->sun_path, "/proc/thread-self/fd/%d",
				 object);
		here.address_len = (socklen_t)(PATH_AT + (size_t)n + 1);
	}
	long result = once(&here);
	if (result >= 0)
		return result;
	int err = errno;
	/* Of datagrams and packets the kernel tells nobody by a signal. */
	bool stream = option_of(k->socket, SO_TYPE) == SOCK_STREAM;
	if (err == EPIPE && stream && !(k->flags & MSG_NOSIGNAL))
		syscall(SYS_tgkill, k->view.tgid, k->view.tid, SIGPIPE);
	return err == EINTR && !has_timeout(k->socket) ? -KERNEL_ERESTARTSYS : -err;
}

long broker_connect_perform(const struct broker_connect *k, int object, const struct identity *as)
{
	struct identity_ids before;
	int err = identity_show(as, &before);
	if (err)
		return err;
	long result = attempt(k, object, as);
	identity_unshow(&before);
	return result;
}
