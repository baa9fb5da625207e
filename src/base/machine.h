/* machine: the edges of a state machine as a table, checked wherever one is taken.
 *
 * The machine itself is an enum of its states, one step function that does a state's work and
 * answers the next state, and a loop around it; a table of allowed edges stands beside its picture.
 * A step that takes an edge that is not in the table is the programmer's error. */
#ifndef LHBOX_BASE_MACHINE_H
#define LHBOX_BASE_MACHINE_H

#include "base/num.h"

enum { MACHINE_STATES_MAX = 32 };

struct machine {
    const char *name;
    const char *const *states; /* their names */
    const u32 *edges;          /* per state: the MACHINE_TO of all that may follow, or-ed */
    u32 count;                 /* of states */
};
#define MACHINE_TO(state) ((u32)1 << (state))

/* Asserts that the edge is in the table. Answers `to`. */
u32 machine_take(const struct machine *machine, u32 from, u32 to);

/* For tests, before there are threads: called with every edge that is taken; NULL: nobody. */
typedef void (*machine_watcher)(const struct machine *machine, u32 from, u32 to);
void machine_watch(machine_watcher watcher);

#endif
