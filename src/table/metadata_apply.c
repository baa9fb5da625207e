/* One commit's updates on a document, in order, and the stamp at the end.
 *
 * Updates change the tree in place; the first that fails spoils the document. Only the root, its
 * lists and its objects are changed: what stands in them is shared with other versions, and is
 * taken out and replaced as a whole. */
#include "base/assert.h"
#include "table/metadata_private.h"

#define METADATA_LOG_MAX_PROPERTY "write.metadata.previous-versions-max"
#define METADATA_DELETE_PROPERTY  "write.metadata.delete-after-commit.enabled"

enum { METADATA_LOG_MAX_DEFAULT = 100 };

/* ---- the table as a whole ---- */

static err change_assign_uuid(struct change *change, const json_t *update, struct error *error)
{
    str uuid = document_text(update, "uuid");
    str present = document_text(change->root, "table-uuid");
    if (uuid.size == 0) {
        return error_set(error, INVALID, ERROR_INVALID_REQUEST, "assign-uuid: no uuid");
    }
    if (present.size > 0 && !str_equal_ignore_case(present, uuid)) {
        return error_set(error, INVALID, ERROR_INVALID_REQUEST,
                         "Cannot reassign the uuid of a table: %.*s", STR_ARG(present));
    }
    if (present.size == 0) {
        document_set_text(change->root, "table-uuid", uuid);
        change->changed = true;
    }
    return OK;
}

/* Version 1 kept copies of what versions 2 and 3 keep in lists. */
static void version_raise(json_t *root, i64 version)
{
    document_set_i64(root, "format-version", version);
    json_object_del(root, "schema");
    json_object_del(root, "partition-spec");
    if (version >= 3 && json_object_get(root, "next-row-id") == NULL) {
        document_set_i64(root, "next-row-id", 0);
    }
    i64 current = 0;
    if (!metadata_current_snapshot(root, &current)) {
        metadata_set_no_snapshot(root);
    }
}

static err change_upgrade_version(struct change *change, const json_t *update, struct error *error)
{
    i64 version = document_i64_or(update, "format-version", 0);
    i64 present = document_i64_or(change->root, "format-version", 0);
    if (version > METADATA_VERSION_MAX) {
        return error_set(error, INVALID, ERROR_INVALID_REQUEST,
                         "Cannot upgrade table to unsupported format version: v%lld (supported: "
                         "v%d)",
                         (long long)version, METADATA_VERSION_MAX);
    }
    if (version < present) {
        return error_set(error, INVALID, ERROR_INVALID_REQUEST,
                         "Cannot downgrade v%lld table to v%lld", (long long)present,
                         (long long)version);
    }
    if (version > present) {
        version_raise(change->root, version);
        change->changed = true;
    }
    return OK;
}

static err change_set_location(struct change *change, const json_t *update, struct error *error)
{
    str location = document_text(update, "location");
    while (location.size > 1 && location.data[location.size - 1] == '/') {
        location.size--;
    }
    if (location.size == 0) {
        return error_set(error, INVALID, ERROR_INVALID_REQUEST, "set-location: no location");
    }
    if (!str_equal(location, document_text(change->root, "location"))) {
        document_set_text(change->root, "location", location);
        change->changed = true;
    }
    return OK;
}

/* ---- properties ---- */

bool metadata_property_reserved(const char *key)
{
    static const char *const RESERVED[] = {"format-version",      "uuid",
                                           "snapshot-count",      "current-snapshot-summary",
                                           "current-snapshot-id", "current-snapshot-timestamp-ms",
                                           "current-schema",      "default-partition-spec",
                                           "default-sort-order"};
    for (size_t i = 0; i < ARRAY_COUNT(RESERVED); i++) {
        if (strcmp(key, RESERVED[i]) == 0) {
            return true;
        }
    }
    return false;
}

json_t *change_member(const json_t *update, const char *key, const char *former)
{
    json_t *value = json_object_get(update, key);
    return value != NULL ? value : json_object_get(update, former);
}

static err change_set_properties(struct change *change, const json_t *update, struct error *error)
{
    json_t *updates = change_member(update, "updates", "updated");
    json_t *properties = document_object(change->root, "properties");
    const char *key = NULL;
    json_t *value = NULL;
    if (!json_is_object(updates)) {
        return error_set(error, INVALID, ERROR_INVALID_REQUEST, "set-properties: no updates");
    }
    json_object_foreach(updates, key, value)
    {
        if (!json_is_string(value)) {
            return error_set(error, INVALID, ERROR_INVALID_REQUEST,
                             "set-properties: the value of %.200s is no string", key);
        }
        if (!metadata_property_reserved(key)) {
            document_set(properties, key, json_incref(value));
            change->changed = true;
        }
    }
    return OK;
}

static err change_remove_properties(struct change *change, const json_t *update,
                                    struct error *error)
{
    const json_t *removals = change_member(update, "removals", "removed");
    json_t *properties = document_object(change->root, "properties");
    if (!json_is_array(removals)) {
        return error_set(error, INVALID, ERROR_INVALID_REQUEST, "remove-properties: no removals");
    }
    for (size_t i = 0; i < json_array_size(removals); i++) {
        str key = document_str(json_array_get(removals, i));
        if (key.data == NULL) {
            return error_set(error, INVALID, ERROR_INVALID_REQUEST,
                             "remove-properties: a key is no string");
        }
        if (json_object_get(properties, key.data) != NULL) {
            json_object_del(properties, key.data);
            change->changed = true;
        }
    }
    return OK;
}

/* ---- encryption keys ---- */

static size_t change_find_key(const json_t *keys, str id)
{
    size_t count = json_array_size(keys);
    for (size_t i = 0; i < count; i++) {
        if (str_equal(document_text(json_array_get(keys, i), "key-id"), id)) {
            return i;
        }
    }
    return count;
}

static err change_add_encryption_key(struct change *change, const json_t *update,
                                     struct error *error)
{
    const json_t *key = json_object_get(update, "encryption-key");
    str id = document_text(key, "key-id");
    if (id.size == 0 || document_text(key, "encrypted-key-metadata").data == NULL) {
        return error_set(error, INVALID, ERROR_INVALID_REQUEST,
                         "add-encryption-key: no key-id or encrypted-key-metadata");
    }
    if (document_i64_or(change->root, "format-version", 0) < 3) {
        return error_set(error, INVALID, ERROR_INVALID_REQUEST,
                         "encryption keys are not supported until v3");
    }
    json_t *keys = document_array(change->root, "encryption-keys");
    if (change_find_key(keys, id) == json_array_size(keys)) {
        document_append(keys, document_copy(key));
        change->changed = true;
    }
    return OK;
}

static err change_remove_encryption_key(struct change *change, const json_t *update,
                                        struct error *error)
{
    str id = document_text(update, "key-id");
    json_t *keys = json_object_get(change->root, "encryption-keys");
    if (id.data == NULL) {
        return error_set(error, INVALID, ERROR_INVALID_REQUEST, "remove-encryption-key: no key-id");
    }
    size_t at = change_find_key(keys, id);
    if (at < json_array_size(keys)) {
        json_array_remove(keys, at);
        change->changed = true;
    }
    return OK;
}

/* ---- all of them ---- */

static const struct {
    const char *action;
    change_function *apply;
} CHANGES[] = {
    {"assign-uuid", change_assign_uuid},
    {"upgrade-format-version", change_upgrade_version},
    {"add-schema", change_add_schema},
    {"set-current-schema", change_set_current_schema},
    {"add-spec", change_add_spec},
    {"set-default-spec", change_set_default_spec},
    {"add-sort-order", change_add_sort_order},
    {"set-default-sort-order", change_set_default_sort_order},
    {"add-snapshot", change_add_snapshot},
    {"set-snapshot-ref", change_set_snapshot_ref},
    {"remove-snapshots", change_remove_snapshots},
    {"remove-snapshot-ref", change_remove_snapshot_ref},
    {"set-location", change_set_location},
    {"set-properties", change_set_properties},
    {"remove-properties", change_remove_properties},
    {"set-statistics", change_set_statistics},
    {"remove-statistics", change_remove_statistics},
    {"set-partition-statistics", change_set_partition_statistics},
    {"remove-partition-statistics", change_remove_partition_statistics},
    {"remove-partition-specs", change_remove_specs},
    {"remove-schemas", change_remove_schemas},
    {"add-encryption-key", change_add_encryption_key},
    {"remove-encryption-key", change_remove_encryption_key},
};

MUST_USE static err change_apply_one(struct change *change, const json_t *update,
                                     struct error *error)
{
    str action = document_text(update, "action");
    for (size_t i = 0; i < ARRAY_COUNT(CHANGES); i++) {
        if (str_equal(action, str_from(CHANGES[i].action))) {
            return CHANGES[i].apply(change, update, error);
        }
    }
    return error_set(error, INVALID, ERROR_INVALID_REQUEST, "unknown update %.*s", STR_ARG(action));
}

err metadata_apply_updates(struct change *change, const json_t *updates, struct error *error)
{
    if (!json_is_array(updates)) {
        return error_set(error, INVALID, ERROR_INVALID_REQUEST, "updates is no array");
    }
    change->added_snapshots = map_create(change->arena, json_array_size(updates));
    if (change->added_snapshots == NULL) {
        return error_memory(error);
    }
    change->last_added_schema = -1;
    change->last_added_spec = -1;
    change->last_added_order = -1;
    change->log_start = json_array_size(json_object_get(change->root, "snapshot-log"));
    for (size_t i = 0; i < json_array_size(updates); i++) {
        TRY(change_apply_one(change, json_array_get(updates, i), error));
    }
    change_settle_snapshot_log(change);
    return OK;
}

/* ---- the stamp ---- */

static i64 metadata_last_of(const json_t *root, const char *log)
{
    const json_t *entries = json_object_get(root, log);
    const json_t *last = json_array_get(entries, json_array_size(entries) - 1);
    return document_i64_or(last, "timestamp-ms", 0);
}

/* The property as it is after this commit decides how long the log may be. */
static void metadata_push_log(json_t *root, i64 at_ms, str location)
{
    json_t *log = document_array(root, "metadata-log");
    i64 max = metadata_property_i64(metadata_of(root), METADATA_LOG_MAX_PROPERTY,
                                    METADATA_LOG_MAX_DEFAULT);
    size_t keep = max < 1 ? 0 : (size_t)max - 1;
    while (json_array_size(log) > keep) {
        json_array_remove(log, 0);
    }
    json_t *entry = json_object();
    document_set_i64(entry, "timestamp-ms", at_ms);
    document_set_text(entry, "metadata-file", location);
    document_append(log, entry);
}

err metadata_apply(struct metadata *metadata, const json_t *updates, instant now,
                   str previous_location, struct error *error)
{
    json_t *root = metadata_root(metadata);
    i64 before = document_i64_or(root, "last-updated-ms", 0);
    AUTO_ARENA struct arena *arena = arena_create(METADATA_SCRATCH_BYTES_MAX);
    struct change change = {
        .root = root, .arena = arena, .stamp_ms = num_max_i64(now / 1000, before + 1)};
    /* Clocks that run back have made tables unreadable. */
    change.stamp_ms = num_max_i64(change.stamp_ms, metadata_last_of(root, "snapshot-log"));
    change.stamp_ms = num_max_i64(change.stamp_ms, metadata_last_of(root, "metadata-log"));
    TRY(metadata_apply_updates(&change, updates, error));
    if (!change.changed) {
        return OK;
    }
    TRY(metadata_validate(root, error));
    metadata_copy_for_v1(root);
    document_set_i64(root, "last-updated-ms", change.stamp_ms);
    if (previous_location.size > 0) {
        metadata_push_log(root, before, previous_location);
    }
    return OK;
}

/* ---- afterwards ---- */

static const json_t *metadata_log_of(const struct metadata *metadata)
{
    return json_object_get(metadata_json(metadata), "metadata-log");
}

MUST_USE static err metadata_note_files(struct map *files, const json_t *log, struct error *error)
{
    for (size_t i = 0; i < json_array_size(log); i++) {
        str file = document_text(json_array_get(log, i), "metadata-file");
        bool is_new = false;
        if (file.data != NULL && map_put(files, file, &is_new) == NULL) {
            return error_memory(error);
        }
    }
    return OK;
}

err metadata_trimmed(struct arena *arena, const struct metadata *before,
                     const struct metadata *after, str **out_locations, size_t *out_count,
                     struct error *error)
{
    const json_t *old_log = metadata_log_of(before);
    size_t old_count = json_array_size(old_log);
    bool wanted = str_equal_ignore_case(metadata_property(after, METADATA_DELETE_PROPERTY),
                                        STR("true"));
    struct map *kept = map_create(arena, json_array_size(metadata_log_of(after)));
    str *locations = arena_array(arena, old_count, sizeof(*locations));
    if (kept == NULL || locations == NULL) {
        return error_memory(error);
    }
    TRY(metadata_note_files(kept, metadata_log_of(after), error));
    size_t count = 0;
    for (size_t i = 0; i < old_count && wanted; i++) {
        str file = document_text(json_array_get(old_log, i), "metadata-file");
        if (file.data == NULL || map_get(kept, file) != NULL) {
            continue;
        }
        locations[count] = str_copy(arena, file);
        if (locations[count++].data == NULL) {
            return error_memory(error);
        }
    }
    *out_locations = locations;
    *out_count = count;
    return OK;
}

bool metadata_has_applied(const struct metadata *metadata, const json_t *updates)
{
    bool some = false;
    for (size_t i = 0; i < json_array_size(updates); i++) {
        const json_t *update = json_array_get(updates, i);
        if (!str_equal(document_text(update, "action"), STR("add-snapshot"))) {
            continue;
        }
        const json_t *sent = json_object_get(update, "snapshot");
        i64 id = document_i64_or(sent, "snapshot-id", -1);
        const json_t *present = metadata_snapshot(metadata, id);
        str list = document_text(sent, "manifest-list");
        if (present == NULL || list.data == NULL ||
            !str_equal(list, document_text(present, "manifest-list"))) {
            return false;
        }
        some = true;
    }
    return some;
}
