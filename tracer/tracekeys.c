#include "tracer/tracekeys.h"

#include "tracer/trace.h"

#define CALLS	 (1u << TRACE_CALL)
#define FORKS	 (1u << TRACE_FORK)
#define EXECS	 (1u << TRACE_EXEC)
#define EXITS	 (1u << TRACE_EXIT)
#define ANSWERS	 (1u << TRACE_ANSWER)
#define ENDS	 (1u << TRACE_END)
#define THREADS	 (CALLS | FORKS | EXECS)
#define SOMEBODY (THREADS | EXITS | ANSWERS)
#define ALL	 (SOMEBODY | ENDS)

#define OF_PATH_event false
#define OF_PATH_path  true

const struct tracekeys_row tracekeys_rows[TRACEKEYS_COUNT] = {
#define KEY(NAME, text, KIND, owner, member, EVENTS, help_text)                                    \
	[TRACEKEYS_##NAME##_KEY] = {.name = (text),                                                \
				    .len = sizeof(text) - 1,                                       \
				    .kind = TRACEKEYS_##KIND,                                      \
				    .of_path = OF_PATH_##owner,                                    \
				    .offset = offsetof(struct trace_##owner, member),              \
				    .events = (EVENTS),                                            \
				    .help = (help_text)},
#include "tracer/tracekeys.def"
#undef KEY
};
