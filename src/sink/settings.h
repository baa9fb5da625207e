/* settings: the settings objects of sinks in the file bucket (exactly-once C.4, O14).
 *
 * `_sink/<sink_id>/sink/<config_version>.<uid>.json`, written before the ledger's transaction of
 * each change, never altered. The highest version counts; states never go back. A sink that nobody
 * was told of yet is `creating`: what became of it, the ledger alone knows. Blocking, over the
 * store's seam; any thread. */
#ifndef LHBOX_SINK_SETTINGS_H
#define LHBOX_SINK_SETTINGS_H

#include "io/store.h"
#include "sink/ledger.h"

enum settings_state { SETTINGS_CREATING, SETTINGS_ACTIVE, SETTINGS_DELETING, SETTINGS_DELETED };

/* out_key, in the arena, may be NULL. */
MUST_USE err settings_write(const struct store *store, const struct seam *seam, struct arena *arena,
                            str installation_id, const struct ledger_sink *sink,
                            enum settings_state state, str *out_key, struct error *error);
/* What the objects of a sink say: identity, settings, key and state. NOT_FOUND: it has none, or
 * only such as are creating. CORRUPT: one of them is no settings object of this installation. */
MUST_USE err settings_read(const struct store *store, struct arena *arena, str installation_id,
                           str sink_id, struct ledger_sink *out_sink, struct error *error);
/* The ids of all sinks that have anything under `_sink/`, in byte order. */
MUST_USE err settings_list_sinks(const struct store *store, struct arena *arena, str **out_ids,
                                 size_t *out_count, struct error *error);

#endif
