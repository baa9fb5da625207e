/* connect: paste-ready blocks for the engines that read a table, and for sending to a sink.
 *
 * One place for the API, `lhbox connect` and what `lhbox dev` prints. Pure; texts in the arena. */
#ifndef LHBOX_SERVER_CONNECT_H
#define LHBOX_SERVER_CONNECT_H

#include "base/arena.h"
#include "base/str.h"

/* Stands where the reader puts a key. */
#define CONNECT_KEY_PLACEHOLDER "<your API key>"

struct connect_subject {
    str url; /* http://127.0.0.1:8181 */
    str warehouse;
    str api_key;        /* CONNECT_KEY_PLACEHOLDER when it is not known */
    str table;          /* <namespace>.<table> for the example query; empty: no query */
    str sink_id;        /* for curl; empty: a placeholder */
    str send_key;       /* the same */
    str rejects_prefix; /* …/_sink/<id or *>/rejects/, for duckdb; empty: no word of rejects */
};

/* engine: duckdb, pyiceberg, spark, trino or curl; data NULL for another name. */
str connect_block(struct arena *arena, str engine, const struct connect_subject *subject);
/* DuckDB SQL that reads the rejects files in `prefix` (…/_sink/<id>/rejects/) with named columns.
 */
str connect_rejects_recipe(struct arena *arena, str prefix);
extern const char CONNECT_SINKS_NOTE[];

#endif
