#include "tracer/filter.h"

#include "tracer/straighten.h"
#include "tracer/stub.h"
#include "tracer/util.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/audit.h>
#include <linux/fiemap.h>
#include <linux/fs.h>
#include <linux/fscrypt.h>
#include <linux/fsverity.h>
#include <linux/sched.h>
#include <linux/seccomp.h>
#include <linux/sockios.h>
#include <stdbool.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/socket.h>

#define X32_BIT		    0x40000000u
#define FAULTS_OF_USER_CODE 1 /* UFFD_USER_MODE_ONLY, 5.11 */
#ifndef TIOCLINUX
#define TIOCLINUX 0x541C
#endif

#define RET_ALLOW      SECCOMP_RET_ALLOW
#define RET_TRACE      (SECCOMP_RET_TRACE | FILTER_TRACE_DATA)
#define RET_DOOR       SECCOMP_RET_USER_NOTIF
#define RET_ERRNO(err) (SECCOMP_RET_ERRNO | (err))

/* Halves of args[i]; the architectures here are all little-endian. */
#define OFF_LOW(i)  (offsetof(struct seccomp_data, args) + 8 * (i))
#define OFF_HIGH(i) (OFF_LOW(i) + 4)

static const struct {
	enum sys_arch arch;
	uint32_t audit;
	bool wide; /* arguments have upper halves */
	bool has_x32;
} arches[] = {
#ifdef __aarch64__
	{SYS_ARCH_AARCH64, AUDIT_ARCH_AARCH64, true, false},
#else
	{SYS_ARCH_X86_64, AUDIT_ARCH_X86_64, true, true},
	{SYS_ARCH_I386, AUDIT_ARCH_I386, false, false},
#endif
};

struct program {
	struct sock_filter *out;
	size_t cap;
	size_t len; /* goes on counting past cap */
	const struct filter_options *options;
};

struct numbered {
	int nr;
	const struct sysent *ent;
};

static size_t emit(struct program *p, uint16_t code, uint8_t jt, uint8_t jf, uint32_t k)
{
	if (p->len < p->cap)
		p->out[p->len] = (struct sock_filter)BPF_JUMP(code, k, jt, jf);
	return p->len++;
}

static void load(struct program *p, uint32_t offset)
{
	emit(p, BPF_LD | BPF_W | BPF_ABS, 0, 0, offset);
}

static void ret(struct program *p, uint32_t action)
{
	emit(p, BPF_RET | BPF_K, 0, 0, action);
}

/* if (A `test` k) return action; */
static void ret_if(struct program *p, uint16_t test, uint32_t k, uint32_t action)
{
	emit(p, BPF_JMP | test | BPF_K, 0, 1, k);
	ret(p, action);
}

/* if (A is one of these) return action; */
static void ret_if_any(struct program *p, const uint32_t *k, size_t n, uint32_t action)
{
	BUG(!n || n > UINT8_MAX);
	for (size_t i = 0; i < n - 1; i++)
		emit(p, BPF_JMP | BPF_JEQ | BPF_K, (uint8_t)(n - 1 - i), 0, k[i]);
	ret_if(p, BPF_JEQ, k[n - 1], action);
}

/*
 * if (!(A `test` k)) goto the place land() is called for. The far jump is a JA with 32 bits of
 * offset, so no conditional offset ever nears its limit of 255.
 */
static size_t skip_unless(struct program *p, uint16_t test, uint32_t k)
{
	emit(p, BPF_JMP | test | BPF_K, 1, 0, k);
	return emit(p, BPF_JMP | BPF_JA, 0, 0, 0);
}

static void land(struct program *p, size_t jump)
{
	if (jump < p->cap)
		p->out[jump].k = (uint32_t)(p->len - jump - 1);
}

/* -E2BIG: the program does not fit. */
static int finish(struct program *p, size_t *ret_len)
{
	if (p->len > p->cap || p->len > FILTER_MAX)
		return -E2BIG;
	*ret_len = straighten(p->out, p->len);
	return 0;
}

int filter_grants(const struct sysent *ent)
{
	return ent->need[0] == CALL_NEED_OPEN;
}

bool filter_passes(const struct sysent *ent)
{
	/*
	 * linkat: an ENOENT may be a refusal too, and only the tracer can tell. An exec is read
	 * before it destroys its arguments.
	 */
	return ent->group == SYS_GROUP_WALL && ent->mark >= 0 && ent->mark <= 2 &&
	       ent->arg[0] != ARG_FILE && sysent_id(ent) != SYS_ID_linkat &&
	       ent->need[0] != CALL_NEED_EXEC;
}

static int flags_arg(const struct sysent *ent)
{
	for (int i = 0; i < (int)ARRAY_LEN(ent->arg); i++)
		if (ent->arg[i] == ARG_OFLAGS)
			return i;
	return -1;
}

#define FLAGS_OF_CHANGE (O_ACCMODE | O_CREAT | O_TRUNC)

bool filter_passes_call(const struct filter_options *options, const struct sysent *ent,
			const uint64_t args[6])
{
	int flags = flags_arg(ent);

	if (!filter_passes(ent) || args[ent->mark] >> 32)
		return false;
	return !options->see_changes || (flags >= 0 && !(args[flags] & FLAGS_OF_CHANGE));
}

bool filter_opens_nothing(const struct sysent *ent, const uint64_t args[6])
{
	int flags = flags_arg(ent);

	return flags >= 0 && (args[flags] & O_PATH);
}

/* A marked call passes, or reports. */
static void fast_body(struct program *p, const struct sysent *ent)
{
	int flags = flags_arg(ent);

	load(p, OFF_HIGH((unsigned)ent->mark));
	ret_if(p, BPF_JEQ, p->options->report, SECCOMP_RET_TRACE | FILTER_REPORT_DATA);
	ret_if(p, BPF_JEQ, p->options->pass, RET_ALLOW);
	if (!p->options->see_changes || flags < 0)
		return;
	size_t unmarked = skip_unless(p, BPF_JEQ, p->options->look);
	load(p, OFF_LOW((unsigned)flags));
	ret_if(p, BPF_JSET, FLAGS_OF_CHANGE, RET_TRACE);
	ret(p, RET_ALLOW);
	land(p, unmarked);
}

static void wall_body(struct program *p, const struct sysent *ent, bool wide)
{
	if (filter_grants(ent)) {
		load(p, OFF_LOW(FILTER_MARK_ARG));
		ret_if(p, BPF_JEQ, p->options->grant, RET_DOOR);
	}
	if (wide && p->options->pass && filter_passes(ent))
		fast_body(p, ent);
	if (flags_arg(ent) >= 0) {
		load(p, OFF_LOW((unsigned)flags_arg(ent)));
		ret_if(p, BPF_JSET, O_PATH, RET_ALLOW);
	}
	ret(p, RET_TRACE);
}

/* What has no right of Landlock's waits at the door; where nothing is refused it is only seen. */
static uint32_t door(const struct program *p)
{
	return p->options->native ? RET_TRACE : RET_DOOR;
}

bool filter_is_message(const struct sysent *ent)
{
	return sysent_id(ent) == SYS_ID_sendmsg || sysent_id(ent) == SYS_ID_sendmmsg;
}

int filter_waits(const struct sysent *ent)
{
	return ent->group == SYS_GROUP_META || ent->need[0] == CALL_NEED_CONNECT;
}

static bool watched(const struct sysent *ent)
{
	return filter_waits(ent) || filter_is_message(ent) || ent->group == SYS_GROUP_WALL ||
	       ent->group == SYS_GROUP_MOUNT || ent->group == SYS_GROUP_QUEUE ||
	       ent->group == SYS_GROUP_GUARD;
}

/* Ioctls that set attributes; a descriptor for reading is enough for them. */
static const uint32_t attribute_ioctls[] = {
	(uint32_t)FS_IOC_SETFLAGS, FS_IOC32_SETFLAGS, (uint32_t)FS_IOC_SETVERSION,
	FS_IOC32_SETVERSION,	   FS_IOC_FSSETXATTR,
};

/* Such as can't be taken back: sealed by fs-verity, encrypted. As on a file system without them. */
static const uint32_t lasting_ioctls[] = {FS_IOC_ENABLE_VERITY, FS_IOC_SET_ENCRYPTION_POLICY};

/*
 * Ioctls of single file systems by which names are made, copied and removed, and attributes set,
 * with no word to Landlock: a descriptor of a directory that may be listed is enough for a snapshot
 * of all below it, in a place where everything may be read. By type and number: their sizes differ.
 * They answer as where the file system has no such thing.
 */
static const uint32_t unseen_ioctls[] = {
	0x9401, /* BTRFS_IOC_SNAP_CREATE */
	0x940e, /* BTRFS_IOC_SUBVOL_CREATE */
	0x940f, /* BTRFS_IOC_SNAP_DESTROY */
	0x9417, /* BTRFS_IOC_SNAP_CREATE_V2 */
	0x9418, /* BTRFS_IOC_SUBVOL_CREATE_V2 */
	0x941a, /* BTRFS_IOC_SUBVOL_SETFLAGS */
	0x9425, /* BTRFS_IOC_SET_RECEIVED_SUBVOL */
	0x943f, /* BTRFS_IOC_SNAP_DESTROY_V2 */
	0xbc10, /* BCH_IOCTL_SUBVOLUME_CREATE */
	0xbc11, /* BCH_IOCTL_SUBVOLUME_DESTROY */
	0x6f04, /* OCFS2_IOC_REFLINK */
	0x6604, /* EXT4_IOC_SETVERSION */
	0x6609, /* EXT4_IOC_MIGRATE */
	0x7211, /* FAT_IOCTL_SET_ATTRIBUTES */
};

bool filter_waits_ioctl(uint32_t command)
{
	for (size_t i = 0; i < ARRAY_LEN(attribute_ioctls); i++)
		if (attribute_ioctls[i] == command)
			return true;
	return false;
}

/*
 * Landlock asks about an ioctl on a device that was opened inside, but for a few that it never
 * refuses (security/landlock/fs.c, is_masked_device_ioctl). Terminals' are frequent (isatty), and
 * sockets' are no device's.
 */
static void ioctl_body(struct program *p)
{
	static const uint32_t never_refused[] = {FIOCLEX,  FIONCLEX, FIONBIO,	   FIOASYNC,
						 FIOQSIZE, FICLONE,  FS_IOC_FIEMAP};

	/* The kernel cuts cmd to 32 bits: so must the comparison. */
	load(p, OFF_LOW(1));
	if (!p->options->native) {
		ret_if(p, BPF_JEQ, TIOCSTI, RET_ERRNO(EPERM));
		ret_if(p, BPF_JEQ, TIOCLINUX, RET_ERRNO(EPERM));
	}
	ret_if_any(p, never_refused, ARRAY_LEN(never_refused), RET_ALLOW);
	ret_if_any(p, attribute_ioctls, ARRAY_LEN(attribute_ioctls), door(p));
	if (!p->options->native)
		ret_if_any(p, lasting_ioctls, ARRAY_LEN(lasting_ioctls), RET_ERRNO(EOPNOTSUPP));
	emit(p, BPF_ALU | BPF_AND | BPF_K, 0, 0, ~0xffu);
	ret_if(p, BPF_JEQ, SIOCGIFNAME & ~0xffu, RET_ALLOW);
	if (!p->options->terminals)
		ret_if(p, BPF_JEQ, TCGETS & ~0xffu, RET_ALLOW);
	load(p, OFF_LOW(1));
	emit(p, BPF_ALU | BPF_AND | BPF_K, 0, 0, 0xffff);
	if (!p->options->native)
		ret_if_any(p, unseen_ioctls, ARRAY_LEN(unseen_ioctls), RET_ERRNO(ENOTTY));
	ret(p, RET_TRACE);
}

/* The parts of a socketcall that are watched. */
static void parts_body(struct program *p, uint32_t action)
{
	load(p, OFF_LOW(0));
	for (unsigned i = 0; i < SYSENT_PARTS; i++)
		if (watched(&sysents[sysent_parts[i].id]))
			ret_if(p, BPF_JEQ, sysent_parts[i].number, action);
	ret(p, RET_ALLOW);
}

/* net/unix/af_unix.c makes a datagram socket of SOCK_RAW, too. */
static void datagram_body(struct program *p, uint32_t action)
{
	load(p, OFF_LOW(0));
	size_t family = skip_unless(p, BPF_JEQ, AF_UNIX);
	load(p, OFF_LOW(1));
	emit(p, BPF_ALU | BPF_AND | BPF_K, 0, 0, 0xf);
	ret_if(p, BPF_JEQ, SOCK_DGRAM, action);
	ret_if(p, BPF_JEQ, SOCK_RAW, action);
	land(p, family);
	ret(p, SECCOMP_RET_ALLOW);
}

/* A table of descriptors that another process will have, too. */
static void shared_table_body(struct program *p, uint32_t action)
{
	load(p, OFF_LOW(0));
	size_t shared = skip_unless(p, BPF_JSET, CLONE_FILES);
	emit(p, BPF_JMP | BPF_JSET | BPF_K, 1, 0, CLONE_THREAD);
	ret(p, action);
	land(p, shared);
	ret(p, SECCOMP_RET_ALLOW);
}

bool filter_changes_identity(const struct sysent *ent)
{
	static const uint8_t ids[] = {
		SYS_ID_setuid,	   SYS_ID_setgid,      SYS_ID_setreuid,	   SYS_ID_setregid,
		SYS_ID_setresuid,  SYS_ID_setresgid,   SYS_ID_setfsuid,	   SYS_ID_setfsgid,
		SYS_ID_setgroups,  SYS_ID_setuid32,    SYS_ID_setgid32,	   SYS_ID_setreuid32,
		SYS_ID_setregid32, SYS_ID_setresuid32, SYS_ID_setresgid32, SYS_ID_setfsuid32,
		SYS_ID_setfsgid32, SYS_ID_setgroups32, SYS_ID_capset,	   SYS_ID_unshare,
		SYS_ID_setns,
	};

	return memchr(ids, (int)sysent_id(ent), sizeof(ids)) != NULL;
}

/*
 * A holds flags. A namespace, but not in a user namespace made with it, asks for what root has lost
 * behind the wall: a refusal is to be told.
 */
static void namespaces_body(struct program *p)
{
	size_t none = skip_unless(p, BPF_JSET, FILTER_NAMESPACES);
	emit(p, BPF_JMP | BPF_JSET | BPF_K, 1, 0, CLONE_NEWUSER);
	ret(p, RET_TRACE);
	land(p, none);
}

static void identity_body(struct program *p, enum sys_id id)
{
	if (id == SYS_ID_unshare) {
		load(p, OFF_LOW(0));
		if (p->options->identities)
			ret_if(p, BPF_JSET, CLONE_NEWUSER, RET_TRACE);
		if (!p->options->native)
			namespaces_body(p);
	} else if (p->options->identities || (id == SYS_ID_setns && !p->options->native)) {
		ret(p, RET_TRACE);
		return;
	}
	ret(p, RET_ALLOW);
}

static void guard_body(struct program *p, enum sys_id id, bool wide)
{
	/* A guard is the exception; every id that is not named here stops. */
	if (filter_changes_identity(&sysents[id])) {
		identity_body(p, id);
		return;
	}
	if (id == SYS_ID_clone3) {
		ret(p, p->options->native ? RET_TRACE : RET_ERRNO(ENOSYS));
		return;
	}
	if (id == SYS_ID_clone) {
		load(p, OFF_LOW(0));
		ret_if(p, BPF_JSET, CLONE_UNTRACED, RET_TRACE);
		if (!p->options->native)
			namespaces_body(p);
		shared_table_body(p, p->options->native ? RET_ALLOW : RET_TRACE);
		return;
	}
	if (id == SYS_ID_socket || id == SYS_ID_socketpair) {
		datagram_body(p, p->options->native ? RET_ALLOW : RET_TRACE);
		return;
	}
	/* As the kernel itself has it by default (mm/userfaultfd.c). */
	if (id == SYS_ID_userfaultfd) {
		load(p, OFF_LOW(0));
		ret_if(p, BPF_JSET, FAULTS_OF_USER_CODE, RET_ALLOW);
		ret(p, p->options->native ? RET_ALLOW : RET_ERRNO(EPERM));
		return;
	}
	if (id == SYS_ID_pidfd_getfd) {
		ret(p, p->options->native ? RET_ALLOW : RET_ERRNO(EPERM));
		return;
	}
	if (id == SYS_ID_socketcall) {
		parts_body(p, RET_TRACE);
		return;
	}
	if (id == SYS_ID_landlock_restrict_self && wide && p->options->enter) {
		load(p, OFF_LOW(FILTER_MARK_ARG));
		ret_if(p, BPF_JEQ, p->options->enter, RET_ALLOW);
	}
	if (id == SYS_ID_prctl) {
		load(p, OFF_LOW(0));
		ret_if(p, BPF_JEQ, PR_SET_SECCOMP, RET_TRACE);
		/* In a user namespace of its own a process could have another's /proc/PID/exe. */
		ret_if(p, BPF_JEQ, PR_SET_MM, RET_ERRNO(EPERM));
		if (p->options->readable) {
			size_t other = skip_unless(p, BPF_JEQ, PR_SET_DUMPABLE);
			load(p, OFF_LOW(1));
			ret_if(p, BPF_JEQ, 0, RET_ERRNO(0));
			land(p, other);
		}
		ret(p, RET_ALLOW);
		return;
	}
	if (id == SYS_ID_prlimit64) {
		/* Its own limits, or nobody's new ones. */
		load(p, OFF_LOW(0));
		ret_if(p, BPF_JEQ, 0, RET_ALLOW);
		load(p, OFF_LOW(2));
		size_t none = skip_unless(p, BPF_JEQ, 0);
		if (wide) {
			load(p, OFF_HIGH(2));
			size_t low = skip_unless(p, BPF_JEQ, 0);
			ret(p, RET_ALLOW);
			land(p, low);
		} else {
			ret(p, RET_ALLOW);
		}
		land(p, none);
	}
	ret(p, RET_TRACE);
}

/* A send without an address goes where the socket is connected to: that was looked at then. */
static void sendto_body(struct program *p, bool wide)
{
	load(p, OFF_LOW(4));
	size_t low = skip_unless(p, BPF_JEQ, 0);
	if (wide) {
		load(p, OFF_HIGH(4));
		size_t high = skip_unless(p, BPF_JEQ, 0);
		ret(p, RET_ALLOW);
		land(p, high);
	} else {
		ret(p, RET_ALLOW);
	}
	land(p, low);
	ret(p, door(p));
}

/* Its address is in memory: it waits where it may be one that leads to a path. */
static void message_body(struct program *p)
{
	if (p->options->messages || p->options->native) {
		ret(p, p->options->native ? RET_ALLOW : RET_DOOR);
		return;
	}
	load(p, OFF_LOW(FILTER_MARK_ARG));
	ret_if(p, BPF_JEQ, p->options->grant, RET_DOOR);
	ret(p, RET_ALLOW);
}

static void door_body(struct program *p, enum sys_id id, bool wide)
{
	if (id == SYS_ID_sendto)
		sendto_body(p, wide);
	else
		ret(p, door(p));
}

static void body(struct program *p, const struct sysent *ent, bool wide)
{
	if (sysent_id(ent) == SYS_ID_ioctl)
		ioctl_body(p);
	else if (ent->group == SYS_GROUP_WALL)
		wall_body(p, ent, wide);
	else if (ent->group == SYS_GROUP_GUARD)
		guard_body(p, sysent_id(ent), wide);
	else if (filter_is_message(ent))
		message_body(p);
	else if (filter_waits(ent))
		door_body(p, sysent_id(ent), wide);
	else
		ret(p, RET_TRACE);
}

/* The watched rows that `arch` has, by number. */
static size_t collect(enum sys_arch arch, struct numbered *list)
{
	size_t n = 0;

	for (const struct sysent *ent = sysents; ent < sysents + SYS_ID_COUNT; ent++) {
		size_t at = n;
		if (!watched(ent) || ent->nr[arch] < 0)
			continue;
		for (; at > 0 && list[at - 1].nr > ent->nr[arch]; at--)
			list[at] = list[at - 1];
		list[at] = (struct numbered){ent->nr[arch], ent};
		n++;
	}
	return n;
}

/* A holds the number. Ends in a return on every way. */
static void search(struct program *p, const struct numbered *list, size_t n, bool wide)
{
	if (n > 3) {
		size_t left = skip_unless(p, BPF_JGE, (uint32_t)list[n / 2].nr);
		search(p, list + n / 2, n - n / 2, wide);
		land(p, left);
		search(p, list, n / 2, wide);
		return;
	}
	for (size_t i = 0; i < n; i++) {
		size_t other = skip_unless(p, BPF_JEQ, (uint32_t)list[i].nr);
		body(p, list[i].ent, wide);
		land(p, other);
	}
	ret(p, RET_ALLOW);
}

/* What stops because of datagram sockets; in the further filter, where all else passes. */
static void further_body(struct program *p, enum sys_id id)
{
	const uint32_t stop = SECCOMP_RET_TRACE | FILTER_MESSAGE_DATA;

	if (id == SYS_ID_clone)
		shared_table_body(p, stop);
	else if (id == SYS_ID_socket || id == SYS_ID_socketpair)
		datagram_body(p, stop);
	else if (id == SYS_ID_socketcall)
		parts_body(p, stop);
	else
		ret(p, stop);
}

int filter_build_messages(struct sock_filter *out, size_t cap, size_t *ret_len)
{
	static const enum sys_id ids[] = {SYS_ID_sendmsg, SYS_ID_sendmmsg,   SYS_ID_socket,
					  SYS_ID_clone,	  SYS_ID_socketpair, SYS_ID_socketcall};
	struct program p = {.out = out, .cap = cap};

	for (unsigned i = 0; i < ARRAY_LEN(arches); i++) {
		load(&p, offsetof(struct seccomp_data, arch));
		size_t other = skip_unless(&p, BPF_JEQ, arches[i].audit);
		load(&p, offsetof(struct seccomp_data, nr));
		for (unsigned k = 0; k < ARRAY_LEN(ids); k++) {
			int nr = sysents[ids[k]].nr[arches[i].arch];
			if (nr < 0)
				continue;
			size_t another = skip_unless(&p, BPF_JEQ, (uint32_t)nr);
			further_body(&p, ids[k]);
			land(&p, another);
		}
		ret(&p, RET_ALLOW);
		land(&p, other);
	}
	ret(&p, RET_ALLOW);
	return finish(&p, ret_len);
}

int filter_build(const struct filter_options *options, struct sock_filter *out, size_t cap,
		 size_t *ret_len)
{
	struct program p = {.out = out, .cap = cap, .options = options};
	struct numbered list[SYS_ID_COUNT];

	for (unsigned i = 0; i < ARRAY_LEN(arches); i++) {
		load(&p, offsetof(struct seccomp_data, arch));
		size_t other = skip_unless(&p, BPF_JEQ, arches[i].audit);
		load(&p, offsetof(struct seccomp_data, nr));
		if (arches[i].has_x32)
			ret_if(&p, BPF_JGE, X32_BIT, RET_ERRNO(ENOSYS));
		if (arches[i].wide && options->pass)
			ret_if(&p, BPF_JGE, STUB_NEAREST, RET_TRACE);
		search(&p, list, collect(arches[i].arch, list), arches[i].wide);
		land(&p, other);
	}
	ret(&p, RET_ERRNO(ENOSYS));
	return finish(&p, ret_len);
}
