#!/usr/bin/env python3
"""
What tracers and sandboxes got wrong before us, and what holds it here: the names of tests and of
rows (shapes.def, run_calls.c), or "-" and why it can't occur. Every name has to be there.
"""

import os
import pathlib
import re
import unittest

TESTS = pathlib.Path(os.environ.get("SOURCE_DIR", pathlib.Path(__file__).parents[2])) / "tests"

TRAPS = """
Threads, fork, exec
exec by a thread that is not the first: its state moves     : thread_exec test_thread_runs exec_while_held
who execs waits for its siblings, we wait for nobody        : test_threads_vanish_in_an_exec_at_every_moment
a child's first stop before or after its creator's word     : storm freed_in_a_storm
a number that is used again                                 : test_numbers_that_are_used_again a_number_that_is_used_again_is_another_thread
vfork: the parent sleeps, the memory is shared              : vfork clone_vm
clone3, CLONE_PARENT, CLONE_PIDFD                           : clone3 clone_parent pidfd
CLONE_UNTRACED                                              : clone_untraced
the first thread ends first                                 : leader_gone leader_exit
exit events hide exits                                      : - not asked for (tracer/spawn.c, SEIZE_OPTIONS)
what belongs to an address space is kept by pid             : clone_vm test_dynamic fork vfork
an exit stop after the exec event                           : vfork - it is resumed by CONT (tracer/act.c, on_execed)
the handshake before the first exec                         : handshake_is_disturbed
Stops and signals
a group stop is left as it is, and heard to end             : stops_and_goes_on test_stopped_while_held
a signal that is not passed on                              : test_they_are_forwarded granted_under_signals
SIGKILL out of any stop                                     : test_killed_at_every_moment killed_while_held
SIGCONT and SIGSTOP in between                              : granted_across_a_stop test_continued_while_held
restart codes, two exit stops in a row                      : test_calls_that_restart_do fifo
the seccomp stop before the entry stop                      : - before Linux 4.8 only; Landlock is younger
a signal between seccomp and exit stop                      : timer fifo
one busy thread starves the others                          : busy_peer test_a_busy_process_starves_nobody
children of the host's own                                  : foreign_children
the supervisor dies, and its tree with it                   : test_sigkill_of_warder_ends_the_whole_tree supervisor_is_killed
GETEVENTMSG and GETSIGINFO fail                             : - the first is checked, the second not used
signals meant for the command                               : test_they_are_forwarded test_ignored_stays_ignored
Jobs and lifetime
the foreground group                                        : test_job_control test_pipelines
a pipe's end that the tracer holds                          : test_a_reader_that_goes_away
daemons                                                     : daemon test_leftovers_are_ended_and_named
orphans come to the subreaper                               : daemon
orphaned stopped groups                                     : test_an_orphaned_stopped_group_is_told test_a_stopped_group_with_a_link_stays_stopped
detaching from a tree under a filter                        : - never done: the tree ends with us
Privileges and nesting
setuid and file capabilities                                : test_setuid test_su_says_so_itself
programs that trace                                         : test_traces test_case_H2_strace_says_why_itself
a tracee looks into the supervisor                          : test_nothing_of_it_is_read_written_or_signalled
Yama 2 and 3, no ptrace: nothing is run                     : spawn_fails test_already_traced_runs_nothing
no Landlock: nothing is run                                 : test_a_kernel_without_landlock_runs_nothing
one listener a process                                      : filter_notify test_another_supervisor_has_the_listener
filters of the program's own                                : filter_allow filter_args filter_errno filter_trap filter_trace filter_strict
mounts are refused                                          : test_the_whole_family test_bubblewrap
another root, another mount namespace                       : test_another_root_is_no_matter_of_landlock test_a_mount_space_of_its_own test_roots
i386, x32, vsyscall                                         : i386 int80 x32 vsyscall test_bind_by_socketcall
Paths
read at the stop, and changed by another thread             : test_a_text_that_changes_meanwhile test_a_path_that_changes_in_memory test_what_is_not_granted_is_never_opened
strings at a page's end, unreadable, too long               : strings_up_to_the_last_readable_byte test_what_the_kernel_can_read test_what_it_can_not_read test_the_longest_path
names that are no text                                      : test_held_granted_and_reported_to_the_byte test_odd_names test_a_name_is_shown_as_it_is
AT_FDCWD with anything above its 32 bits; whose descriptors : dirfd_is_the_low_half test_descriptors_with_anything_above_them test_a_thread_with_descriptors_of_its_own
empty paths, slashes, dots, a cwd that is gone, bind mounts : test_an_empty_path_with_a_base test_slashes_behind_it test_a_directory_that_is_gone test_what_is_refused_is_refused_by_its_other_name test_things_that_only_another_space_has
links, judged by what they lead to                          : test_links_both_ways test_refused_by_its_target test_how_many_links
/proc/self, /dev/fd and the like are the tracee's           : self_is_the_tracee test_descriptors_lead_to_what_they_are_of test_by_number test_pipes_memory_and_sockets
openat2 has errors of its own                               : scopes_as_openat2 openat2_beneath openat2_in_root openat2_no_xdev
what is not there comes first                               : test_existence_comes_first test_what_fails_anyway_asks_nothing
a refused creation that leaves its file                     : test_a_refused_creation_is_made_once
O_TRUNC, creat and ftruncate need truncate                  : open_rdonly_trunc test_a_right_that_its_own_sandbox_took a_descriptor_without_truncate
EXDEV that is Landlock's; EACCES before it; two names       : test_from_outside_is_asked_whole_and_done test_what_is_asked_of_two_paths test_agrees_with_the_kernel rename_exchange
O_TMPFILE, and a name for it                                : open_tmpfile open_unnamed open_unnamed_named
ioctls of devices, those of old descriptors                 : test_refused_and_reported test_an_inherited_device_has_all_its_rights test_harmless_devices_answer_as_they_do
exec: the file, its interpreter, its loader, noexec         : test_the_file test_the_interpreter test_the_loader test_a_loader_that_is_missing_is_no_denial test_noexec test_a_shared_object
exec: a walk along PATH; by descriptor; the loader by hand  : test_one_denial_where_it_finds_nothing test_by_descriptor test_a_memfd_is_no_path test_the_loader_run_by_hand_reads_alone
sockets by path, abstract ones, signals                     : bind test_refused_outside test_abstract_sockets_of_others test_nothing_of_it_is_read_written_or_signalled
TCP and UDP                                                 : - the network is not defended: no such right is handled
Who refused it
modes, sticky bits, attributes, protected links, mounts     : test_the_table test_protected_hardlinks test_protected_in_sticky_directories test_read_only test_nodev
a real crossing of filesystems                              : test_cross_device test_another_file_system
root's privileges change the answer                         : both_users test_no_device_is_made_in_the_project test_no_kernel_programs_no_tracing_of_processors
io_uring                                                    : uring test_it_falls_back_and_is_told
handles                                                     : by_handle test_no_attack_gets_through
fanotify of what others open, swap files                    : - CAP_SYS_ADMIN is dropped (supervisor/confine.c)
root's accounting file (acct)                               : - the kernel opens it as its caller's, so the wall holds; a refusal is not told
core files that the kernel writes                           : test_a_crash_is_the_commands_and_leaves_no_core_of_ours
what is preloaded is missing in static and setuid programs  : static static_pie test_case_F2_go test_setuid - nothing is preloaded
"""

# Where a test or a row gets its name.
NAMED = re.compile(r"^\s*def (\w+)\(|^Test\(\w+, (\w+)|\bSHAPE\((\w+), (\w+),|\bCALL\((\w+),|^static \w+ (\w+)\(", re.M)


def traps():
    for line in TRAPS.strip().splitlines():
        if " : " in line:
            trap, held = line.split(" : ")
            names, _, why = held.partition("- ")
            yield trap.strip(), names.split(), why


def named():
    there = set()
    for path in TESTS.rglob("*"):
        if path.suffix in (".py", ".c", ".h", ".def"):
            there |= {name for found in NAMED.findall(path.read_text(encoding="utf-8", errors="replace"))
                      for name in found}
    return there


class Traps(unittest.TestCase):
    def test_each_is_held_by_something(self):
        self.assertGreater(len(list(traps())), 58)
        for trap, names, why in traps():
            self.assertTrue(names or why, trap)

    def test_what_holds_it_is_there(self):
        there = named()
        self.assertEqual([], [f"{trap}: {name}" for trap, names, _ in traps() for name in names if name not in there])


if __name__ == "__main__":
    unittest.main()
