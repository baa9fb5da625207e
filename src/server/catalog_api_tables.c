#include "base/base64.h"
#include "base/buf.h"
#include "io/crypto.h"
#include "server/catalog_api.h"

enum { ETAG_BYTES = 16 };

/* ---- the representation ---- */

enum snapshot_mode { SNAPSHOTS_ALL, SNAPSHOTS_REFS };

MUST_USE static err read_mode(struct catalog_request *request, enum snapshot_mode *out_mode,
                              struct error *error)
{
    str text = http_request_parameter(request->call->request, STR("snapshots"));
    if (text.size > 0 && !str_equal_ignore_case(text, STR("all")) &&
        !str_equal_ignore_case(text, STR("refs"))) {
        return error_set(error, INVALID, ERROR_INVALID_REQUEST, "snapshots: all or refs is wanted");
    }
    *out_mode = str_equal_ignore_case(text, STR("refs")) ? SNAPSHOTS_REFS : SNAPSHOTS_ALL;
    return OK;
}

/* Of the metadata file and what is shown of it; the files never change. Quoted. */
static str make_etag(struct arena *arena, str metadata_location, enum snapshot_mode mode)
{
    str text = str_format(arena, "%.*s %s", STR_ARG(metadata_location),
                          mode == SNAPSHOTS_REFS ? "refs" : "all");
    struct sha256 hash = crypto_sha256(text);
    buf etag = buf_create(arena, 64, 64);
    buf_append_byte(&etag, '"');
    base64_hex(&etag, (str){(const char *)hash.bytes, ETAG_BYTES});
    buf_append_byte(&etag, '"');
    return buf_str(&etag);
}

/* True when one of the header's tags is ours; weak marks and quotes do not count. */
static bool etag_matches(str header, str etag)
{
    str wanted = str_slice(etag, 1, etag.size - 1);
    str part;
    while (str_next(&header, ',', &part)) {
        str tag = str_trim(part);
        tag = str_starts(tag, STR("W/")) ? str_slice(tag, 2, tag.size) : tag;
        if (tag.size >= 2 && tag.data[0] == '"' && tag.data[tag.size - 1] == '"') {
            tag = str_slice(tag, 1, tag.size - 1);
        }
        if (str_equal(tag, wanted)) {
            return true;
        }
    }
    return false;
}

static bool is_referenced(const json_t *refs, json_int_t snapshot_id)
{
    const char *name;
    json_t *ref;
    /* The library's iterators take no const; nothing is changed through it. */
    json_object_foreach((json_t *)(uintptr_t)refs, name, ref)
    {
        if (json_integer_value(json_object_get(ref, "snapshot-id")) == snapshot_id) {
            return true;
        }
    }
    return false;
}

/* The document with the snapshots that a ref points at, alone. */
MUST_USE static err only_referenced(const struct metadata *metadata, struct metadata **out_metadata,
                                    struct error *error)
{
    const json_t *document = metadata_json(metadata);
    const json_t *snapshots = json_object_get(document, "snapshots");
    const json_t *refs = json_object_get(document, "refs");
    json_auto_t *shown = json_copy((json_t *)(uintptr_t)document);
    json_t *kept = json_array();
    for (size_t i = 0; i < json_array_size(snapshots); i++) {
        json_t *snapshot = json_array_get(snapshots, i);
        if (is_referenced(refs, json_integer_value(json_object_get(snapshot, "snapshot-id")))) {
            json_array_append(kept, snapshot);
        }
    }
    json_object_set_new(shown, "snapshots", kept);
    return metadata_from_json(shown, out_metadata, error);
}

/* The load answer. A local table gets no `config` and no credentials: engines take any as a hint
 * that the files lie in an object store. A staged table has no metadata-location. */
MUST_USE static err reply_table(struct catalog_request *request, const struct table *table,
                                enum snapshot_mode mode, struct error *error)
{
    AUTO_METADATA struct metadata *reduced = NULL;
    if (mode == SNAPSHOTS_REFS) {
        TRY(only_referenced(table->metadata, &reduced, error));
    }
    json_t *answer = json_object();
    if (table->metadata_location.size > 0) {
        json_object_set_new(answer, "metadata-location", catalog_text(table->metadata_location));
        request->etag = make_etag(request->arena, table->metadata_location, mode);
    }
    /* The library counts references in what it is given, and changes nothing else. */
    const json_t *shown = metadata_json(reduced != NULL ? reduced : table->metadata);
    json_object_set(answer, "metadata", (json_t *)(uintptr_t)shown);
    return catalog_reply(request, answer, error);
}

/* ---- loading ---- */

err catalog_list_tables_of(struct catalog_request *request, struct error *error)
{
    struct catalog_names names = {0};
    TRY(catalog_list_tables(&request->catalog, request->arena, request->namespace_name, &names,
                            error));
    return catalog_reply_names(request, &names, error);
}

err catalog_load_table(struct catalog_request *request, struct error *error)
{
    enum snapshot_mode mode = SNAPSHOTS_ALL;
    TRY(read_mode(request, &mode, error));
    str known = http_request_header(request->call->request, STR("If-None-Match"));
    if (known.size > 0) {
        str location = {0};
        TRY(catalog_local_find(request->local, request->arena, catalog_named(request), &location,
                               error));
        str etag = make_etag(request->arena, location, mode);
        if (etag_matches(known, etag)) {
            request->status = 304;
            request->etag = etag;
            return OK;
        }
    }
    AUTO_TABLE struct table table = {0};
    TRY(catalog_load(&request->catalog, request->arena, catalog_named(request), &table, error));
    return reply_table(request, &table, mode, error);
}

err catalog_head_table(struct catalog_request *request, struct error *error)
{
    str location = {0};
    TRY(catalog_local_find(request->local, request->arena, catalog_named(request), &location,
                           error));
    return catalog_reply_nothing(request);
}

/* Reports are taken and not kept. */
err catalog_report_metrics(struct catalog_request *request, struct error *error)
{
    return catalog_head_table(request, error);
}

/* ---- making and ending ---- */

/* The answer to a repeat. */
MUST_USE static err reply_present(struct catalog_request *request, struct error *error)
{
    AUTO_TABLE struct table table = {0};
    TRY(catalog_load(&request->catalog, request->arena, catalog_named(request), &table, error));
    return reply_table(request, &table, SNAPSHOTS_ALL, error);
}

err catalog_create_table(struct catalog_request *request, struct error *error)
{
    json_auto_t *body = NULL;
    AUTO_TABLE struct table table = {0};
    TRY(catalog_body(request, &body, error));
    TRY(catalog_body_name(body, &request->name, error));
    request->staged = json_is_true(json_object_get(body, "stage-create"));
    if (request->done) {
        return reply_present(request, error);
    }
    TRY(catalog_create(&request->catalog, request->arena, catalog_named(request), body, &table,
                       error));
    return reply_table(request, &table, SNAPSHOTS_ALL, error);
}

err catalog_register_table(struct catalog_request *request, struct error *error)
{
    json_auto_t *body = NULL;
    AUTO_TABLE struct table table = {0};
    struct catalog_registration wanted = {0};
    TRY(catalog_body(request, &body, error));
    TRY(catalog_read_registration(body, &wanted, error));
    request->name = wanted.name;
    if (request->done) {
        return reply_present(request, error);
    }
    TRY(catalog_local_register(request->local, request->arena, catalog_named(request),
                               wanted.metadata_location, wanted.how, &table, error));
    return reply_table(request, &table, SNAPSHOTS_ALL, error);
}

err catalog_drop_table(struct catalog_request *request, struct error *error)
{
    enum catalog_files files = catalog_query_flag(request, STR("purgeRequested"))
                                   ? CATALOG_FILES_PURGE
                                   : CATALOG_FILES_KEEP;
    if (!request->done) {
        TRY(catalog_local_drop(request->local, catalog_named(request), files, error));
    }
    return catalog_reply_nothing(request);
}

err catalog_unregister_table(struct catalog_request *request, struct error *error)
{
    AUTO_TABLE struct table table = {0};
    if (request->done) {
        return error_set(error, NOT_FOUND, ERROR_TABLE_NOT_FOUND,
                         "Table does not exist: this request has unregistered it before");
    }
    TRY(catalog_local_unregister(request->local, request->arena, catalog_named(request), &table,
                                 error));
    return reply_table(request, &table, SNAPSHOTS_ALL, error);
}

/* The tables of a local warehouse need none. */
err catalog_load_credentials(struct catalog_request *request, struct error *error)
{
    str location = {0};
    TRY(catalog_local_find(request->local, request->arena, catalog_named(request), &location,
                           error));
    return catalog_reply(request, json_pack("{s:[]}", "storage-credentials"), error);
}

err catalog_rename_table(struct catalog_request *request, struct error *error)
{
    return catalog_rename(request, CATALOG_TABLE, error);
}

/* ---- commits ---- */

err catalog_commit_table(struct catalog_request *request, struct error *error)
{
    json_auto_t *body = NULL;
    TRY(catalog_body(request, &body, error));
    if (request->done) {
        return reply_present(request, error);
    }
    struct catalog_change change = {
        .name = catalog_named(request), .request = body, .author = CATALOG_CLIENT};
    TRY(catalog_local_commit(request->local, request->arena, &change, 1, error));
    err result = reply_table(request, &change.after, SNAPSHOTS_ALL, error);
    table_close(&change.after);
    return result;
}

MUST_USE static err read_changes(struct catalog_request *request, const json_t *items,
                                 struct catalog_change *changes, struct error *error)
{
    for (size_t i = 0; i < json_array_size(items); i++) {
        const json_t *item = json_array_get(items, i);
        if (!json_is_object(json_object_get(item, "identifier"))) {
            return error_set(error, INVALID, ERROR_INVALID_REQUEST,
                             "table-changes[%zu]: an identifier is wanted", i);
        }
        TRY(catalog_table_from_json(request->arena, json_object_get(item, "identifier"),
                                    &changes[i].name, error));
        changes[i].request = item;
        changes[i].author = CATALOG_CLIENT;
    }
    return OK;
}

err catalog_commit_all(struct catalog_request *request, struct error *error)
{
    json_auto_t *body = NULL;
    if (request->done) {
        return catalog_reply_nothing(request);
    }
    TRY(catalog_body(request, &body, error));
    const json_t *items = json_object_get(body, "table-changes");
    size_t count = json_array_size(items);
    if (count == 0 || count > CATALOG_CHANGES_MAX) {
        return error_set(error, INVALID, ERROR_INVALID_REQUEST,
                         "table-changes: an array of 1 to %d changes is wanted",
                         CATALOG_CHANGES_MAX);
    }
    struct catalog_change *changes = arena_array(request->arena, count, sizeof(*changes));
    if (changes == NULL) {
        return error_memory(error);
    }
    TRY(read_changes(request, items, changes, error));
    err result = catalog_local_commit(request->local, request->arena, changes, count, error);
    for (size_t i = 0; i < count; i++) {
        table_close(&changes[i].after);
    }
    return result == OK ? catalog_reply_nothing(request) : result;
}
