/* process: what a server does to its own process: limits, signals, its two outputs.
 *
 * Called by the main thread, before any other thread is made where that matters. */
#ifndef LHBOX_SERVER_PROCESS_H
#define LHBOX_SERVER_PROCESS_H

#include "base/error.h"

/* No core files, no tracing by others, files of the owner alone, all the descriptors there may be.
 */
void process_harden(void);
/* SIGTERM and SIGINT wait for process_signalled in this thread and those made after it. */
void process_hold_signals(void);
/* Waits up to so long for a stop signal; true when one came. */
bool process_signalled(i64 timeout_us);

/* This thread, and those that it makes, run with less weight than the process's others (nice 15).
 */
void process_step_back(void);

/* Leaves at once, whatever other threads do: being killed is a supported way to stop. */
_Noreturn void process_leave(int code);

void process_say(str text);                       /* to stdout, whole */
void process_complain(const struct error *error); /* to stderr: the message and the hint */

#endif
