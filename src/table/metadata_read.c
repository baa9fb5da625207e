/* Loading a document: what older versions left out is added, what no reader would open is
 * refused. */
#include "base/assert.h"
#include "table/metadata_private.h"

bool metadata_current_snapshot(const json_t *root, i64 *out_snapshot_id)
{
    i64 id = document_i64_or(root, "current-snapshot-id", -1);
    if (id == -1) {
        return false;
    }
    *out_snapshot_id = id;
    return true;
}

void metadata_set_no_snapshot(json_t *root)
{
    /* Old readers of version 2 cannot parse a missing or null value. */
    bool null_allowed = document_i64_or(root, "format-version", 0) >= 3;
    document_set(root, "current-snapshot-id", null_allowed ? json_null() : json_integer(-1));
}

/* ---- what older versions leave out ---- */

static void metadata_add_schemas(json_t *root)
{
    const json_t *schema = json_object_get(root, "schema");
    if (json_is_array(json_object_get(root, "schemas")) || !json_is_object(schema)) {
        return;
    }
    json_t *copy = document_copy(schema);
    i64 id = document_i64_or(copy, "schema-id", 0);
    document_set_i64(copy, "schema-id", id);
    document_append(document_array(root, "schemas"), copy);
    document_set_i64(root, "current-schema-id", id);
}

static void metadata_add_specs(json_t *root)
{
    const json_t *fields = json_object_get(root, "partition-spec");
    if (json_is_array(json_object_get(root, "partition-specs")) || !json_is_array(fields)) {
        return;
    }
    json_t *spec = json_object();
    document_set_i64(spec, "spec-id", 0);
    document_set(spec, "fields", document_copy(fields));
    /* Version 1 numbered the fields by their order. */
    json_t *copies = json_object_get(spec, "fields");
    for (size_t i = 0; i < json_array_size(copies); i++) {
        json_t *field = json_array_get(copies, i);
        if (json_is_object(field) && json_object_get(field, "field-id") == NULL) {
            document_set_i64(field, "field-id", METADATA_PARTITION_ID_FIRST + (i64)i);
        }
    }
    document_append(document_array(root, "partition-specs"), spec);
    document_set_i64(root, "default-spec-id", 0);
}

static i64 metadata_highest_partition_id(const json_t *root)
{
    i64 highest = METADATA_PARTITION_ID_FIRST - 1;
    const json_t *specs = json_object_get(root, "partition-specs");
    for (size_t i = 0; i < json_array_size(specs); i++) {
        const json_t *fields = json_object_get(json_array_get(specs, i), "fields");
        for (size_t j = 0; j < json_array_size(fields); j++) {
            const json_t *field = json_array_get(fields, j);
            highest = num_max_i64(highest, document_i64_or(field, "field-id", 0));
        }
    }
    return highest;
}

static void metadata_add_sort_orders(json_t *root)
{
    if (json_array_size(document_array(root, "sort-orders")) == 0) {
        json_t *unsorted = json_object();
        document_set_i64(unsorted, "order-id", 0);
        document_set(unsorted, "fields", json_array());
        document_append(document_array(root, "sort-orders"), unsorted);
        document_set_i64(root, "default-sort-order-id", 0);
    }
}

static void metadata_add_main(json_t *root)
{
    i64 current = 0;
    json_t *refs = document_object(root, "refs");
    if (!metadata_current_snapshot(root, &current)) {
        metadata_set_no_snapshot(root);
    } else if (json_object_get(refs, METADATA_MAIN) == NULL) {
        json_t *ref = json_object();
        document_set_i64(ref, "snapshot-id", current);
        document_set_text(ref, "type", STR("branch"));
        document_set(refs, METADATA_MAIN, ref);
    }
}

static void metadata_drop_nulls(json_t *root)
{
    const json_t *snapshots = json_object_get(root, "snapshots");
    for (size_t i = 0; i < json_array_size(snapshots); i++) {
        json_t *snapshot = json_array_get(snapshots, i);
        document_drop_nulls(snapshot);
        if (document_i64_or(snapshot, "parent-snapshot-id", 0) == -1) {
            json_object_del(snapshot, "parent-snapshot-id");
        }
    }
}

static void metadata_complete(json_t *root)
{
    static const char *const LISTS[] = {"snapshots", "snapshot-log", "metadata-log", "statistics",
                                        "partition-statistics"};
    for (size_t i = 0; i < ARRAY_COUNT(LISTS); i++) {
        document_array(root, LISTS[i]);
    }
    document_object(root, "properties");
    metadata_add_schemas(root);
    metadata_add_specs(root);
    metadata_add_sort_orders(root);
    metadata_add_main(root);
    i64 last_partition = document_i64_or(root, "last-partition-id", 0);
    document_set_i64(root, "last-partition-id",
                     num_max_i64(last_partition, metadata_highest_partition_id(root)));
    document_set_i64(root, "last-sequence-number",
                     document_i64_or(root, "last-sequence-number", 0));
}

void metadata_copy_for_v1(json_t *root)
{
    if (document_i64_or(root, "format-version", 0) != 1) {
        return;
    }
    const json_t *schema = document_find(json_object_get(root, "schemas"), "schema-id",
                                         document_i64_or(root, "current-schema-id", -1));
    const json_t *spec = document_find(json_object_get(root, "partition-specs"), "spec-id",
                                       document_i64_or(root, "default-spec-id", -1));
    document_set(root, "schema", document_copy(schema));
    document_set(root, "partition-spec", document_copy(json_object_get(spec, "fields")));
}

/* ---- what every reader checks ---- */

MUST_USE static err metadata_bad(struct error *error, const char *what)
{
    return error_set(error, INVALID, ERROR_INVALID_REQUEST, "table metadata: %s", what);
}

/* Every item is an object with its own integer under `key`, and `wanted` (-1: none) is among
 * them. */
MUST_USE static err metadata_check_ids(const json_t *root, const char *list, const char *key,
                                       i64 wanted, struct error *error)
{
    AUTO_ARENA struct arena *arena = arena_create(METADATA_SCRATCH_BYTES_MAX);
    const json_t *items = json_object_get(root, list);
    size_t count = json_array_size(items);
    struct map *seen = map_create(arena, count);
    bool found = wanted == -1;
    for (size_t i = 0; i < count; i++) {
        i64 *id = arena_alloc(arena, sizeof(*id));
        bool is_new = false;
        if (id == NULL || seen == NULL) {
            return error_memory(error);
        }
        if (!document_i64(json_array_get(items, i), key, id)) {
            return error_set(error, INVALID, ERROR_INVALID_REQUEST,
                             "table metadata: an item of %s has no %s", list, key);
        }
        if (map_put(seen, (str){(const char *)id, sizeof(*id)}, &is_new) == NULL) {
            return error_memory(error);
        }
        if (!is_new) {
            return error_set(error, INVALID, ERROR_INVALID_REQUEST,
                             "table metadata: %s names %s %lld twice", list, key, (long long)*id);
        }
        found = found || *id == wanted;
    }
    if (!found) {
        return error_set(error, INVALID, ERROR_INVALID_REQUEST, "table metadata: %s has no %s %lld",
                         list, key, (long long)wanted);
    }
    return OK;
}

/* Schemas, specs and orders are lists of fields, however short. */
MUST_USE static err metadata_check_fields(const json_t *root, const char *list, struct error *error)
{
    const json_t *items = json_object_get(root, list);
    for (size_t i = 0; i < json_array_size(items); i++) {
        if (!json_is_array(json_object_get(json_array_get(items, i), "fields"))) {
            return error_set(error, INVALID, ERROR_INVALID_REQUEST,
                             "table metadata: an item of %s has no fields", list);
        }
    }
    return OK;
}

MUST_USE static err metadata_check_refs(const json_t *root, struct error *error)
{
    json_t *refs = json_object_get(root, "refs");
    const json_t *snapshots = json_object_get(root, "snapshots");
    const char *name = NULL;
    json_t *ref = NULL;
    json_object_foreach(refs, name, ref)
    {
        i64 id = 0;
        if (!document_i64(ref, "snapshot-id", &id) ||
            document_find(snapshots, "snapshot-id", id) == NULL) {
            return error_set(error, INVALID, ERROR_INVALID_REQUEST,
                             "table metadata: ref %.64s names no snapshot", name);
        }
    }
    i64 current = -1;
    bool has_current = metadata_current_snapshot(root, &current);
    const json_t *main_ref = json_object_get(refs, METADATA_MAIN);
    if (has_current != (main_ref != NULL) ||
        (has_current && document_i64_or(main_ref, "snapshot-id", -1) != current)) {
        return metadata_bad(error, "main is not the current snapshot");
    }
    return OK;
}

MUST_USE static err metadata_check_snapshots(const json_t *root, struct error *error)
{
    i64 last = document_i64_or(root, "last-sequence-number", 0);
    const json_t *snapshots = json_object_get(root, "snapshots");
    for (size_t i = 0; i < json_array_size(snapshots); i++) {
        const json_t *snapshot = json_array_get(snapshots, i);
        if (document_i64_or(snapshot, "sequence-number", 0) > last) {
            return metadata_bad(error, "a snapshot is ahead of last-sequence-number");
        }
    }
    return OK;
}

MUST_USE static err metadata_check_scalars(const json_t *root, struct error *error)
{
    i32 number = 0;
    i64 version = document_i64_or(root, "format-version", 0);
    if (version < 1 || version > METADATA_VERSION_MAX) {
        return error_set(error, INVALID, ERROR_FORMAT_VERSION_UNSUPPORTED,
                         "Cannot read unsupported version %lld", (long long)version);
    }
    if (document_text(root, "location").size == 0) {
        return metadata_bad(error, "no location");
    }
    if (document_text(root, "table-uuid").size == 0 && version > 1) {
        return metadata_bad(error, "no table-uuid");
    }
    if (document_i64_or(root, "last-updated-ms", -1) < 0) {
        return metadata_bad(error, "no last-updated-ms");
    }
    if (!document_i32(root, "last-column-id", &number)) {
        return metadata_bad(error, "no last-column-id");
    }
    if (version >= 3 && document_i64_or(root, "next-row-id", -1) < 0) {
        return metadata_bad(error, "no next-row-id");
    }
    return OK;
}

err metadata_validate(const json_t *root, struct error *error)
{
    TRY(metadata_check_scalars(root, error));
    i64 schema_id = document_i64_or(root, "current-schema-id", -2);
    i64 spec_id = document_i64_or(root, "default-spec-id", -2);
    i64 order_id = document_i64_or(root, "default-sort-order-id", -2);
    TRY(metadata_check_ids(root, "schemas", "schema-id", schema_id, error));
    TRY(metadata_check_ids(root, "partition-specs", "spec-id", spec_id, error));
    TRY(metadata_check_ids(root, "sort-orders", "order-id", order_id, error));
    TRY(metadata_check_ids(root, "snapshots", "snapshot-id", -1, error));
    TRY(metadata_check_fields(root, "schemas", error));
    TRY(metadata_check_fields(root, "partition-specs", error));
    TRY(metadata_check_fields(root, "sort-orders", error));
    TRY(metadata_check_refs(root, error));
    return metadata_check_snapshots(root, error);
}

err metadata_normalise(json_t *root, struct error *error)
{
    if (!json_is_object(root)) {
        return metadata_bad(error, "no JSON object");
    }
    metadata_drop_nulls(root);
    metadata_complete(root);
    return metadata_validate(root, error);
}
