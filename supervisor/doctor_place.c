/*
 * Where we keep things, and the terminal.
 */
#include "supervisor/doctor_probes.h"

#include "supervisor/environ.h"
#include "supervisor/store.h"
#include "tracer/buf.h"
#include "tracer/clock.h"
#include "tracer/util.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

/* A question needs a terminal in between: only the supervisor may hold the real one. */
void doctor_probe_terminal(struct doctor *d, const char *probe)
{
	int master AUTOCLOSE = posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC);
	int real AUTOCLOSE = open("/dev/tty", O_RDWR | O_NOCTTY | O_CLOEXEC);
	if (master < 0 || grantpt(master) || unlockpt(master)) {
		doctor_fix(d,
			   doctor_find(d, probe, DOCTOR_MISSING,
				       "no pseudo-terminal can be made (%s)", strerror(errno)),
			   "mount devpts at /dev/pts; until then nobody is asked on a terminal "
			   "(--answers, --ask socket)");
		return;
	}
	doctor_find(d, probe, DOCTOR_OK, "%s",
		    real >= 0 ? "questions can be asked here"
			      : "this is no terminal: here warder run refuses without asking "
				"(--ask socket asks elsewhere)");
}

static int try_directory(const char *dir, char *what, size_t n)
{
	char made[PATH_MAX];
	struct stat st;
	if (snprintf(made, sizeof made, "%s/warder-doctor-XXXXXX", dir) >= (int)sizeof made)
		return -ENAMETOOLONG;
	if (!mkdtemp(made))
		return -errno;
	int err = stat(made, &st) ? -errno : 0;
	if (rmdir(made) && !err)
		err = -errno;
	if (!err && (st.st_mode & 077))
		snprintf(what, n, ", but what is made there is open to others (mode %03o)",
			 (unsigned)st.st_mode & 0777);
	return err;
}

void doctor_probe_tmpdir(struct doctor *d, const char *probe)
{
	const char *set = environ_get(d->env, "TMPDIR");
	const char *dir = set && *set ? set : "/tmp";
	char more[128] = "";
	int64_t begin = clock_us();
	int err = try_directory(dir, more, sizeof more);
	if (!err) {
		doctor_find(d, probe, *more ? DOCTOR_DEGRADED : DOCTOR_OK,
			    "%s: each run can have a private directory there%s", dir, more)
			->took_us = clock_us() - begin;
		return;
	}
	doctor_fix(d,
		   doctor_find(d, probe, DOCTOR_MISSING, "%s: no directory can be made there (%s)",
			       dir, strerror(-err)),
		   "set TMPDIR to a directory that you can write to");
}

/* Not only by its mode: a file is written there, whole, as on a disk that is not full. */
static int try_file(const char *dir)
{
	char made[PATH_MAX], block[4096] = {0};
	if (snprintf(made, sizeof made, "%s/.warder-doctor-XXXXXX", dir) >= (int)sizeof made)
		return -ENAMETOOLONG;
	int fd AUTOCLOSE = mkostemp(made, O_CLOEXEC);
	if (fd < 0)
		return -errno;
	int err = buf_write_to(fd, block, sizeof block);
	if (!err && fsync(fd))
		err = -errno;
	if (unlink(made) && !err)
		err = -errno;
	return err;
}

/* `lost` is what is found where nothing can be kept there. */
static void judge_directory(struct doctor *d, const char *probe, const char *what, const char *dir,
			    enum doctor_status lost)
{
	bool is_state = lost == DOCTOR_MISSING;
	const char *variable = is_state ? "XDG_STATE_HOME" : "XDG_CONFIG_HOME";
	struct stat st;
	int err = store_make_path(dir);
	if (!err && stat(dir, &st))
		err = -errno;
	if (err) {
		doctor_fix(d, doctor_find(d, probe, lost, "%s: %s: %s", what, dir, strerror(-err)),
			   "it can't be made: set %s to a place that you can write to", variable);
		return;
	}
	if ((st.st_mode & 077) || st.st_uid != geteuid()) {
		doctor_fix(d,
			   doctor_find(d, probe, DOCTOR_DEGRADED,
				       "%s: %s has mode %03o and belongs to user %u", what, dir,
				       (unsigned)st.st_mode & 0777, (unsigned)st.st_uid),
			   "chmod 700 %s", dir);
		return;
	}
	err = try_file(dir);
	if (err) {
		doctor_fix(d,
			   doctor_find(d, probe, lost, "%s: %s: nothing can be written there (%s)",
				       what, dir, strerror(-err)),
			   is_state ? "make it writable and give it room, or set XDG_STATE_HOME to "
				      "another place: "
				      "nothing is run that no audit can be kept of"
				    : "answers are not saved until it is writable, or "
				      "XDG_CONFIG_HOME names another place");
		return;
	}
	doctor_find(d, probe, DOCTOR_OK, "%s: %s", what, dir);
}

void doctor_probe_state(struct doctor *d, const char *probe)
{
	struct store store = {0};
	struct policy_error error = {0};
	int err = store_open(d->env, &store, &error);
	if (err) {
		doctor_fix(d, doctor_find(d, probe, DOCTOR_MISSING, "%s", error.text),
			   "policies and the audit need directories of your own: set HOME, or "
			   "XDG_CONFIG_HOME and XDG_STATE_HOME");
		return;
	}
	judge_directory(d, probe, "policies", store.config_dir, DOCTOR_DEGRADED);
	judge_directory(d, probe, "audit and reports", store.state_dir, DOCTOR_MISSING);
	store_release(&store);
}
