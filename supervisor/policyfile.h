/*
 * policyfile: policy text <-> rules. The grammar is supervisor/policyscan.h's.
 *
 *   allow|deny|ask|forbid [ACCESS] PATH [exact]     # comment
 *   use PRESET...
 *
 * In presets only: `sensitive [ACCESS] PATH` marks a path or glob as sensitive.
 * No access means all of them. Paths may start with ~/, $VAR or ${VAR} (from `struct policy_vars`,
 * never the process's environment; inside "..." too), a bare relative path or "." is relative to
 * the project; "..." and \ quote; * ? and ** make a glob (supervisor/glob.h). A preset's rule whose
 * variable is not set, or that needs a project where there is none, is left out; in any other text
 * that is an error.
 */
#pragma once

#include "supervisor/pathwalk.h"
#include "supervisor/policy.h"

struct policy_vars {
	const char *home;    /* absolute */
	const char *project; /* absolute; NULL: relative paths are an error that says so */
	const char *tmpdir;  /* the private TMPDIR, $TMPDIR; NULL: rules naming it are left out */
	/* further variables, NULL-terminated NAME=VALUE list (the environment); may be NULL */
	char *const *env;
	bool as_written; /* paths are the ones meant: no file is looked at, no symlink followed */
	/* A loan, for several texts that are read at one moment; NULL: each has its own. */
	struct pathwalk *walk;
};

#define POLICYFILE_SIZE_MAX  (1u << 20)
#define POLICYFILE_RULES_MAX 100000 /* `use` after `use` makes many of a short text */
#define POLICYFILE_LINE_MAX  32768  /* a path of 4095 bytes, each written \xNN, and a comment */

/* "FILE:LINE:COL: what was expected", for the user as it is (names escaped). */
struct policy_error {
	char text[512];
};
/* Fill it; err. */
int policyfile_fail(struct policy_error *ret_error, int err, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));
/* Append a path without its "." components, doubled and last slashes; nothing is "/". No I/O. */
void policyfile_add_plain(struct buf *out, const char *path);

/*
 * Add the rules of a text. All or nothing: on an error no rule was added.
 * Rule paths are resolved through symlinks here (the longest existing part), so this does I/O.
 * 0; -EINVAL with *ret_error; -ENOMEM. `use` lines add the presets' rules (source RULE_PRESET).
 */
int policyfile_parse(struct policy *p, const char *name, const char *text, size_t n,
		     enum rule_source source, const struct policy_vars *vars,
		     struct policy_error *ret_error);
/* To FILE:LINE:COL of a saved file: what mends it. Nothing to other errors, and other sources. */
void policyfile_add_remedy(const char *file, enum rule_source source, struct policy_error *e);
/* The same from a file. -ENOENT and other errnos of open/read too, with *ret_error filled. */
int policyfile_load(struct policy *p, const char *file, enum rule_source source,
		    const struct policy_vars *vars, struct policy_error *ret_error);
/* One rule line, as --rule gives it; columns count in the line. */
int policyfile_parse_line(struct policy *p, const char *line, enum rule_source source,
			  const struct policy_vars *vars, struct policy_error *ret_error);
/* The syntax and the names of presets, without variables and files. 0, -EINVAL with *ret_error,
 * -ENOMEM. */
int policyfile_check(const char *name, const char *text, size_t n, struct policy_error *ret_error);
/* Every fault of a text: one line each, the first POLICYFILE_FAULTS_MAX of `len`. */
struct policy_faults {
	struct buf lines; /* owned */
	size_t len;
};
#define POLICYFILE_FAULTS_MAX 20
/*
 * For who corrects a text: the rules of all lines that read well are added, and each other line is
 * a fault. p may be NULL, and then vars: the syntax alone, as policyfile_check(). 0, whatever was
 * found; else -errno with *ret_error: something else was in the way. Release in any case.
 */
int policyfile_faults(struct policy *p, const char *name, const char *text, size_t n,
		      enum rule_source source, const struct policy_vars *vars,
		      struct policy_faults *ret, struct policy_error *ret_error);
void policyfile_faults_release(struct policy_faults *f);
/* "and 7 more errors", with its newline, where there are more; else nothing. */
void policyfile_faults_add_more(const struct policy_faults *f, struct buf *out);
/*
 * Where a policy's text lies, and so what it may be. But for the first reading never blocks.
 */
enum policyfile_place {
	POLICYFILE_NAMED, /* the user named it: anything that can be read; a pipe is waited for */
	POLICYFILE_SAVED, /* where policies are saved, only read: a symlink may lead to where the
			     user keeps his; a regular file of his, or of root's, that
			     nobody else may write to (as ssh wants its own) */
	POLICYFILE_OURS,  /* one that we write, too (tracer/ownfile.h); likewise */
	POLICYFILE_DRAFT, /* that, but an editor may make it anew: whatever its mode is */
	POLICYFILE_PROPOSED, /* a project's, whoever's: a regular file, no symlink */
};
/* Of a file that rules of this source are from. */
enum policyfile_place policyfile_place(enum rule_source source);
/*
 * Read a whole file of at most POLICYFILE_SIZE_MAX bytes. The caller frees *ret always. 0 or -errno
 * with *ret_error.
 */
int policyfile_read(const char *file, enum policyfile_place place, struct buf *ret,
		    struct policy_error *ret_error);
/* The same from a descriptor, to its end; it stays the caller's. */
int policyfile_read_fd(int fd, const char *name, struct buf *ret, struct policy_error *ret_error);
/*
 * realpath of the longest existing prefix + the rest; a dangling symlink leads to where it points.
 * Owned string in *ret; 0 or -errno; -EOPNOTSUPP for /proc/self, which is another thing to
 * everybody.
 */
int policyfile_canonical(const char *absolute, char **ret);
/* The same, and the symlinks on the way as struct rule has them: owned, NULL where there are none.
 */
int policyfile_canonical_links(const char *absolute, char **ret, char **ret_links,
			       size_t *ret_links_len);
