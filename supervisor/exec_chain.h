/*
 * exec_chain: which further files the kernel opens to run a program: a script's interpreter, an ELF
 * file's loader (fs/binfmt_script.c, fs/binfmt_elf.c). The sandbox may refuse any of them.
 */
#pragma once

#include <stddef.h>

/* An interpreter may be a script again; the kernel gives up after 5 (fs/exec.c, exec_binprm). */
#define EXEC_CHAIN_MAX 6

/*
 * The path the kernel opens next for the program behind an O_PATH descriptor. 0 and the text,
 * NUL-terminated; -ENOENT: nothing further; -errno where the program can't be read.
 */
int exec_chain_next(int object, char *ret, size_t cap);
