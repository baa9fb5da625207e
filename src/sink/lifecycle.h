/* lifecycle: a sink is made, changed and made active again (exactly-once 8.1, O14).
 *
 * Making a sink commits nothing to its table and makes no identity: the first roll claims the
 * table. The settings object is durable in the file bucket before the ledger's transaction of each
 * change. Deleting is sink/roll's, because it fences. Any thread; blocking. */
#ifndef LHBOX_SINK_LIFECYCLE_H
#define LHBOX_SINK_LIFECYCLE_H

#include "sink/attach.h"
#include "sink/ledger.h"

enum {
    LIFECYCLE_NAME_MAX = 64,
    LIFECYCLE_HINT_COLUMNS_MAX = 20, /* that a docs hint names */
};

struct lifecycle {
    const struct db *db;
    const struct seam *seam;
    const struct warehouses *warehouses;
    str installation_id;
};

/* The bounds of a roll policy; a development server has lower ones. */
struct lifecycle_bounds {
    i64 roll_seconds_min;
    i64 roll_seconds_max;
    i64 roll_seconds_default;
    i64 roll_bytes_min;
    i64 roll_bytes_max;
    i64 roll_bytes_default;
    i64 inactivity_seconds_min;
    i64 inactivity_seconds_max;
};
struct lifecycle_bounds lifecycle_bounds_default(void);
struct lifecycle_bounds lifecycle_bounds_dev(void);

struct lifecycle_request {
    str project;
    str name;
    str warehouse;
    str namespace_name; /* parts joined by 0x1F */
    str table_name;
    i64 roll_seconds;
    i64 roll_bytes;
    i64 inactivity_seconds; /* 0: off */
    str unknown_fields;
    str idempotency;
};

struct lifecycle_created {
    str sink_id;
    str send_key; /* the only time it is seen */
    str warnings[ATTACH_WARNINGS_MAX];
    size_t warning_count;
    str docs_hint; /* data NULL: everything is described */
};

/* Refusals as contract section 6: table_not_found with the namespace's tables, sink_exists, the
 * judgements of sink/attach, table_claimed, name_taken, invalid_policy. */
MUST_USE err lifecycle_create(const struct lifecycle *lifecycle, struct arena *arena,
                              const struct lifecycle_bounds *bounds,
                              const struct lifecycle_request *request,
                              struct lifecycle_created *out_created, struct error *error);
/* All or nothing. A disabled sink becomes active. */
MUST_USE err lifecycle_patch(const struct lifecycle *lifecycle, struct arena *arena,
                             const struct lifecycle_bounds *bounds, const struct ledger_sink *sink,
                             const struct ledger_sink_patch *patch, struct error *error);
/* `lhbox table document` with what the table lacks; data NULL when it lacks nothing. */
MUST_USE err lifecycle_docs_hint(struct arena *arena, str full_name,
                                 const struct metadata *metadata, str *out_hint,
                                 struct error *error);
/* <warehouse>.<namespace>.<table> with dots between nested namespaces. */
str lifecycle_full_name(struct arena *arena, str warehouse, str namespace_name, str table_name);
/* `<ns>.<table>` (the last dot begins the table), the namespace joined by 0x1F. INVALID. */
MUST_USE err lifecycle_parse_table(struct arena *arena, str text, struct table_name *out_name,
                                   struct error *error);

#endif
