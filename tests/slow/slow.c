/*
 * Linked with the program's own main(), makes it a warder whose default is `--fast off`: for the
 * tests that pass with and without the fast path (./dev test --slow). A --fast among its options
 * wins.
 */
#include "supervisor/cli.h"

/* The linker's names (--wrap): cli.c's function, and who is called in its place. */
void __real_cli_options_init(struct cli_options *o);
void __wrap_cli_options_init(struct cli_options *o);

void __wrap_cli_options_init(struct cli_options *o)
{
	__real_cli_options_init(o);
	o->slow = true;
}
