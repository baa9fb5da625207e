#include "sink/lifecycle.h"

#include "base/assert.h"
#include "sink/settings.h"

#include <stdio.h>

struct lifecycle_bounds lifecycle_bounds_default(void)
{
    return (struct lifecycle_bounds){
        .roll_seconds_min = 60,
        .roll_seconds_max = 86400,
        .roll_seconds_default = 300,
        .roll_bytes_min = 32 * (i64)MIB,
        .roll_bytes_max = 64 * (i64)MIB,
        .roll_bytes_default = 64 * (i64)MIB,
        .inactivity_seconds_min = 1,
        .inactivity_seconds_max = 3600,
    };
}

struct lifecycle_bounds lifecycle_bounds_dev(void)
{
    struct lifecycle_bounds bounds = lifecycle_bounds_default();
    bounds.roll_seconds_min = 1;
    bounds.roll_seconds_default = 2;
    return bounds;
}

/* ---- names ---- */

str lifecycle_full_name(struct arena *arena, str warehouse, str namespace_name, str table_name)
{
    str text = str_format(arena, "%.*s.%.*s.%.*s", STR_ARG(warehouse), STR_ARG(namespace_name),
                          STR_ARG(table_name));
    char *bytes = (char *)(uintptr_t)text.data;
    for (size_t i = 0; i < text.size; i++) {
        if (bytes[i] == CATALOG_NAMESPACE_SEPARATOR) {
            bytes[i] = '.';
        }
    }
    return text;
}

err lifecycle_parse_table(struct arena *arena, str text, struct table_name *out_name,
                          struct error *error)
{
    i64 dot = str_find_last_byte(text, '.');
    if (dot <= 0 || (size_t)dot + 1 == text.size) {
        error_field_text(error, "path", STR("table"));
        return error_set(error, INVALID, ERROR_INVALID_REQUEST,
                         "table: <namespace>.<table> is wanted, not %.*s", STR_ARG(text));
    }
    str space = str_copy(arena, str_slice(text, 0, (size_t)dot));
    if (space.data == NULL) {
        return error_memory(error);
    }
    char *bytes = (char *)(uintptr_t)space.data;
    for (size_t i = 0; i < space.size; i++) {
        if (bytes[i] == '.') {
            bytes[i] = CATALOG_NAMESPACE_SEPARATOR;
        }
    }
    *out_name = (struct table_name){space, str_slice(text, (size_t)dot + 1, text.size)};
    return OK;
}

static err check_sink_name(str name, struct error *error)
{
    bool good = name.size >= 1 && name.size <= LIFECYCLE_NAME_MAX;
    for (size_t i = 0; good && i < name.size; i++) {
        char c = name.data[i];
        good = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
               c == '_' || c == '-';
    }
    if (good) {
        return OK;
    }
    error_field_text(error, "path", STR("name"));
    return error_set(error, INVALID, ERROR_INVALID_REQUEST,
                     "name: 1 to %d letters, digits, _ or - are wanted", LIFECYCLE_NAME_MAX);
}

/* ---- policy ---- */

static err check_bound(const char *name, i64 value, i64 low, i64 high, struct error *error)
{
    if (value >= low && value <= high) {
        return OK;
    }
    char bounds[96];
    int size = snprintf(bounds, sizeof(bounds), "{\"%s\":[%lld,%lld]}", name, (long long)low,
                        (long long)high);
    assert(size > 0 && (size_t)size < sizeof(bounds));
    error_field_json(error, "bounds", (str){bounds, (size_t)size});
    return error_set(error, INVALID, ERROR_INVALID_POLICY, "%s: %lld to %lld is wanted", name,
                     (long long)low, (long long)high);
}

static err check_policy(const struct lifecycle_bounds *bounds, i64 roll_seconds, i64 roll_bytes,
                        i64 inactivity_seconds, struct error *error)
{
    TRY(check_bound("roll_seconds", roll_seconds, bounds->roll_seconds_min,
                    bounds->roll_seconds_max, error));
    TRY(check_bound("roll_bytes", roll_bytes, bounds->roll_bytes_min, bounds->roll_bytes_max,
                    error));
    if (inactivity_seconds == 0) {
        return OK;
    }
    return check_bound("inactivity_seconds", inactivity_seconds, bounds->inactivity_seconds_min,
                       bounds->inactivity_seconds_max, error);
}

static err check_idempotency(str idempotency, struct error *error)
{
    if (str_equal(idempotency, STR("required")) || str_equal(idempotency, STR("optional"))) {
        return OK;
    }
    error_field_text(error, "path", STR("idempotency"));
    return error_set(error, INVALID, ERROR_INVALID_REQUEST,
                     "idempotency: required or optional is wanted");
}

/* ---- the table ---- */

/* Not there: tell which tables there are. */
static err table_missing(const struct warehouse *warehouse, struct arena *arena,
                         const struct lifecycle_request *request, struct error *error)
{
    struct catalog_names names = {0};
    buf list = buf_create(arena, 256, ERROR_FIELDS_MAX / 2);
    if (catalog_list_tables(&warehouse->catalog, arena, request->namespace_name, &names, NULL) !=
        OK) {
        names.count = 0;
    }
    buf_append_byte(&list, '[');
    for (size_t i = 0; i < names.count && list.size + names.names[i].size < ERROR_FIELDS_MAX / 4;
         i++) {
        buf_append(&list, i > 0 ? STR(",") : STR(""));
        buf_append_json_string(&list, names.names[i]);
    }
    buf_append_byte(&list, ']');
    str full = lifecycle_full_name(arena, request->warehouse, request->namespace_name,
                                   request->table_name);
    error_clear(error);
    error_field_json(error, "tables", buf_ok(&list) ? buf_str(&list) : STR("[]"));
    err result = error_set(error, NOT_FOUND, ERROR_TABLE_NOT_FOUND, "there is no table %.*s",
                           STR_ARG(full));
    error_hint(error, "make it first: lhbox table create %.*s --column NAME:TYPE …", STR_ARG(full));
    return result;
}

/* The property is absent, or names a sink of this installation that the ledger calls deleted. */
static err check_unclaimed(const struct lifecycle *lifecycle, struct arena *arena,
                           const struct metadata *metadata, struct error *error)
{
    str property = metadata_property(metadata, METADATA_ROLL_PROPERTY);
    if (property.data == NULL) {
        return OK;
    }
    str rest = property;
    str installation = {0};
    str sink_id = {0};
    if (str_next(&rest, ':', &installation) && str_next(&rest, ':', &sink_id) &&
        str_equal(installation, lifecycle->installation_id)) {
        struct ledger_sink owner = {0};
        err found = ledger_find_sink(lifecycle->db, arena, STR(""), sink_id, &owner, NULL);
        if (found == OK && owner.state == SINK_DELETED) {
            return OK;
        }
    }
    err result = error_set(error, CONFLICT, ERROR_TABLE_CLAIMED,
                           "the table's property " METADATA_ROLL_PROPERTY
                           " names another sink: %.*s",
                           STR_ARG(property));
    error_hint(error, "delete that sink where it lives, or remove the property when it is gone");
    return result;
}

/* 'name=…' for a shell: a quote in the name ends the text, stands escaped, and begins it again. */
static void append_column(buf *hint, str name)
{
    buf_append(hint, STR(" --column '"));
    for (size_t i = 0; i < name.size; i++) {
        if (name.data[i] == '\'') {
            buf_append(hint, STR("'\\''"));
        } else {
            buf_append_byte(hint, (u8)name.data[i]);
        }
    }
    buf_append(hint, STR("=…'"));
}

err lifecycle_docs_hint(struct arena *arena, str full_name, const struct metadata *metadata,
                        str *out_hint, struct error *error)
{
    struct schema schema = {0};
    TRY(metadata_schema(arena, metadata, &schema, error));
    buf hint = buf_create(arena, 256, 64 * (size_t)KIB);
    buf_append_format(&hint, "lhbox table document %.*s", STR_ARG(full_name));
    size_t command = hint.size;
    if (metadata_property(metadata, "comment").size == 0) {
        buf_append(&hint, STR(" --doc \"what one row is\""));
    }
    size_t named = 0;
    for (size_t i = 0; i < schema.root.field_count; i++) {
        const struct field *field = &schema.root.fields[i];
        if (field->doc.size > 0 || str_equal(field->name, STR(DECODE_INGEST_COLUMN))) {
            continue;
        }
        if (named++ < LIFECYCLE_HINT_COLUMNS_MAX) {
            append_column(&hint, field->name);
        }
    }
    if (named > LIFECYCLE_HINT_COLUMNS_MAX) {
        buf_append_format(&hint, "   # and %zu columns more", named - LIFECYCLE_HINT_COLUMNS_MAX);
    }
    if (!buf_ok(&hint)) {
        return error_memory(error);
    }
    *out_hint = hint.size == command ? (str){NULL, 0} : buf_str(&hint);
    return OK;
}

/* ---- the settings object ---- */

/* The transaction surely did not happen: its settings object tells of a sink that never was. A
 * remove that fails leaves one that says creating, which nobody believes. */
static void remove_settings(const struct warehouse *warehouse, str key)
{
    struct error ignored = {0};
    err removed = store_remove(&warehouse->files, key, &ignored);
    (void)removed;
}

/* ---- create ---- */

static err check_request(const struct lifecycle_bounds *bounds,
                         const struct lifecycle_request *request, struct error *error)
{
    TRY(check_sink_name(request->name, error));
    TRY(check_idempotency(request->idempotency, error));
    return check_policy(bounds, request->roll_seconds, request->roll_bytes,
                        request->inactivity_seconds, error);
}

static err check_table(const struct lifecycle *lifecycle, struct arena *arena,
                       const struct warehouse *warehouse, const struct lifecycle_request *request,
                       const struct metadata *metadata, struct error *error)
{
    TRY(attach_check(arena, metadata, error));
    TRY(attach_check_locations(arena, warehouse, metadata, error));
    struct schema schema = {0};
    struct decode_settings settings = {0};
    TRY(metadata_schema(arena, metadata, &schema, error));
    TRY(attach_parse_unknown(request->unknown_fields, &schema, &settings, error));
    return check_unclaimed(lifecycle, arena, metadata, error);
}

static err make_keys(const struct lifecycle *lifecycle, struct arena *arena,
                     struct ledger_sink *sink, str *out_send_key, struct error *error)
{
    str text = id_key_make(arena, lifecycle->seam, ID_KEY_SEND);
    struct uid claim = id_uid_make(lifecycle->seam);
    struct id_key key;
    sink->id = id_short_make(arena, lifecycle->seam, "snk_");
    sink->claim_id = str_copy(arena, id_uid_str(&claim));
    if (text.data == NULL || sink->id.data == NULL || sink->claim_id.data == NULL) {
        return error_memory(error);
    }
    bool well_formed = id_key_parse(text, &key);
    assert(well_formed);
    sink->send_key_id = key.public_id;
    sink->send_key_sha256 = crypto_sha256(text);
    *out_send_key = text;
    return OK;
}

static struct ledger_sink sink_of_request(const struct lifecycle_request *request,
                                          const struct metadata *metadata)
{
    return (struct ledger_sink){
        .project = request->project,
        .warehouse = request->warehouse,
        .namespace_name = request->namespace_name,
        .table_name = request->table_name,
        .table_uuid = metadata_uuid(metadata),
        .name = request->name,
        .config_version = 1,
        .roll_seconds = request->roll_seconds,
        .roll_bytes = request->roll_bytes,
        .inactivity_seconds = request->inactivity_seconds,
        .unknown_fields = request->unknown_fields,
        .idempotency = request->idempotency,
    };
}

err lifecycle_create(const struct lifecycle *lifecycle, struct arena *arena,
                     const struct lifecycle_bounds *bounds, const struct lifecycle_request *request,
                     struct lifecycle_created *out_created, struct error *error)
{
    TRY(check_request(bounds, request, error));
    const struct warehouse *warehouse = warehouse_get(lifecycle->warehouses, request->warehouse);
    if (warehouse == NULL || !str_equal(warehouse->project, request->project)) {
        return error_set(error, NOT_FOUND, ERROR_WAREHOUSE_NOT_FOUND, "there is no warehouse %.*s",
                         STR_ARG(request->warehouse));
    }
    const struct table_name name = {request->namespace_name, request->table_name};
    AUTO_TABLE struct table table = {0};
    err loaded = catalog_load(&warehouse->catalog, arena, name, &table, error);
    if (loaded == NOT_FOUND) {
        return table_missing(warehouse, arena, request, error);
    }
    TRY(loaded);
    TRY(check_table(lifecycle, arena, warehouse, request, table.metadata, error));

    struct lifecycle_created created = {0};
    struct ledger_sink sink = sink_of_request(request, table.metadata);
    TRY(make_keys(lifecycle, arena, &sink, &created.send_key, error));
    TRY(attach_warnings(arena, table.metadata, created.warnings, &created.warning_count, error));
    str full = lifecycle_full_name(arena, request->warehouse, request->namespace_name,
                                   request->table_name);
    TRY(lifecycle_docs_hint(arena, full, table.metadata, &created.docs_hint, error));
    str settings = {0};
    TRY(settings_write(&warehouse->files, lifecycle->seam, arena, lifecycle->installation_id, &sink,
                       SETTINGS_CREATING, &settings, error));
    CRASH_POINT(sink_settings_written);
    err inserted = ledger_insert_sink(lifecycle->db, &sink, error);
    CRASH_POINT(sink_inserted);
    if (inserted == CONFLICT) {
        remove_settings(warehouse, settings);
    }
    TRY(inserted);
    /* Before anybody learns the key: an older copy of the ledger gets the sink from here. */
    TRY(settings_write(&warehouse->files, lifecycle->seam, arena, lifecycle->installation_id, &sink,
                       SETTINGS_ACTIVE, NULL, error));
    created.sink_id = sink.id;
    *out_created = created;
    return OK;
}

/* ---- change ---- */

static struct ledger_sink patched(const struct ledger_sink *sink,
                                  const struct ledger_sink_patch *patch)
{
    struct ledger_sink changed = *sink;
    changed.config_version++;
    changed.name = patch->name != NULL ? *patch->name : sink->name;
    changed.roll_seconds = patch->roll_seconds != NULL ? *patch->roll_seconds : sink->roll_seconds;
    changed.roll_bytes = patch->roll_bytes != NULL ? *patch->roll_bytes : sink->roll_bytes;
    changed.inactivity_seconds = patch->inactivity_seconds != NULL ? *patch->inactivity_seconds
                                                                   : sink->inactivity_seconds;
    changed.unknown_fields = patch->unknown_fields != NULL ? *patch->unknown_fields
                                                           : sink->unknown_fields;
    changed.idempotency = patch->idempotency != NULL ? *patch->idempotency : sink->idempotency;
    return changed;
}

static err check_new_unknown(const struct warehouse *warehouse, struct arena *arena,
                             const struct ledger_sink *changed, struct error *error)
{
    AUTO_TABLE struct table table = {0};
    const struct table_name name = {changed->namespace_name, changed->table_name};
    TRY(catalog_load(&warehouse->catalog, arena, name, &table, error));
    struct schema schema = {0};
    struct decode_settings settings = {0};
    TRY(metadata_schema(arena, table.metadata, &schema, error));
    return attach_parse_unknown(changed->unknown_fields, &schema, &settings, error);
}

err lifecycle_patch(const struct lifecycle *lifecycle, struct arena *arena,
                    const struct lifecycle_bounds *bounds, const struct ledger_sink *sink,
                    const struct ledger_sink_patch *patch, struct error *error)
{
    struct ledger_sink changed = patched(sink, patch);
    const struct warehouse *warehouse = warehouse_get(lifecycle->warehouses, sink->warehouse);
    assert(warehouse != NULL);
    TRY(check_sink_name(changed.name, error));
    TRY(check_idempotency(changed.idempotency, error));
    TRY(check_policy(bounds, changed.roll_seconds, changed.roll_bytes, changed.inactivity_seconds,
                     error));
    if (patch->unknown_fields != NULL) {
        TRY(check_new_unknown(warehouse, arena, &changed, error));
    }
    bool changes = patch->name != NULL || patch->roll_seconds != NULL ||
                   patch->roll_bytes != NULL || patch->inactivity_seconds != NULL ||
                   patch->unknown_fields != NULL || patch->idempotency != NULL;
    if (changes) {
        TRY(settings_write(&warehouse->files, lifecycle->seam, arena, lifecycle->installation_id,
                           &changed, SETTINGS_ACTIVE, NULL, error));
        TRY(ledger_patch_sink(lifecycle->db, sink->id, patch, error));
    }
    return sink->state == SINK_DISABLED ? ledger_resume_sink(lifecycle->db, sink->id, error) : OK;
}
