#include "supervisor/broker_message.h"

#include "supervisor/identity.h"
#include "supervisor/tracee_fd.h"
#include "tracer/mem.h"
#include "tracer/util.h"

#include <errno.h>
#include <limits.h>
#include <linux/capability.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

#define CONTROL_MAX  65536	 /* net.core.optmem_max is 128 KiB at most; then ENOBUFS, too */
#define PASSED_MAX   253	 /* SCM_MAX_FD */
#define COMPAT_CMSGS 0x80000000u /* MSG_CMSG_COMPAT: the kernel's own */

/* A struct msghdr, from either architecture. */
struct header {
	uint64_t name, parts, nparts, control, control_len;
	int name_len;
};

/* Where the things are in a 64-bit program's memory, and in a 32-bit one's. */
static const struct layout {
	size_t header, message, sent, part, cmsg, align;
} layouts[] = {
	{.header = 56, .message = 64, .sent = 56, .part = 16, .cmsg = 16, .align = 8},
	{.header = 28, .message = 32, .sent = 28, .part = 8, .cmsg = 12, .align = 4},
};

static const struct layout *layout_of(const struct call *c)
{
	return &layouts[c->arch == SYS_ARCH_I386];
}

static bool is_many(const struct call *c)
{
	return sysent_id(c->ent) == SYS_ID_sendmmsg;
}

static uint32_t word(const char *at)
{
	uint32_t value;
	memcpy(&value, at, sizeof value);
	return value;
}

static uint64_t longer(const char *at)
{
	uint64_t value;
	memcpy(&value, at, sizeof value);
	return value;
}

/* ---- the header ---- */

static int read_header(const struct call *c, struct call_view view, struct header *h)
{
	char raw[56];
	int err = mem_read(view.tid, c->args[1], raw, layout_of(c)->header);
	if (err)
		return err;
	if (c->arch == SYS_ARCH_I386)
		*h = (struct header){.name = word(raw),
				     .name_len = (int)word(raw + 4),
				     .parts = word(raw + 8),
				     .nparts = word(raw + 12),
				     .control = word(raw + 16),
				     .control_len = word(raw + 20)};
	else
		*h = (struct header){.name = longer(raw),
				     .name_len = (int)word(raw + 8),
				     .parts = longer(raw + 16),
				     .nparts = longer(raw + 24),
				     .control = longer(raw + 32),
				     .control_len = longer(raw + 40)};
	return 0;
}

/* net/socket.c, __copy_msghdr() */
static int read_name(const struct header *h, struct broker_connect *k)
{
	if (h->name_len < 0)
		return -EINVAL;
	size_t len = h->name ? (size_t)h->name_len : 0;
	if (len > sizeof k->address)
		len = sizeof k->address;
	k->address_len = (socklen_t)len;
	return len ? mem_read(k->view.tid, h->name, &k->address, len) : 0;
}

/* ---- the data ---- */

struct part {
	uint64_t at, size;
};

static int read_parts(const struct call *c, const struct header *h, struct call_view view,
		      struct part *ret)
{
	size_t each = layout_of(c)->part;
	char *raw AUTOFREE = malloc(h->nparts ? h->nparts * each : 1);
	if (!raw)
		return -ENOMEM;
	int err = h->nparts ? mem_read(view.tid, h->parts, raw, h->nparts * each) : 0;
	for (size_t i = 0; !err && i < h->nparts; i++) {
		const char *at = raw + i * each;
		ret[i] = each == 8 ? (struct part){word(at), word(at + 4)}
				   : (struct part){longer(at), longer(at + 8)};
		if (ret[i].size > SSIZE_MAX)
			err = -EINVAL;
	}
	return err;
}

static int read_data(const struct call *c, const struct header *h, struct broker_connect *k)
{
	if (h->nparts > IOV_MAX)
		return -EMSGSIZE;
	struct part *parts AUTOFREE = calloc(h->nparts + 1, sizeof *parts);
	if (!parts)
		return -ENOMEM;
	int err = read_parts(c, h, k->view, parts);
	uint64_t all = 0;
	for (size_t i = 0; !err && i < h->nparts; i++)
		all += parts[i].size < BROKER_SEND_MAX ? parts[i].size : BROKER_SEND_MAX + 1;
	k->wanted = all;
	if (!err)
		err = broker_connect_room(k, all);
	size_t have = 0;
	for (size_t i = 0; !err && i < h->nparts && have < k->size; i++) {
		size_t n = parts[i].size < k->size - have ? (size_t)parts[i].size : k->size - have;
		err = n ? mem_read(k->view.tid, parts[i].at, (char *)k->data + have, n) : 0;
		have += n;
	}
	return err;
}

/* ---- what is beside it ---- */

static bool is_datagram(int fd)
{
	int domain, type;
	socklen_t len = sizeof domain;
	return !getsockopt(fd, SOL_SOCKET, SO_DOMAIN, &domain, &len) &&
	       !getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &len) && domain == AF_UNIX &&
	       type == SOCK_DGRAM;
}

static int take_passed(struct broker_connect *k, char *data, size_t n)
{
	if (n > PASSED_MAX - k->npassed) /* of all its control messages (net/core/scm.c) */
		return -EINVAL;
	int *more = reallocarray(k->passed, k->npassed + n + 1, sizeof *more);
	if (!more)
		return -ENOMEM;
	k->passed = more;
	for (size_t i = 0; i < n; i++) {
		int fd, err = tracee_fd_take(NULL, k->view, (int)word(data + i * sizeof fd), &fd);
		if (err)
			return err;
		k->passed[k->npassed++] = fd;
		k->passes_socket |= is_datagram(fd);
		memcpy(data + i * sizeof fd, &fd, sizeof fd);
	}
	return k->passes_socket ? -EPERM : 0;
}

/*
 * Our worker may name other ids than the tracee may, so this is decided here, as in net/core/scm.c.
 */
static int take_credentials(struct broker_connect *k, char *data)
{
	struct ucred named;
	struct identity as;
	memcpy(&named, data, sizeof named);
	if (named.uid == (uid_t)-1 || named.gid == (gid_t)-1)
		return -EINVAL;
	int err = identity_of(k->view.tid, &as);
	if (err)
		return err;
	struct identity_ids claim = {named.uid, named.gid};
	bool own_pid = named.pid == k->view.tgid;
	if (!(own_pid || (as.caps & 1ull << CAP_SYS_ADMIN)) || !identity_may_claim(&as, &claim))
		return -EPERM;
	if (own_pid)
		named.pid = getpid();
	memcpy(data, &named, sizeof named);
	k->names_sender = true;
	return 0;
}

/* One message of the control data, of n bytes; into ours. */
static int add_control(struct broker_connect *k, int level, int type, const char *data, size_t n)
{
	struct cmsghdr *to = (struct cmsghdr *)((char *)k->control + k->control_len);
	*to = (struct cmsghdr){.cmsg_len = CMSG_LEN(n), .cmsg_level = level, .cmsg_type = type};
	char *here = (char *)CMSG_DATA(to);
	memcpy(here, data, n);
	k->control_len += CMSG_SPACE(n);
	if (level != SOL_SOCKET)
		return 0;
	if (type == SCM_RIGHTS)
		return take_passed(k, here, n / sizeof(int));
	if (type == SCM_CREDENTIALS && n == sizeof(struct ucred) && broker_connect_tells_sender(k))
		return take_credentials(k, here);
	return 0;
}

static int read_control(const struct call *c, const struct header *h, struct broker_connect *k)
{
	const struct layout *l = layout_of(c);
	size_t size = (size_t)h->control_len;
	if (h->control_len > CONTROL_MAX)
		return -ENOBUFS;
	if (!h->control || !size)
		return 0;
	char *raw AUTOFREE = malloc(size);
	/* A header of 12 bytes becomes one of 16, and what was in 4 is in 8. */
	k->control = calloc(2, size + sizeof(struct cmsghdr));
	if (!raw || !k->control)
		return -ENOMEM;
	int err = mem_read(k->view.tid, h->control, raw, size);
	for (size_t at = 0; !err && size - at >= l->cmsg;) {
		const char *from = raw + at;
		uint64_t len = l->align == 8 ? longer(from) : word(from);
		const char *kind = from + (l->align == 8 ? 8 : 4);
		if (len < l->cmsg || len > size - at)
			return -EINVAL;
		err = add_control(k, (int)word(kind), (int)word(kind + 4), from + l->cmsg,
				  (size_t)len - l->cmsg);
		size_t step = ((size_t)len + l->align - 1) & ~(l->align - 1);
		at = step < size - at ? at + step : size;
	}
	return err;
}

/* ---- the face ---- */

int broker_message_read(struct call *c, struct broker_connect *k)
{
	struct header h;
	uint64_t flags = is_many(c) ? c->args[3] : c->args[2];
	if (flags & COMPAT_CMSGS)
		return -EINVAL;
	/* Without the copy's pages waiting for the network card: ours are gone before that. */
	k->flags = (int)flags & ~MSG_ZEROCOPY;
	if (is_many(c) && (uint32_t)c->args[2] > IOV_MAX)
		c->args[2] = IOV_MAX; /* net/socket.c, __sys_sendmmsg() */
	if (is_many(c) && !(uint32_t)c->args[2]) {
		k->done = true;
		return 0;
	}
	int err = read_header(c, k->view, &h);
	if (!err)
		err = read_name(&h, k);
	if (!err)
		err = read_data(c, &h, k);
	if (!err)
		err = read_control(c, &h, k);
	if (is_many(c))
		k->sent_at = c->args[1] + layout_of(c)->sent;
	return err;
}

bool broker_message_next(struct call *c)
{
	if (!is_many(c) || (uint32_t)c->args[2] < 2)
		return false;
	c->args[1] += layout_of(c)->message;
	c->args[2]--;
	return true;
}
