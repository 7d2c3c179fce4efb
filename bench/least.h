/*
 * least: a program behind Landlock whose attribute calls are told to a supervisor that decides
 * nothing: each may run on, at once (SECCOMP_USER_NOTIF_FLAG_CONTINUE). It is what any supervisor
 * pays who is asked about them, as Landlock has no right for attributes; and it keeps nobody from
 * anything: what it is told of can be another file by the time that the call runs.
 */
#pragma once

/*
 * Of the calling process, which is the supervisor from now on, and its child the program;
 * `confine(arg)` is called in the child (0 or -errno). The program's exit status, or -errno. Blocks
 * until it and all of its descendants have ended.
 */
int least_run(int (*confine)(void *arg), void *arg, char **program);
