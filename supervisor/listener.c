#include "supervisor/listener.h"

#include "tracer/util.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <linux/sock_diag.h>
#include <linux/unix_diag.h>
#include <netinet/tcp.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/sysmacros.h>
#include <sys/un.h>

#define PROCESSES_MAX 4096

struct sought {
	const char *name; /* abstract, without the leading NUL; not ended by one. NULL: by path */
	size_t len;
	int type;		    /* abstract names are of one each */
	struct unix_diag_vfs where; /* by path */
	uint32_t inode;		    /* 0: not found */
	bool listens;		    /* that one is who a connect would come to */
};

static int ask(int netlink)
{
	struct {
		struct nlmsghdr head;
		struct unix_diag_req body;
	} request = {.head = {.nlmsg_len = sizeof request,
			      .nlmsg_type = SOCK_DIAG_BY_FAMILY,
			      .nlmsg_flags = NLM_F_REQUEST | NLM_F_DUMP},
		     .body = {.sdiag_family = AF_UNIX,
			      .udiag_states = UINT32_MAX,
			      .udiag_show = UDIAG_SHOW_NAME | UDIAG_SHOW_VFS}};
	return send(netlink, &request, sizeof request, 0) < 0 ? -errno : 0;
}

static bool is_named(const struct sought *s, const struct rtattr *a, int type)
{
	const char *name = RTA_DATA(a);
	return s->name && a->rta_type == UNIX_DIAG_NAME && type == s->type &&
	       RTA_PAYLOAD(a) == s->len + 1 && !name[0] && !memcmp(name + 1, s->name, s->len);
}

static bool is_there(const struct sought *s, const struct rtattr *a)
{
	const struct unix_diag_vfs *vfs = RTA_DATA(a);
	return !s->name && a->rta_type == UNIX_DIAG_VFS && RTA_PAYLOAD(a) >= sizeof *vfs &&
	       vfs->udiag_vfs_ino == s->where.udiag_vfs_ino &&
	       vfs->udiag_vfs_dev == s->where.udiag_vfs_dev;
}

static void look_at(const struct nlmsghdr *head, struct sought *s)
{
	const struct unix_diag_msg *m = NLMSG_DATA(head);
	const struct rtattr *a = (const struct rtattr *)(m + 1);
	int left = (int)(head->nlmsg_len - NLMSG_LENGTH(sizeof *m));
	for (; RTA_OK(a, left); a = RTA_NEXT(a, left))
		/* What was accepted from a listener has its name, too. */
		if ((is_named(s, a, m->udiag_type) || is_there(s, a)) && !s->listens) {
			s->inode = m->udiag_ino;
			s->listens = m->udiag_state == TCP_LISTEN || m->udiag_type == SOCK_DGRAM;
		}
}

/* 0, also where nobody has the name. */
static int find(struct sought *s)
{
	char answer[32768] __attribute__((aligned(8)));
	int fd AUTOCLOSE = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_SOCK_DIAG);
	int err = fd < 0 ? -errno : ask(fd);
	while (!err) {
		ssize_t n = recv(fd, answer, sizeof answer, 0);
		if (n < 0)
			return -errno;
		unsigned left = (unsigned)n;
		const struct nlmsghdr *head = (const struct nlmsghdr *)answer;
		for (; NLMSG_OK(head, left); head = NLMSG_NEXT(head, left)) {
			if (head->nlmsg_type == NLMSG_DONE)
				return 0;
			if (head->nlmsg_type == NLMSG_ERROR)
				return -EIO;
			look_at(head, s);
		}
	}
	return err;
}

static bool holds(pid_t pid, uint32_t inode)
{
	char dir[32], wanted[48], text[64];
	struct dirent *e;
	bool found = false;
	snprintf(dir, sizeof dir, "/proc/%d/fd", pid);
	int len = snprintf(wanted, sizeof wanted, "socket:[%" PRIu32 "]", inode);
	DIR *d = opendir(dir);
	while (d && !found && (e = readdir(d))) {
		ssize_t n = readlinkat(dirfd(d), e->d_name, text, sizeof text);
		found = n == len && !memcmp(text, wanted, (size_t)n);
	}
	if (d)
		closedir(d);
	return found;
}

static bool tree_holds(const struct tracer *t, uint32_t inode)
{
	pid_t *pids AUTOFREE = calloc(PROCESSES_MAX, sizeof *pids);
	size_t n = pids ? tracer_processes(t, pids, PROCESSES_MAX) : 0;
	for (size_t i = 0; i < n && i < PROCESSES_MAX; i++)
		if (holds(pids[i], inode))
			return true;
	return false;
}

bool listener_may_be_abstract(const struct tracer *t, const struct sockaddr_storage *address,
			      socklen_t len, int type)
{
	const struct sockaddr_un *un = (const struct sockaddr_un *)address;
	struct sought s = {.name = un->sun_path + 1,
			   .len = len - offsetof(struct sockaddr_un, sun_path) - 1,
			   .type = type};
	if (find(&s))
		return false; /* not known is not ours */
	return !s.inode || tree_holds(t, s.inode);
}

bool listener_is_the_trees(const struct tracer *t, const struct stat *st)
{
	/* As the kernel tells it: its own form of a device, and 32 bits of an inode. */
	struct sought s = {.where = {.udiag_vfs_ino = (uint32_t)st->st_ino,
				     .udiag_vfs_dev = major(st->st_dev) << 20 | minor(st->st_dev)}};
	if (!S_ISSOCK(st->st_mode) || st->st_ino > UINT32_MAX || find(&s))
		return false;
	return s.listens && tree_holds(t, s.inode);
}
