#include "base/machine.h"

#include "base/assert.h"

#include <stdio.h>

static machine_watcher watching;

u32 machine_take(const struct machine *machine, u32 from, u32 to)
{
    assert(machine->count <= MACHINE_STATES_MAX);
    assert(from < machine->count);
    assert(to < machine->count);
    if ((machine->edges[from] & MACHINE_TO(to)) == 0) {
        char text[160];
        (void)snprintf(text, sizeof(text), "%s may go from %s to %s", machine->name,
                       machine->states[from], machine->states[to]);
        assert_failed(text, __FILE__, __LINE__, __func__);
    }
    if (watching != NULL) {
        watching(machine, from, to);
    }
    return to;
}

void machine_watch(machine_watcher watcher)
{
    watching = watcher;
}
