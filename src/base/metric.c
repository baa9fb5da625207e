#include "base/metric.h"

#include "base/assert.h"

#include <stdatomic.h>

struct metric_entry {
    const char *name;
    const char *kind;
    const char *help;
};

static const struct metric_entry metric_entries[METRIC_COUNT] = {
#define X(name, text, kind, help) [METRIC_##name] = {text, kind, help},
#include "base/metrics.def"
#undef X
};

static _Atomic i64 metric_values[METRIC_COUNT];

void metric_add(enum metric metric, i64 amount)
{
    assert(metric < METRIC_COUNT);
    atomic_fetch_add_explicit(&metric_values[metric], amount, memory_order_relaxed);
}

void metric_set(enum metric metric, i64 value)
{
    assert(metric < METRIC_COUNT);
    atomic_store_explicit(&metric_values[metric], value, memory_order_relaxed);
}

i64 metric_get(enum metric metric)
{
    assert(metric < METRIC_COUNT);
    return atomic_load_explicit(&metric_values[metric], memory_order_relaxed);
}

void metric_print(buf *out)
{
    for (size_t i = 0; i < METRIC_COUNT; i++) {
        const struct metric_entry *entry = &metric_entries[i];
        buf_append_format(out, "# HELP lhbox_%s %s\n# TYPE lhbox_%s %s\nlhbox_%s ", entry->name,
                          entry->help, entry->name, entry->kind, entry->name);
        buf_append_i64(out, metric_get((enum metric)i));
        buf_append_byte(out, '\n');
    }
}
