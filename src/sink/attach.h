/* attach: may a sink stand on this table (exactly-once 8.1, step 1).
 *
 * Pure judgements over one loaded version of the table; the same questions are asked again at each
 * roll, because an engine may change the table while batches wait. Any thread. */
#ifndef LHBOX_SINK_ATTACH_H
#define LHBOX_SINK_ATTACH_H

#include "sink/decode.h"
#include "sink/warehouse.h"
#include "table/metadata.h"

/* Format version 2 or 3; partitioning that one file per value can serve; column types that rows can
 * be decoded to; __ingest_ts absent or a timestamptz. DENIED with the refusal's code. */
MUST_USE err attach_check(struct arena *arena, const struct metadata *metadata,
                          struct error *error);
/* All the places the table's files go to lie under the warehouse's locations: DENIED with
 * location_refused. */
MUST_USE err attach_check_locations(struct arena *arena, const struct warehouse *warehouse,
                                    const struct metadata *metadata, struct error *error);
/* `unknown_fields` as a sink keeps it: reject, ignore or capture:<column>. The capture column must
 * be an optional string or variant of the schema. INVALID with invalid_request. */
MUST_USE err attach_parse_unknown(str unknown_fields, const struct schema *schema,
                                  struct decode_settings *out_settings, struct error *error);
/* Which engines cannot open or write the table: texts in the arena. */
enum { ATTACH_WARNINGS_MAX = 8 };
MUST_USE err attach_warnings(struct arena *arena, const struct metadata *metadata,
                             str out_warnings[ATTACH_WARNINGS_MAX], size_t *out_count,
                             struct error *error);

#endif
