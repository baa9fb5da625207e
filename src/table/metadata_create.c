/* A table's first metadata: from a CreateTableRequest, or from the updates that end a staged
 * create. */
#include "base/assert.h"
#include "base/id.h"
#include "table/metadata_private.h"

enum { METADATA_VERSION_DEFAULT = 2 };

#define METADATA_CODEC_PROPERTY "write.parquet.compression-codec"

/* The request's schema as sent, and with fresh ids; both trees have the same shape. */
struct create {
    struct arena *arena;
    const json_t *request;
    i64 version;
    struct schema sent;
    struct schema fresh;
    i32 last_column_id;
};

MUST_USE static err create_read_version(const json_t *properties, i64 *out_version,
                                        struct error *error)
{
    i64 version = METADATA_VERSION_DEFAULT;
    str text = document_text(properties, "format-version");
    if (text.data != NULL && !str_to_i64(text, &version)) {
        version = 0;
    }
    if (version < 1 || version > METADATA_VERSION_MAX) {
        return error_set(error, INVALID, ERROR_FORMAT_VERSION_UNSUPPORTED,
                         "Unsupported format version: %.*s (new tables have 1 to 3)",
                         STR_ARG(text));
    }
    *out_version = version;
    return OK;
}

MUST_USE static err create_read_schema(struct create *create, struct error *error)
{
    const json_t *document = json_object_get(create->request, "schema");
    TRY(schema_from_json(create->arena, document, &create->sent, error));
    TRY(metadata_check_schema(document, &create->sent, create->version, error));
    TRY(schema_from_json(create->arena, document, &create->fresh, error));
    create->fresh.id = 0;
    schema_assign_ids(&create->fresh.root, &create->last_column_id);
    return OK;
}

/* The fresh id of a field that the request names by its own; -1: none. */
static i64 create_map_id(const struct create *create, i64 sent_id)
{
    struct schema_walk sent;
    struct schema_walk fresh;
    schema_walk_begin(&sent, &create->sent.root);
    schema_walk_begin(&fresh, &create->fresh.root);
    const struct field *field = schema_walk_next(&sent);
    const struct field *twin = schema_walk_next(&fresh);
    while (field != NULL && field->id != sent_id) {
        field = schema_walk_next(&sent);
        twin = schema_walk_next(&fresh);
    }
    return field != NULL ? twin->id : -1;
}

static json_t *create_schema(const struct create *create)
{
    json_t *result = schema_to_json(&create->fresh);
    const json_t *document = json_object_get(create->request, "schema");
    const json_t *identifiers = json_object_get(document, "identifier-field-ids");
    if (json_array_size(identifiers) > 0) {
        json_t *ids = document_array(result, "identifier-field-ids");
        for (size_t i = 0; i < json_array_size(identifiers); i++) {
            i64 id = json_integer_value(json_array_get(identifiers, i));
            document_append(ids, json_integer(create_map_id(create, id)));
        }
    }
    return result;
}

/* Copies the fields of a spec or sort order with their sources' fresh ids. */
MUST_USE static err create_copy_fields(const struct create *create, const json_t *document,
                                       json_t *out_fields, struct error *error)
{
    const json_t *fields = json_object_get(document, "fields");
    for (size_t i = 0; i < json_array_size(fields); i++) {
        const json_t *field = json_array_get(fields, i);
        i64 sent_id = document_i64_or(field, "source-id", -1);
        i64 id = create_map_id(create, sent_id);
        if (id == -1) {
            return error_set(error, INVALID, ERROR_INVALID_REQUEST,
                             "Cannot find source column: %lld", (long long)sent_id);
        }
        json_t *copy = document_copy(field);
        document_set_i64(copy, "source-id", id);
        document_append(out_fields, copy);
    }
    return OK;
}

MUST_USE static err create_add_spec(const struct create *create, json_t *root, struct error *error)
{
    json_t *spec = json_object();
    document_set_i64(spec, "spec-id", 0);
    document_append(document_array(root, "partition-specs"), spec);
    document_set_i64(root, "default-spec-id", 0);
    json_t *fields = document_array(spec, "fields");
    const json_t *sent = json_object_get(create->request, "partition-spec");
    TRY(create_copy_fields(create, sent, fields, error));
    for (size_t i = 0; i < json_array_size(fields); i++) {
        document_set_i64(json_array_get(fields, i), "field-id",
                         METADATA_PARTITION_ID_FIRST + (i64)i);
    }
    document_set_i64(root, "last-partition-id",
                     METADATA_PARTITION_ID_FIRST - 1 + (i64)json_array_size(fields));
    struct partition_spec checked = {0};
    TRY(partition_from_json(create->arena, spec, &checked, error));
    return partition_check(&checked, &create->fresh.root, error);
}

MUST_USE static err create_add_order(const struct create *create, json_t *root, struct error *error)
{
    json_t *orders = document_array(root, "sort-orders");
    json_t *order = json_object();
    document_append(orders, order);
    json_t *fields = document_array(order, "fields");
    const json_t *sent = json_object_get(create->request, "write-order");
    TRY(create_copy_fields(create, sent, fields, error));
    TRY(metadata_check_order(order, &create->fresh.root, error));
    i64 id = json_array_size(fields) > 0 ? 1 : 0;
    document_set_i64(order, "order-id", id);
    document_set_i64(root, "default-sort-order-id", id);
    return OK;
}

MUST_USE static err create_add_properties(json_t *root, json_t *sent, struct error *error)
{
    json_t *properties = document_object(root, "properties");
    document_set_text(properties, METADATA_CODEC_PROPERTY, STR("zstd"));
    const char *key = NULL;
    json_t *value = NULL;
    json_object_foreach(sent, key, value)
    {
        if (!json_is_string(value)) {
            return error_set(error, INVALID, ERROR_INVALID_REQUEST,
                             "the value of property %.200s is no string", key);
        }
        if (!metadata_property_reserved(key)) {
            document_set(properties, key, json_incref(value));
        }
    }
    return OK;
}

/* What every new document has. */
static void create_begin(json_t *root, i64 version, str location, i64 at_ms)
{
    while (location.size > 1 && location.data[location.size - 1] == '/') {
        location.size--;
    }
    document_set_i64(root, "format-version", version);
    document_set_text(root, "location", location);
    document_set_i64(root, "last-sequence-number", 0);
    document_set_i64(root, "last-updated-ms", at_ms);
    document_set_i64(root, "last-column-id", 0);
    document_set_i64(root, "last-partition-id", METADATA_PARTITION_ID_FIRST - 1);
    if (version >= 3) {
        document_set_i64(root, "next-row-id", 0);
    }
    metadata_set_no_snapshot(root);
}

static void create_assign_uuid(json_t *root, const struct seam *seam)
{
    char text[ID_UUID_SIZE];
    document_set_text(root, "table-uuid", id_uuid_format(id_uuid_make(seam), text));
}

MUST_USE static err create_fill(struct create *create, json_t *root, str location,
                                const struct seam *seam, struct error *error)
{
    json_t *properties = json_object_get(create->request, "properties");
    TRY(create_read_version(properties, &create->version, error));
    TRY(create_read_schema(create, error));
    create_begin(root, create->version, location, seam_now(seam) / 1000);
    create_assign_uuid(root, seam);
    document_append(document_array(root, "schemas"), create_schema(create));
    document_set_i64(root, "current-schema-id", 0);
    document_set_i64(root, "last-column-id", create->last_column_id);
    TRY(create_add_spec(create, root, error));
    TRY(create_add_order(create, root, error));
    TRY(create_add_properties(root, properties, error));
    TRY(metadata_normalise(root, error));
    metadata_copy_for_v1(root);
    return OK;
}

err metadata_create(const json_t *request, str location, const struct seam *seam,
                    struct metadata **out_metadata, struct error *error)
{
    AUTO_ARENA struct arena *arena = arena_create(METADATA_SCRATCH_BYTES_MAX);
    struct create create = {.arena = arena, .request = request};
    json_t *root = json_object();
    err result = create_fill(&create, root, location, seam, error);
    if (result != OK) {
        json_decref(root);
        return result;
    }
    *out_metadata = metadata_of(root);
    return OK;
}

/* ---- from updates ---- */

static i64 create_version_of(const json_t *updates)
{
    i64 version = 0;
    for (size_t i = 0; i < json_array_size(updates); i++) {
        const json_t *update = json_array_get(updates, i);
        if (str_equal(document_text(update, "action"), STR("upgrade-format-version"))) {
            version = num_max_i64(version, document_i64_or(update, "format-version", 0));
        }
    }
    return version < 1 ? METADATA_VERSION_DEFAULT : num_min_i64(version, METADATA_VERSION_MAX);
}

MUST_USE static err create_apply(json_t *root, const json_t *updates, str location,
                                 const struct seam *seam, struct error *error)
{
    AUTO_ARENA struct arena *arena = arena_create(METADATA_SCRATCH_BYTES_MAX);
    i64 now_ms = seam_now(seam) / 1000;
    struct change change = {.root = root, .arena = arena, .stamp_ms = now_ms};
    create_begin(root, create_version_of(updates), location, now_ms);
    TRY(metadata_apply_updates(&change, updates, error));
    if (document_text(root, "table-uuid").size == 0) {
        create_assign_uuid(root, seam);
    }
    document_set_i64(root, "last-updated-ms", change.stamp_ms);
    TRY(metadata_normalise(root, error));
    metadata_copy_for_v1(root);
    return OK;
}

err metadata_create_from_updates(const json_t *updates, str location, const struct seam *seam,
                                 struct metadata **out_metadata, struct error *error)
{
    json_t *root = json_object();
    err result = create_apply(root, updates, location, seam, error);
    if (result != OK) {
        json_decref(root);
        return result;
    }
    *out_metadata = metadata_of(root);
    return OK;
}
