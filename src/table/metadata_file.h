/* metadata_file: the metadata.json files of tables and views: their names, reading, writing, the
 * hint, clean-up. A `document` is either's metadata: they have `location` and `properties` in
 * common.
 *
 * Files are `<location>/metadata/<5 digits>-<uuid>.metadata.json`, or under `write.metadata.path`;
 * they are written once and never changed. Gzip is read whatever the name says, and written as
 * `.gz.metadata.json` when the table sets `write.metadata.compression-codec=gzip`. Every access
 * goes through the location set. Iceberg table spec, "Table metadata" and "Naming". Any thread. */
#ifndef LHBOX_TABLE_METADATA_FILE_H
#define LHBOX_TABLE_METADATA_FILE_H

#include "base/buf.h"
#include "table/location.h"
#include "table/metadata.h"

enum {
    METADATA_FILE_BYTES_MAX = 128 * MIB,
    METADATA_WRITTEN_BYTES_MAX = 48 * MIB, /* what the catalog can answer a load with */
};

/* CORRUPT when it is missing or no table metadata; DENIED: location_refused. out_bytes may be NULL:
 * the size of the text. */
MUST_USE err metadata_file_read(const struct location_set *locations, str uri,
                                struct metadata **out_metadata, size_t *out_bytes,
                                struct error *error);
MUST_USE err metadata_file_read_view(const struct location_set *locations, str uri,
                                     json_t **out_view, struct error *error);
/* `text`, which is the document's, as the next file after `previous_uri` (empty: the first),
 * durable, or in the group. The URI is in the arena. INVALID: more than METADATA_WRITTEN_BYTES_MAX.
 */
MUST_USE err metadata_file_write(const struct location_set *locations, struct arena *arena,
                                 const struct seam *seam, const json_t *document, str text,
                                 str previous_uri, struct store_group *group, str *out_uri,
                                 struct error *error);
/* The location, and the other places where the properties send files, lie in the set. */
MUST_USE err metadata_file_check(const struct location_set *locations, const json_t *document,
                                 struct error *error);
/* `<location>/metadata/version-hint.text` names the file. */
MUST_USE err metadata_file_point(const struct location_set *locations, const json_t *document,
                                 str uri, struct error *error);
/* Removes the files that `after` no longer logs, as far as they are the table's own. What cannot be
 * removed is logged. `kept` not NULL: their URIs are appended to it, a line each, and nothing is
 * removed. */
void metadata_file_trim(const struct location_set *locations, const struct metadata *before,
                        const struct metadata *after, buf *kept);
/* Makes `metadata` and `data` below a local table's location: engines expect them. */
MUST_USE err metadata_file_make_directories(const struct location_set *locations, str location,
                                            struct error *error);
/* file:///a/b for its other spellings; without slashes at the end. In the arena, or `uri` itself.
 */
str metadata_file_normal(struct arena *arena, str uri);

#endif
