#include "table/commit_summary.h"

#include "base/buf.h"
#include "base/map.h"
#include "format/avro.h"
#include "table/document.h"

enum { SUMMARY_TUPLE_BYTES_MAX = 64 * KIB };

struct summary_count {
    i64 files;
    i64 rows;
    i64 bytes;
    i64 partitions;
};

/* Names that are computed: a caller's entry under one of them is left out. */
static const char *const SUMMARY_COMPUTED[] = {
    "operation",
    "added-data-files",
    "deleted-data-files",
    "added-records",
    "deleted-records",
    "added-files-size",
    "removed-files-size",
    "added-delete-files",
    "removed-delete-files",
    "added-position-delete-files",
    "removed-position-delete-files",
    "added-equality-delete-files",
    "removed-equality-delete-files",
    "added-dvs",
    "removed-dvs",
    "added-position-deletes",
    "removed-position-deletes",
    "added-equality-deletes",
    "removed-equality-deletes",
    "changed-partition-count",
    "manifests-created",
    "manifests-kept",
    "manifests-replaced",
    "entries-processed",
    "total-records",
    "total-files-size",
    "total-data-files",
    "total-delete-files",
    "total-position-deletes",
    "total-equality-deletes",
};

static bool summary_is_computed(str key)
{
    for (size_t i = 0; i < ARRAY_COUNT(SUMMARY_COMPUTED); i++) {
        if (str_equal(key, str_from(SUMMARY_COMPUTED[i]))) {
            return true;
        }
    }
    return false;
}

static void summary_set(json_t *summary, const char *key, i64 value)
{
    document_set(summary, key, json_sprintf("%lld", (long long)value));
}

static void summary_set_some(json_t *summary, const char *key, i64 value)
{
    if (value > 0) {
        summary_set(summary, key, value);
    }
}

/* The parent's total and what was added. Left out where the parent has none, or a garbled one: a
 * total that starts again in the middle is worse than none. */
static void summary_set_total(json_t *summary, const json_t *parent, const char *key, i64 added)
{
    i64 total = 0;
    if (parent != NULL) {
        str text = document_text(json_object_get(parent, "summary"), key);
        if (text.data == NULL || !str_to_i64(text, &total) || total < 0) {
            return;
        }
    }
    if (num_add_i64(total, added, &total)) {
        summary_set(summary, key, total);
    }
}

/* How many different partition tuples the files have. */
MUST_USE static err summary_count_partitions(struct arena *arena, const struct append *append,
                                             size_t fields, i64 *out_count, struct error *error)
{
    struct map *tuples = map_create(arena, append->file_count);
    if (tuples == NULL) {
        return error_memory(error);
    }
    for (size_t i = 0; i < append->file_count; i++) {
        const struct partition_value *values = append->files[i].partition;
        buf tuple = buf_create(arena, 2 * fields + 1, SUMMARY_TUPLE_BYTES_MAX);
        for (size_t j = 0; j < fields; j++) {
            avro_put_branch(&tuple, values[j].is_null ? 0 : 1);
            avro_put_long(&tuple, values[j].is_null ? 0 : values[j].number);
        }
        bool is_new = false;
        if (!buf_ok(&tuple) || map_put(tuples, buf_str(&tuple), &is_new) == NULL) {
            return error_memory(error);
        }
    }
    *out_count = (i64)map_count(tuples);
    return OK;
}

MUST_USE static err summary_count(struct arena *arena, const struct append *append, size_t fields,
                                  struct summary_count *out_count, struct error *error)
{
    struct summary_count count = {.files = (i64)append->file_count};
    for (size_t i = 0; i < append->file_count; i++) {
        const struct parquet_file_stats *stats = &append->files[i].stats;
        if (!num_add_i64(count.rows, stats->rows, &count.rows) ||
            !num_add_i64(count.bytes, stats->file_bytes, &count.bytes)) {
            return error_set(error, LIMIT, ERROR_INTERNAL, "too many rows for one commit");
        }
    }
    TRY(summary_count_partitions(arena, append, fields, &count.partitions, error));
    *out_count = count;
    return OK;
}

/* As the reference library tells of an append, or of manifests that were written anew. */
static void summary_set_manifests(json_t *summary, const struct summary_manifests *manifests)
{
    summary_set(summary, "manifests-created", manifests->created);
    summary_set(summary, "manifests-kept", manifests->kept);
    summary_set(summary, "manifests-replaced", manifests->replaced);
    if (manifests->replaced > 0) {
        summary_set(summary, "entries-processed", manifests->entries);
    }
}

err commit_summary(struct arena *arena, const struct append *append, const json_t *parent,
                   size_t partition_fields, const struct summary_manifests *manifests,
                   json_t **out_summary, struct error *error)
{
    struct summary_count count = {0};
    TRY(summary_count(arena, append, partition_fields, &count, error));
    json_t *summary = json_object();
    document_set_text(summary, "operation",
                      manifests->replaced > 0 ? STR("replace") : STR("append"));
    summary_set_some(summary, "added-data-files", count.files);
    summary_set_some(summary, "added-records", count.rows);
    summary_set_some(summary, "added-files-size", count.bytes);
    summary_set(summary, "changed-partition-count", count.partitions);
    summary_set_manifests(summary, manifests);
    summary_set_total(summary, parent, "total-records", count.rows);
    summary_set_total(summary, parent, "total-files-size", count.bytes);
    summary_set_total(summary, parent, "total-data-files", count.files);
    summary_set_total(summary, parent, "total-delete-files", 0);
    summary_set_total(summary, parent, "total-position-deletes", 0);
    summary_set_total(summary, parent, "total-equality-deletes", 0);
    for (size_t i = 0; i < append->summary_count; i++) {
        const struct commit_entry *entry = &append->summary[i];
        if (!summary_is_computed(entry->key)) {
            document_set_entry(summary, entry->key, entry->value);
        }
    }
    *out_summary = summary;
    return OK;
}
