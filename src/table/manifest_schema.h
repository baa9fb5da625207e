/* manifest_schema: the Avro schemas of manifests and manifest lists.
 *
 * Record names, field order, ids and optionality as the reference library writes them: some
 * readers go by name, some by id, some by position. Private to table/. */
#ifndef LHBOX_TABLE_MANIFEST_SCHEMA_H
#define LHBOX_TABLE_MANIFEST_SCHEMA_H

#include "table/partition.h"

enum column_kind {
    COLUMN_PLAIN,    /* type names it */
    COLUMN_MAP,      /* int to type, key_id and value_id given */
    COLUMN_ARRAY,    /* of type, value_id given */
    COLUMN_SUMMARY,  /* array of r508 */
    COLUMN_PARTITION /* r102 */
};

struct manifest_column {
    const char *name;
    i32 id;
    const char *type;
    enum column_kind kind;
    bool optional;
    i32 since; /* format version */
    i32 key_id;
    i32 value_id;
};

/* Those of data_file in their order, all versions'. */
const struct manifest_column *manifest_file_columns(size_t *out_count);
MUST_USE err manifest_list_schema(struct arena *arena, i32 format_version, str *out_text,
                                  struct error *error);
/* For data files of this spec, whose sources are found in `root`. INVALID for a transform that
 * is not known. */
MUST_USE err manifest_entry_schema(struct arena *arena, i32 format_version,
                                   const struct partition_spec *spec, const struct type *root,
                                   str *out_text, struct error *error);
/* Type of the spec's values in a manifest: as partition_result_type, int where the source is
 * gone. */
MUST_USE err manifest_partition_type(const struct partition_field *field, const struct type *root,
                                     struct type *out_type, struct error *error);
/* `name` as an Avro name; out_changed tells whether it had to be changed. data NULL at the
 * limit. */
str manifest_avro_name(struct arena *arena, str name, bool *out_changed);

#endif
