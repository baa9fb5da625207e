/* Updates of snapshots, refs and statistics, and the log of main. */
#include "base/assert.h"
#include "base/planted.h"
#include "table/metadata_private.h"

MUST_USE static err snapshot_invalid(struct error *error, const char *what)
{
    return error_set(error, INVALID, ERROR_INVALID_REQUEST, "Cannot add snapshot: %s", what);
}

static bool change_added_here(const struct change *change, i64 snapshot_id)
{
    return map_get(change->added_snapshots,
                   (str){(const char *)&snapshot_id, sizeof(snapshot_id)}) != NULL;
}

/* ---- add-snapshot ---- */

MUST_USE static err snapshot_check_summary(const json_t *snapshot, struct error *error)
{
    json_t *summary = json_object_get(snapshot, "summary");
    str operation = document_text(summary, "operation");
    if (operation.data == NULL) {
        return snapshot_invalid(error, "a summary with operation is missing");
    }
    if (!str_equal(operation, STR("append")) && !str_equal(operation, STR("replace")) &&
        !str_equal(operation, STR("overwrite")) && !str_equal(operation, STR("delete"))) {
        return snapshot_invalid(error, "operation is append, replace, overwrite or delete");
    }
    const char *key = NULL;
    json_t *value = NULL;
    json_object_foreach(summary, key, value)
    {
        if (!json_is_string(value)) {
            return snapshot_invalid(error, "a value of the summary is no string");
        }
    }
    return OK;
}

MUST_USE static err snapshot_check_form(const struct change *change, const json_t *snapshot,
                                        struct error *error)
{
    static const char *const INTEGERS[] = {"snapshot-id", "timestamp-ms", "sequence-number"};
    bool numbered = document_i64_or(change->root, "format-version", 0) > 1;
    for (size_t i = 0; i < (numbered ? ARRAY_COUNT(INTEGERS) : 2); i++) {
        i64 value = 0;
        if (!document_i64(snapshot, INTEGERS[i], &value) || value < 0) {
            return error_set(error, INVALID, ERROR_INVALID_REQUEST, "Cannot add snapshot: no %s",
                             INTEGERS[i]);
        }
    }
    if (document_text(snapshot, "manifest-list").size == 0) {
        return snapshot_invalid(error, "no manifest-list");
    }
    static const char *const LISTS[] = {"schemas", "partition-specs", "sort-orders"};
    for (size_t i = 0; i < ARRAY_COUNT(LISTS); i++) {
        if (json_array_size(json_object_get(change->root, LISTS[i])) == 0) {
            return snapshot_invalid(error, "a schema, spec and sort order come first");
        }
    }
    return snapshot_check_summary(snapshot, error);
}

/* Version 3: the rows of the snapshot take their ids from next-row-id on. */
MUST_USE static err snapshot_take_rows(struct change *change, const json_t *snapshot,
                                       struct error *error)
{
    i64 first = 0;
    i64 rows = 0;
    i64 next = document_i64_or(change->root, "next-row-id", 0);
    if (document_i64_or(change->root, "format-version", 0) < 3) {
        return OK;
    }
    if (!document_i64(snapshot, "first-row-id", &first)) {
        return snapshot_invalid(error, "first-row-id is null");
    }
    if (!document_i64(snapshot, "added-rows", &rows) || rows < 0) {
        return snapshot_invalid(error, "added-rows is null");
    }
    if (first < next) {
        return error_set(error, CONFLICT, ERROR_COMMIT_CONFLICT,
                         "Cannot add a snapshot with first-row-id behind table next-row-id: "
                         "%lld < %lld",
                         (long long)first, (long long)next);
    }
    if (!num_add_i64(first, rows, &next)) {
        return snapshot_invalid(error, "row ids are used up");
    }
    document_set_i64(change->root, "next-row-id", next);
    return OK;
}

MUST_USE static err snapshot_check_fresh(const struct change *change, const json_t *snapshot,
                                         struct error *error)
{
    i64 id = document_i64_or(snapshot, "snapshot-id", 0);
    i64 sequence = document_i64_or(snapshot, "sequence-number", 0);
    i64 last = document_i64_or(change->root, "last-sequence-number", 0);
    if (document_find(json_object_get(change->root, "snapshots"), "snapshot-id", id) != NULL) {
        return error_set(error, CONFLICT, ERROR_COMMIT_CONFLICT,
                         "Snapshot already exists for id: %lld", (long long)id);
    }
    /* A snapshot without a parent included (I32), unless the same commit took main away before: a
     * client that replaces the table keeps the number it chose when another commit came between.
     * No roll does that, so none that comes late can pass. Version 1 has no numbers. */
    bool begins = change->replaces && document_i64_or(snapshot, "parent-snapshot-id", -1) == -1;
    bool numbered = document_i64_or(change->root, "format-version", 0) > 1;
    if (numbered && !begins && sequence <= last && !PLANTED(2) && !PLANTED(9)) {
        return error_set(error, CONFLICT, ERROR_COMMIT_CONFLICT,
                         "Cannot add snapshot with sequence number %lld older than last sequence "
                         "number %lld",
                         (long long)sequence, (long long)last);
    }
    return OK;
}

err change_add_snapshot(struct change *change, const json_t *update, struct error *error)
{
    const json_t *sent = json_object_get(update, "snapshot");
    TRY(snapshot_check_form(change, sent, error));
    TRY(snapshot_check_fresh(change, sent, error));
    TRY(snapshot_take_rows(change, sent, error));
    i64 *id = arena_alloc(change->arena, sizeof(*id));
    if (id == NULL) {
        return error_memory(error);
    }
    *id = document_i64_or(sent, "snapshot-id", 0);
    bool is_new = false;
    if (map_put(change->added_snapshots, (str){(const char *)id, sizeof(*id)}, &is_new) == NULL) {
        return error_memory(error);
    }
    json_t *snapshot = document_copy(sent);
    document_drop_nulls(snapshot); /* null parents make tables unreadable */
    if (document_i64_or(snapshot, "parent-snapshot-id", 0) == -1) {
        json_object_del(snapshot, "parent-snapshot-id");
    }
    document_append(document_array(change->root, "snapshots"), snapshot);
    i64 last = document_i64_or(change->root, "last-sequence-number", 0);
    document_set_i64(change->root, "last-sequence-number",
                     num_max_i64(last, document_i64_or(snapshot, "sequence-number", 0)));
    change->stamp_ms = num_max_i64(change->stamp_ms, document_i64_or(snapshot, "timestamp-ms", 0));
    change->changed = true;
    return OK;
}

/* ---- the log of main ---- */

MUST_USE static err snapshot_log_append(struct change *change, const json_t *snapshot,
                                        struct error *error)
{
    json_t *log = document_array(change->root, "snapshot-log");
    i64 id = document_i64_or(snapshot, "snapshot-id", 0);
    i64 at = change_added_here(change, id) ? document_i64_or(snapshot, "timestamp-ms", 0)
                                           : change->stamp_ms;
    const json_t *last = json_array_get(log, json_array_size(log) - 1);
    i64 before = document_i64_or(last, "timestamp-ms", 0);
    if (at < before - METADATA_CLOCK_SLACK_MS) {
        return error_set(error, INVALID, ERROR_INVALID_REQUEST,
                         "Invalid snapshot timestamp %lld: before the last one in the log %lld",
                         (long long)at, (long long)before);
    }
    json_t *entry = json_object();
    document_set_i64(entry, "timestamp-ms", at);
    document_set_i64(entry, "snapshot-id", id);
    document_append(log, entry);
    return OK;
}

void change_settle_snapshot_log(struct change *change)
{
    json_t *log = document_array(change->root, "snapshot-log");
    i64 current = -1;
    (void)metadata_current_snapshot(change->root, &current);
    for (size_t i = json_array_size(log); i-- > change->log_start;) {
        i64 id = document_i64_or(json_array_get(log, i), "snapshot-id", -1);
        if (id != current && change_added_here(change, id)) {
            json_array_remove(log, i);
        }
    }
}

/* ---- refs ---- */

MUST_USE static err ref_set_limit(json_t *ref, const json_t *update, const char *key,
                                  struct error *error)
{
    const json_t *value = json_object_get(update, key);
    if (value == NULL || json_is_null(value)) {
        return OK;
    }
    if (!json_is_integer(value) || json_integer_value(value) <= 0) {
        return error_set(error, INVALID, ERROR_INVALID_REQUEST, "%s must be greater than 0", key);
    }
    document_set_i64(ref, key, json_integer_value(value));
    return OK;
}

/* Fills an empty object. */
MUST_USE static err ref_build(json_t *ref, const json_t *update, str type, i64 snapshot_id,
                              struct error *error)
{
    document_set_i64(ref, "snapshot-id", snapshot_id);
    document_set_text(ref, "type", type);
    if (str_equal(type, STR("branch"))) {
        TRY(ref_set_limit(ref, update, "min-snapshots-to-keep", error));
        TRY(ref_set_limit(ref, update, "max-snapshot-age-ms", error));
    }
    return ref_set_limit(ref, update, "max-ref-age-ms", error);
}

MUST_USE static err ref_check(const json_t *update, str name, str type, struct error *error)
{
    bool is_branch = str_equal(type, STR("branch"));
    if (name.size == 0 || memchr(name.data, 0, name.size) != NULL) {
        return error_set(error, INVALID, ERROR_INVALID_REQUEST, "set-snapshot-ref: no ref-name");
    }
    if (!is_branch && !str_equal(type, STR("tag"))) {
        return error_set(error, INVALID, ERROR_INVALID_REQUEST,
                         "set-snapshot-ref: type is branch or tag");
    }
    if (!is_branch && str_equal(name, STR(METADATA_MAIN))) {
        return error_set(error, INVALID, ERROR_INVALID_REQUEST, "Cannot set main to a tag");
    }
    if (!is_branch && (json_is_integer(json_object_get(update, "min-snapshots-to-keep")) ||
                       json_is_integer(json_object_get(update, "max-snapshot-age-ms")))) {
        return error_set(error, INVALID, ERROR_INVALID_REQUEST,
                         "Tags do not support setting minSnapshotsToKeep or maxSnapshotAgeMs");
    }
    return OK;
}

MUST_USE static err ref_move_main(struct change *change, const json_t *snapshot,
                                  struct error *error)
{
    i64 id = document_i64_or(snapshot, "snapshot-id", 0);
    i64 current = -1;
    if (metadata_current_snapshot(change->root, &current) && current == id) {
        return OK; /* only the retention changes */
    }
    document_set_i64(change->root, "current-snapshot-id", id);
    return snapshot_log_append(change, snapshot, error);
}

err change_set_snapshot_ref(struct change *change, const json_t *update, struct error *error)
{
    str name = document_text(update, "ref-name");
    str type = document_text(update, "type");
    i64 id = document_i64_or(update, "snapshot-id", -1);
    TRY(ref_check(update, name, type, error));
    const json_t *snapshot = document_find(json_object_get(change->root, "snapshots"),
                                           "snapshot-id", id);
    if (snapshot == NULL) {
        return error_set(error, INVALID, ERROR_INVALID_REQUEST,
                         "Cannot set %.*s to unknown snapshot: %lld", STR_ARG(name), (long long)id);
    }
    json_t *refs = document_object(change->root, "refs");
    json_t *ref = json_object();
    err result = ref_build(ref, update, type, id, error);
    if (result != OK || json_equal(ref, json_object_get(refs, name.data))) {
        json_decref(ref);
        return result;
    }
    document_set(refs, name.data, ref);
    change->changed = true;
    return str_equal(name, STR(METADATA_MAIN)) ? ref_move_main(change, snapshot, error) : OK;
}

err change_remove_snapshot_ref(struct change *change, const json_t *update, struct error *error)
{
    str name = document_text(update, "ref-name");
    json_t *refs = document_object(change->root, "refs");
    if (name.data == NULL) {
        return error_set(error, INVALID, ERROR_INVALID_REQUEST, "remove-snapshot-ref: no ref-name");
    }
    if (json_object_get(refs, name.data) == NULL) {
        return OK;
    }
    json_object_del(refs, name.data);
    if (str_equal(name, STR(METADATA_MAIN))) {
        metadata_set_no_snapshot(change->root); /* the log stays: it is history */
        change->replaces = true;
    }
    change->changed = true;
    return OK;
}

/* ---- remove-snapshots ---- */

static bool snapshot_is_in(const struct map *ids, const json_t *item)
{
    i64 id = 0;
    return document_i64(item, "snapshot-id", &id) &&
           map_get(ids, (str){(const char *)&id, sizeof(id)}) != NULL;
}

/* The array under `key` without the items of these snapshots. True when there were some. */
static bool snapshot_filter(json_t *root, const char *key, const struct map *ids)
{
    json_t *items = document_array(root, key);
    json_t *kept = json_array();
    size_t count = json_array_size(items);
    for (size_t i = 0; i < count; i++) {
        json_t *item = json_array_get(items, i);
        if (!snapshot_is_in(ids, item)) {
            document_append(kept, document_share(item));
        }
    }
    bool some = json_array_size(kept) < count;
    document_set(root, key, kept);
    return some;
}

static void snapshot_drop_refs(json_t *root, const struct map *ids)
{
    json_t *refs = document_object(root, "refs");
    const char *name = NULL;
    json_t *ref = NULL;
    void *next = NULL;
    json_object_foreach_safe(refs, next, name, ref)
    {
        if (snapshot_is_in(ids, ref)) {
            json_object_del(refs, name);
        }
    }
}

/* A gap would make a lookup by time answer wrongly: what stands before it goes too. */
static size_t snapshot_cut_log(json_t *root, const struct map *ids)
{
    json_t *log = document_array(root, "snapshot-log");
    json_t *kept = json_array();
    size_t count = json_array_size(log);
    size_t from = 0;
    for (size_t i = 0; i < count; i++) {
        if (snapshot_is_in(ids, json_array_get(log, i))) {
            from = i + 1;
        }
    }
    for (size_t i = from; i < count; i++) {
        document_append(kept, document_share(json_array_get(log, i)));
    }
    document_set(root, "snapshot-log", kept);
    return from;
}

MUST_USE static err snapshot_read_ids(struct change *change, const json_t *list,
                                      struct map **out_ids, struct error *error)
{
    size_t count = json_array_size(list);
    struct map *ids = map_create(change->arena, count);
    i64 current = -1;
    bool has_current = metadata_current_snapshot(change->root, &current);
    if (!json_is_array(list)) {
        return error_set(error, INVALID, ERROR_INVALID_REQUEST,
                         "remove-snapshots: no snapshot-ids");
    }
    for (size_t i = 0; i < count; i++) {
        i64 *id = arena_alloc(change->arena, sizeof(*id));
        if (id == NULL || ids == NULL) {
            return error_memory(error);
        }
        *id = json_integer_value(json_array_get(list, i));
        if (has_current && *id == current) {
            return error_set(error, INVALID, ERROR_INVALID_REQUEST,
                             "Cannot remove the current snapshot of main: %lld", (long long)*id);
        }
        bool is_new = false;
        if (map_put(ids, (str){(const char *)id, sizeof(*id)}, &is_new) == NULL) {
            return error_memory(error);
        }
    }
    *out_ids = ids;
    return OK;
}

err change_remove_snapshots(struct change *change, const json_t *update, struct error *error)
{
    struct map *ids = NULL;
    TRY(snapshot_read_ids(change, json_object_get(update, "snapshot-ids"), &ids, error));
    if (!snapshot_filter(change->root, "snapshots", ids)) {
        return OK;
    }
    snapshot_drop_refs(change->root, ids);
    (void)snapshot_filter(change->root, "statistics", ids);
    (void)snapshot_filter(change->root, "partition-statistics", ids);
    size_t cut = snapshot_cut_log(change->root, ids);
    change->log_start = change->log_start > cut ? change->log_start - cut : 0;
    change->changed = true;
    return OK;
}

/* ---- statistics ---- */

/* One file a snapshot: the new one takes the place of the old. */
MUST_USE static err statistics_set(struct change *change, const json_t *update, const char *key,
                                   struct error *error)
{
    const json_t *item = json_object_get(update, key);
    i64 id = 0;
    if (!document_i64(item, "snapshot-id", &id) ||
        document_text(item, "statistics-path").size == 0) {
        return error_set(error, INVALID, ERROR_INVALID_REQUEST,
                         "set-%s: no snapshot-id or statistics-path", key);
    }
    json_t *items = document_array(change->root, key);
    const json_t *present = document_find(items, "snapshot-id", id);
    if (present != NULL) {
        int failed = json_array_set_new(items, document_index(items, present), document_copy(item));
        assert(failed == 0);
    } else {
        document_append(items, document_copy(item));
    }
    change->changed = true;
    return OK;
}

MUST_USE static err statistics_remove(struct change *change, const json_t *update, const char *key,
                                      struct error *error)
{
    i64 id = 0;
    if (!document_i64(update, "snapshot-id", &id)) {
        return error_set(error, INVALID, ERROR_INVALID_REQUEST, "remove-%s: no snapshot-id", key);
    }
    json_t *items = document_array(change->root, key);
    const json_t *present = document_find(items, "snapshot-id", id);
    if (present != NULL) {
        json_array_remove(items, document_index(items, present));
        change->changed = true;
    }
    return OK;
}

err change_set_statistics(struct change *change, const json_t *update, struct error *error)
{
    return statistics_set(change, update, "statistics", error);
}

err change_remove_statistics(struct change *change, const json_t *update, struct error *error)
{
    return statistics_remove(change, update, "statistics", error);
}

err change_set_partition_statistics(struct change *change, const json_t *update,
                                    struct error *error)
{
    return statistics_set(change, update, "partition-statistics", error);
}

err change_remove_partition_statistics(struct change *change, const json_t *update,
                                       struct error *error)
{
    return statistics_remove(change, update, "partition-statistics", error);
}
