#include "table/metadata.h"

#include "base/assert.h"
#include "table/metadata_private.h"

json_t *metadata_root(struct metadata *metadata)
{
    return (json_t *)(void *)metadata;
}

struct metadata *metadata_of(json_t *root)
{
    return (struct metadata *)(void *)root;
}

const json_t *metadata_json(const struct metadata *metadata)
{
    return (const json_t *)(const void *)metadata;
}

/* Takes the reference. */
MUST_USE static err metadata_take(json_t *root, struct metadata **out_metadata, struct error *error)
{
    err result = metadata_normalise(root, error);
    if (result != OK) {
        json_decref(root);
        return result;
    }
    *out_metadata = metadata_of(root);
    return OK;
}

err metadata_parse(str bytes, struct metadata **out_metadata, struct error *error)
{
    json_error_t reason;
    json_t *root = json_loadb(bytes.data != NULL ? bytes.data : "", bytes.size,
                              JSON_REJECT_DUPLICATES | JSON_ALLOW_NUL, &reason);
    if (root == NULL) {
        return error_set(error, CORRUPT, ERROR_INVALID_REQUEST,
                         "table metadata is not JSON: %s at byte %d", reason.text, reason.position);
    }
    return metadata_take(root, out_metadata, error);
}

err metadata_from_json(const json_t *document, struct metadata **out_metadata, struct error *error)
{
    return metadata_take(document_copy(document), out_metadata, error);
}

err metadata_copy(const struct metadata *metadata, struct metadata **out_copy, struct error *error)
{
    (void)error;
    *out_copy = metadata_of(document_branch(metadata_json(metadata)));
    return OK;
}

struct metadata *metadata_share(const struct metadata *metadata)
{
    return metadata_of(document_share(metadata_json(metadata)));
}

/* json_decref, for documents that several threads have read: who frees it has seen that they are
 * done. */
void metadata_close(struct metadata *metadata)
{
    json_t *root = metadata_root(metadata);
    if (root != NULL && __atomic_sub_fetch(&root->refcount, 1, __ATOMIC_ACQ_REL) == 0) {
        json_delete(root);
    }
}

void metadata_close_at(struct metadata **metadata)
{
    metadata_close(*metadata);
    *metadata = NULL;
}

err metadata_print(struct arena *arena, const struct metadata *metadata, str *out_bytes,
                   struct error *error)
{
    return document_print(arena, metadata_json(metadata), out_bytes, error);
}

i32 metadata_format_version(const struct metadata *metadata)
{
    return (i32)document_i64_or(metadata_json(metadata), "format-version", 0);
}

str metadata_uuid(const struct metadata *metadata)
{
    return document_text(metadata_json(metadata), "table-uuid");
}

str metadata_location(const struct metadata *metadata)
{
    str location = document_text(metadata_json(metadata), "location");
    while (location.size > 1 && location.data[location.size - 1] == '/') {
        location.size--;
    }
    return location;
}

i64 metadata_last_sequence_number(const struct metadata *metadata)
{
    return document_i64_or(metadata_json(metadata), "last-sequence-number", 0);
}

instant metadata_last_updated(const struct metadata *metadata)
{
    instant at = 0;
    i64 milliseconds = document_i64_or(metadata_json(metadata), "last-updated-ms", 0);
    return num_mul_i64(milliseconds, 1000, &at) ? at : INT64_MAX;
}

bool metadata_main(const struct metadata *metadata, i64 *out_snapshot_id)
{
    return metadata_current_snapshot(metadata_json(metadata), out_snapshot_id);
}

const json_t *metadata_snapshot(const struct metadata *metadata, i64 snapshot_id)
{
    return document_find(json_object_get(metadata_json(metadata), "snapshots"), "snapshot-id",
                         snapshot_id);
}

str metadata_property(const struct metadata *metadata, const char *key)
{
    return document_text(json_object_get(metadata_json(metadata), "properties"), key);
}

i64 metadata_property_i64(const struct metadata *metadata, const char *key, i64 otherwise)
{
    i64 value = otherwise;
    str text = metadata_property(metadata, key);
    return text.data != NULL && str_to_i64(text, &value) ? value : otherwise;
}

MUST_USE static err metadata_missing(struct error *error, const char *what, i64 id)
{
    return error_set(error, CORRUPT, ERROR_INTERNAL, "table metadata: no %s %lld", what,
                     (long long)id);
}

err metadata_schema_by_id(struct arena *arena, const struct metadata *metadata, i32 id,
                          struct schema *out_schema, struct error *error)
{
    const json_t *schemas = json_object_get(metadata_json(metadata), "schemas");
    const json_t *schema = document_find(schemas, "schema-id", id);
    if (schema == NULL) {
        return metadata_missing(error, "schema", id);
    }
    return schema_from_json(arena, schema, out_schema, error);
}

err metadata_schema(struct arena *arena, const struct metadata *metadata, struct schema *out_schema,
                    struct error *error)
{
    i64 id = document_i64_or(metadata_json(metadata), "current-schema-id", 0);
    return metadata_schema_by_id(arena, metadata, (i32)id, out_schema, error);
}

err metadata_spec_by_id(struct arena *arena, const struct metadata *metadata, i32 id,
                        struct partition_spec *out_spec, struct error *error)
{
    const json_t *specs = json_object_get(metadata_json(metadata), "partition-specs");
    const json_t *spec = document_find(specs, "spec-id", id);
    if (spec == NULL) {
        return metadata_missing(error, "partition spec", id);
    }
    return partition_from_json(arena, spec, out_spec, error);
}

err metadata_spec(struct arena *arena, const struct metadata *metadata,
                  struct partition_spec *out_spec, struct error *error)
{
    i64 id = document_i64_or(metadata_json(metadata), "default-spec-id", 0);
    return metadata_spec_by_id(arena, metadata, (i32)id, out_spec, error);
}

i32 metadata_last_column_id(const struct metadata *metadata)
{
    return (i32)document_i64_or(metadata_json(metadata), "last-column-id", 0);
}

i64 metadata_next_row_id(const struct metadata *metadata)
{
    if (metadata_format_version(metadata) < 3) {
        return -1;
    }
    return document_i64_or(metadata_json(metadata), "next-row-id", 0);
}
