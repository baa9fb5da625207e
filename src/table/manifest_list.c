/* Manifest lists: one row for each manifest of a snapshot. Written in the reference library's
 * order of fields; read by field id, then by name, with everything but the path optional. */
#include "base/assert.h"
#include "base/buf.h"
#include "format/avro.h"
#include "table/manifest.h"
#include "table/manifest_schema.h"

enum {
    LIST_BYTES_MAX = AVRO_BLOCK_BYTES_MAX,
    LIST_FILE_BYTES_MAX = AVRO_BLOCK_BYTES_MAX + 16 * MIB,
    LIST_ENTRY_BYTES = 256, /* a first guess */
};

/* ---- writing ---- */

MUST_USE static err list_put_file(buf *out, i32 format_version, const struct manifest_file *file,
                                  struct error *error)
{
    if (file->sequence_number < 0 || file->min_sequence_number < 0 || file->added_files < 0 ||
        file->existing_files < 0 || file->deleted_files < 0 || file->added_rows < 0 ||
        file->existing_rows < 0 || file->deleted_rows < 0) {
        return error_set(error, INVALID, ERROR_INTERNAL,
                         "the counts or sequence numbers of manifest %.*s are not known",
                         STR_ARG(file->path));
    }
    avro_put_bytes(out, file->path);
    avro_put_long(out, file->length);
    avro_put_long(out, file->spec_id);
    avro_put_long(out, file->content);
    avro_put_long(out, file->sequence_number);
    avro_put_long(out, file->min_sequence_number);
    avro_put_long(out, file->added_snapshot_id);
    avro_put_long(out, file->added_files);
    avro_put_long(out, file->existing_files);
    avro_put_long(out, file->deleted_files);
    avro_put_long(out, file->added_rows);
    avro_put_long(out, file->existing_rows);
    avro_put_long(out, file->deleted_rows);
    avro_put_branch(out, file->partitions.size > 0 ? 1 : 0);
    buf_append(out, file->partitions);
    avro_put_branch(out, file->key_metadata.data != NULL ? 1 : 0);
    if (file->key_metadata.data != NULL) {
        avro_put_bytes(out, file->key_metadata);
    }
    if (format_version >= 3) {
        avro_put_branch(out, file->first_row_id >= 0 ? 1 : 0);
        if (file->first_row_id >= 0) {
            avro_put_long(out, file->first_row_id);
        }
    }
    return OK;
}

/* The reference library's header; "null" is its text for no parent. */
MUST_USE static err list_header(struct arena *arena, i32 format_version, i64 snapshot_id,
                                bool has_parent, i64 parent_id, i64 sequence_number,
                                i64 first_row_id, struct avro_meta *out_meta, struct error *error)
{
    const str names[5] = {STR("snapshot-id"), STR("parent-snapshot-id"), STR("sequence-number"),
                          STR("format-version"), STR("first-row-id")};
    const i64 values[5] = {snapshot_id, parent_id, sequence_number, format_version, first_row_id};
    for (size_t i = 0; i < ARRAY_COUNT(names); i++) {
        str value = i == 1 && !has_parent ? STR("null")
                                          : str_format(arena, "%lld", (long long)values[i]);
        if (value.data == NULL) {
            return error_memory(error);
        }
        out_meta[i] = (struct avro_meta){names[i], value};
    }
    return OK;
}

err manifest_list_write(struct arena *arena, i32 format_version, i64 snapshot_id, bool has_parent,
                        i64 parent_id, i64 sequence_number, i64 first_row_id,
                        const struct manifest_list *list, str *out_bytes, struct error *error)
{
    assert(format_version == 2 || format_version == 3);
    assert(format_version == 2 || first_row_id >= 0);
    struct avro_meta meta[5];
    str schema_text = {NULL, 0};
    TRY(list_header(arena, format_version, snapshot_id, has_parent, parent_id, sequence_number,
                    first_row_id, meta, error));
    TRY(manifest_list_schema(arena, format_version, &schema_text, error));
    size_t guess = list->count < LIST_BYTES_MAX / LIST_ENTRY_BYTES ? list->count * LIST_ENTRY_BYTES
                                                                   : LIST_BYTES_MAX;
    buf records = buf_create(arena, guess, LIST_BYTES_MAX);
    for (size_t i = 0; i < list->count; i++) {
        TRY(list_put_file(&records, format_version, &list->files[i], error));
    }
    if (!buf_ok(&records)) {
        return error_memory(error);
    }
    buf bytes = buf_create(arena, records.size / 2 + 4 * KIB, LIST_FILE_BYTES_MAX);
    size_t meta_count = format_version >= 3 ? 5 : 4;
    TRY(avro_write(&bytes, arena, schema_text, meta, meta_count, AVRO_DEFLATE, buf_str(&records),
                   (i64)list->count, error));
    *out_bytes = buf_str(&bytes);
    return OK;
}

/* ---- reading ---- */

MUST_USE static err list_corrupt(struct error *error, const char *what)
{
    return error_set(error, CORRUPT, ERROR_INTERNAL, "manifest list: %s", what);
}

/* The integer, or `otherwise` when it is null or not there. */
MUST_USE static err list_number(const struct avro_value *record, i32 id, str name, i64 otherwise,
                                i64 *out_number, struct error *error)
{
    const struct avro_value *value = avro_field_of(record, id, name);
    if (value == NULL || value->kind == AVRO_VALUE_NULL) {
        *out_number = otherwise;
        return OK;
    }
    if (value->kind != AVRO_VALUE_LONG || value->number < 0) {
        return error_set(error, CORRUPT, ERROR_INTERNAL, "manifest list: %.*s is no count",
                         STR_ARG(name));
    }
    *out_number = value->number;
    return OK;
}

MUST_USE static err list_number_i32(const struct avro_value *record, i32 id, str name,
                                    i32 otherwise, i32 *out_number, struct error *error)
{
    i64 number = 0;
    TRY(list_number(record, id, name, otherwise, &number, error));
    if (number > INT32_MAX) {
        return list_corrupt(error, "a count is out of bounds");
    }
    *out_number = (i32)number;
    return OK;
}

static void list_put_optional_bytes(buf *out, const struct avro_value *value)
{
    bool there = value != NULL && value->kind == AVRO_VALUE_BYTES;
    avro_put_branch(out, there ? 1 : 0);
    if (there) {
        avro_put_bytes(out, value->bytes);
    }
}

static void list_put_summary(buf *out, const struct avro_value *summary)
{
    const struct avro_value *null = avro_field_of(summary, 509, STR("contains_null"));
    const struct avro_value *nan = avro_field_of(summary, 518, STR("contains_nan"));
    /* Unknown reads as "may contain nulls": it never prunes wrongly. */
    avro_put_boolean(out, null == NULL || null->kind != AVRO_VALUE_BOOLEAN || null->number != 0);
    bool has_nan = nan != NULL && nan->kind == AVRO_VALUE_BOOLEAN;
    avro_put_branch(out, has_nan ? 1 : 0);
    if (has_nan) {
        avro_put_boolean(out, nan->number != 0);
    }
    list_put_optional_bytes(out, avro_field_of(summary, 510, STR("lower_bound")));
    list_put_optional_bytes(out, avro_field_of(summary, 511, STR("upper_bound")));
}

/* The summaries again in our own field order; empty when there are none. */
MUST_USE static err list_read_summaries(struct arena *arena, const struct avro_value *record,
                                        str *out_partitions, struct error *error)
{
    const struct avro_value *value = avro_field_of(record, 507, STR("partitions"));
    if (value == NULL || value->kind == AVRO_VALUE_NULL) {
        *out_partitions = (str){NULL, 0};
        return OK;
    }
    if (value->kind != AVRO_VALUE_ARRAY) {
        return list_corrupt(error, "partitions is no array");
    }
    buf out = buf_create(arena, 64, LIST_BYTES_MAX);
    if (value->count > 0) {
        avro_put_long(&out, (i64)value->count);
    }
    for (size_t i = 0; i < value->count; i++) {
        if (value->items[i].kind != AVRO_VALUE_RECORD) {
            return list_corrupt(error, "a partition summary is no record");
        }
        list_put_summary(&out, &value->items[i]);
    }
    avro_put_long(&out, 0);
    if (!buf_ok(&out)) {
        return error_memory(error);
    }
    *out_partitions = buf_str(&out);
    return OK;
}

/* Counts are -1 where the list has none. Older lists name them otherwise: ids decide. */
MUST_USE static err list_read_counts(const struct avro_value *record, struct manifest_file *file,
                                     struct error *error)
{
    TRY(list_number_i32(record, 504, STR("added_files_count"), -1, &file->added_files, error));
    TRY(list_number_i32(record, 505, STR("existing_files_count"), -1, &file->existing_files,
                        error));
    TRY(list_number_i32(record, 506, STR("deleted_files_count"), -1, &file->deleted_files, error));
    TRY(list_number(record, 512, STR("added_rows_count"), -1, &file->added_rows, error));
    TRY(list_number(record, 513, STR("existing_rows_count"), -1, &file->existing_rows, error));
    return list_number(record, 514, STR("deleted_rows_count"), -1, &file->deleted_rows, error);
}

MUST_USE static err list_read_file(struct arena *arena, const struct avro_value *record,
                                   struct manifest_file *file, struct error *error)
{
    const struct avro_value *path = avro_field_of(record, 500, STR("manifest_path"));
    if (path == NULL || path->kind != AVRO_VALUE_BYTES || path->bytes.size == 0) {
        return list_corrupt(error, "a manifest without its path");
    }
    file->path = path->bytes;
    TRY(list_number(record, 501, STR("manifest_length"), -1, &file->length, error));
    TRY(list_number_i32(record, 502, STR("partition_spec_id"), 0, &file->spec_id, error));
    TRY(list_number_i32(record, 517, STR("content"), 0, &file->content, error));
    /* Lists of version 1 have no sequence numbers; 0 is what they count as. */
    TRY(list_number(record, 515, STR("sequence_number"), 0, &file->sequence_number, error));
    TRY(list_number(record, 516, STR("min_sequence_number"), 0, &file->min_sequence_number, error));
    TRY(list_number(record, 503, STR("added_snapshot_id"), 0, &file->added_snapshot_id, error));
    TRY(list_read_counts(record, file, error));
    TRY(list_number(record, 520, STR("first_row_id"), -1, &file->first_row_id, error));
    const struct avro_value *key = avro_field_of(record, 519, STR("key_metadata"));
    if (key != NULL && key->kind == AVRO_VALUE_BYTES) {
        file->key_metadata = key->bytes;
    }
    if (file->content > 1 || file->length < 0) {
        return list_corrupt(error, "a manifest without its length, or of a content not known");
    }
    return list_read_summaries(arena, record, &file->partitions, error);
}

err manifest_list_read(struct arena *arena, str bytes, struct manifest_list *out_list,
                       struct error *error)
{
    struct avro_file *avro = NULL;
    TRY(avro_read(arena, bytes, &avro, error));
    struct manifest_list list = {.count = avro_file_count(avro)};
    list.files = arena_array(arena, list.count, sizeof(*list.files));
    if (list.files == NULL) {
        return error_memory(error);
    }
    for (size_t i = 0; i < list.count; i++) {
        const struct avro_value *record = avro_file_record(avro, i);
        if (record->kind != AVRO_VALUE_RECORD) {
            return list_corrupt(error, "its rows are no records");
        }
        TRY(list_read_file(arena, record, &list.files[i], error));
    }
    *out_list = list;
    return OK;
}

/* ---- counting ---- */

MUST_USE static err list_count_entry(const struct avro_value *entry, struct manifest_file *file,
                                     struct error *error)
{
    enum { EXISTING = 0, ADDED = 1, DELETED = 2 };
    i64 status = 0;
    i64 rows = 0;
    const struct avro_value *data_file = avro_field_of(entry, 2, STR("data_file"));
    if (data_file == NULL || data_file->kind != AVRO_VALUE_RECORD) {
        return list_corrupt(error, "a manifest's entry has no data file");
    }
    TRY(list_number(entry, 0, STR("status"), -1, &status, error));
    TRY(list_number(data_file, 103, STR("record_count"), 0, &rows, error));
    if (status < EXISTING || status > DELETED) {
        return list_corrupt(error, "a manifest's entry has no status");
    }
    i32 *files = status == ADDED     ? &file->added_files
                 : status == DELETED ? &file->deleted_files
                                     : &file->existing_files;
    i64 *sum = status == ADDED     ? &file->added_rows
               : status == DELETED ? &file->deleted_rows
                                   : &file->existing_rows;
    if (*files == INT32_MAX || !num_add_i64(*sum, rows, sum)) {
        return list_corrupt(error, "a count is out of bounds");
    }
    ++*files;
    return OK;
}

err manifest_count(struct arena *arena, str bytes, struct manifest_file *file, struct error *error)
{
    struct avro_file *avro = NULL;
    TRY(avro_read(arena, bytes, &avro, error));
    struct manifest_file counted = *file;
    counted.added_files = counted.existing_files = counted.deleted_files = 0;
    counted.added_rows = counted.existing_rows = counted.deleted_rows = 0;
    for (size_t i = 0; i < avro_file_count(avro); i++) {
        const struct avro_value *entry = avro_file_record(avro, i);
        if (entry->kind != AVRO_VALUE_RECORD) {
            return list_corrupt(error, "a manifest's rows are no records");
        }
        TRY(list_count_entry(entry, &counted, error));
    }
    *file = counted;
    return OK;
}
