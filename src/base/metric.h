/* metric: counters and gauges as atomics, printed as Prometheus text.
 *
 * The table metrics.def names them all. Thread-safe, no locks. */
#ifndef LHBOX_BASE_METRIC_H
#define LHBOX_BASE_METRIC_H

#include "base/buf.h"

enum metric {
#define X(name, text, kind, help) METRIC_##name,
#include "base/metrics.def"
#undef X
    METRIC_COUNT
};

void metric_add(enum metric metric, i64 amount);
void metric_set(enum metric metric, i64 value);
i64 metric_get(enum metric metric);
/* All of them in Prometheus text form 0.0.4, prefix lhbox_. */
void metric_print(buf *out);

#endif
