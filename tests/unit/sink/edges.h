/* edges: which edges of the state machines the tests of one program have taken. */
#ifndef LHBOX_TESTS_EDGES_H
#define LHBOX_TESTS_EDGES_H

#include "base/machine.h"

#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

enum { EDGES_MACHINES_MAX = 8 };

struct edges {
    _Atomic(const struct machine *) machine;
    _Atomic u32 taken[MACHINE_STATES_MAX]; /* per state */
};
static struct edges edges_seen[EDGES_MACHINES_MAX];

/* On any thread. */
static inline void edges_note(const struct machine *machine, u32 from, u32 to)
{
    for (size_t i = 0; i < EDGES_MACHINES_MAX; i++) {
        const struct machine *none = NULL;
        if (atomic_load(&edges_seen[i].machine) == machine ||
            atomic_compare_exchange_strong(&edges_seen[i].machine, &none, machine) ||
            none == machine) {
            atomic_fetch_or(&edges_seen[i].taken[from], MACHINE_TO(to));
            return;
        }
    }
}

static inline const struct edges *edges_of(const char *name)
{
    for (size_t i = 0; i < EDGES_MACHINES_MAX; i++) {
        const struct machine *machine = atomic_load(&edges_seen[i].machine);
        if (machine != NULL && strcmp(machine->name, name) == 0) {
            return &edges_seen[i];
        }
    }
    return NULL;
}

enum edges_of_state { EDGES_AT, EDGES_ELSEWHERE };

/* Of states that are listed with a blank between them. */
static inline bool edges_listed(const char *states, const char *state)
{
    str rest = str_from(states);
    str listed = {0};
    while (str_next(&rest, ' ', &listed)) {
        if (str_equal(listed, str_from(state))) {
            return true;
        }
    }
    return false;
}

static inline int edges_count(const char *name, const char *states, enum edges_of_state which)
{
    const struct edges *edges = edges_of(name);
    if (edges == NULL) {
        print_message("%s: no edge was taken\n", name);
        return 1;
    }
    int missing = 0;
    const struct machine *machine = atomic_load(&edges->machine);
    for (u32 from = 0; from < machine->count; from++) {
        u32 left = machine->edges[from] & ~atomic_load(&edges->taken[from]);
        for (u32 to = 0; to < machine->count; to++) {
            bool at = edges_listed(states, machine->states[from]) ||
                      edges_listed(states, machine->states[to]);
            if ((left & MACHINE_TO(to)) != 0 && at == (which == EDGES_AT)) {
                print_message("%s: %s -> %s was not taken\n", name, machine->states[from],
                              machine->states[to]);
                missing++;
            }
        }
    }
    return missing;
}

/* How many edges of the table no test has taken; each is printed. */
static inline int edges_missing(const char *name)
{
    return edges_count(name, "", EDGES_ELSEWHERE);
}

/* The same, of those from and to one of these states, or of the others. */
static inline int edges_missing_at(const char *name, const char *states)
{
    return edges_count(name, states, EDGES_AT);
}

static inline int edges_missing_beside(const char *name, const char *states)
{
    return edges_count(name, states, EDGES_ELSEWHERE);
}

#endif
