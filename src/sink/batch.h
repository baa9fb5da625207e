/* batch: batch ids and the names of a sink's objects.
 *
 * A batch id becomes part of a path only through batch_path_part, which is injective (exactly-once
 * C.4, I5). Pure; any thread. */
#ifndef LHBOX_SINK_BATCH_H
#define LHBOX_SINK_BATCH_H

#include "base/error.h"
#include "base/id.h"

enum { BATCH_ID_MAX = 128, BATCH_PART_MAX = 160 };

/* 1 to 128 of A-Z a-z 0-9 . _ : -, one pair of double quotes around it stripped; the server's
 * prefixes are refused. INVALID with bad_idempotency_key or batch_id_reserved. */
MUST_USE err batch_id_parse(str header, str *out_id, struct error *error);
/* `:` as %3A, a leading `.` as %2E, over 160 bytes cut to 100, `~` and 26 characters of its hash.
 */
str batch_path_part(struct arena *arena, str batch_id);
str batch_object_key(struct arena *arena, str sink_id, str batch_id, const struct uid *uid);
str batch_rejects_key(struct arena *arena, str sink_id, str batch_id);
str batch_intake_rejects_key(struct arena *arena, str sink_id, str batch_id, const struct uid *uid);
str batch_plan_key(struct arena *arena, str sink_id, i64 n, str plan_id);

#endif
