#include "server/dev.h"

#include "io/file.h"
#include "server/connect.h"
#include "server/roller.h"
#include "sink/intake.h"
#include "sink/lifecycle.h"

#define DEV_WAREHOUSE "dev"
#define DEV_NAMESPACE "demo"
#define DEV_TABLE     "events"
#define DEV_SINK      "demo_in"
#define DEV_PROJECT   "default"

enum { PROFILE_BYTES_MAX = 64 * KIB };

/* ---- dev.json ---- */

static str profile_path(struct arena *arena, const struct service *service)
{
    return str_format(arena, "%.*s/dev.json", STR_ARG(service->data_directory));
}

static str member(struct arena *arena, const json_t *object, const char *name)
{
    const json_t *value = json_object_get(object, name);
    if (!json_is_string(value)) {
        return STR("");
    }
    return str_copy(arena, (str){json_string_value(value), json_string_length(value)});
}

MUST_USE static err profile_read(struct arena *arena, str path, struct dev_profile *out_profile,
                                 struct error *error)
{
    str text = {0};
    json_error_t why = {0};
    TRY(file_read(arena, path, PROFILE_BYTES_MAX, &text, error));
    json_t *json = json_loadb(text.data, text.size, 0, &why);
    const json_t *demo = json_object_get(json, "demo");
    struct dev_profile profile = {.api_key = member(arena, json, "api_key"),
                                  .table = member(arena, demo, "table"),
                                  .sink_id = member(arena, demo, "sink_id"),
                                  .send_key = member(arena, demo, "send_key")};
    json_decref(json);
    if (profile.api_key.size == 0) {
        err result = error_set(error, INVALID, ERROR_INVALID_CONFIG, "%.*s holds no API key",
                               STR_ARG(path));
        error_hint(error, "remove the file: the next start makes another key");
        return result;
    }
    *out_profile = profile;
    return OK;
}

err dev_save(struct arena *arena, const struct service *service, const struct dev_profile *profile,
             struct error *error)
{
    str iceberg = str_format(arena, "%.*s/iceberg", STR_ARG(service->public_url));
    str path = profile_path(arena, service);
    if (iceberg.data == NULL || path.data == NULL) {
        return error_memory(error);
    }
    json_t *json = json_pack(
        "{s:s%, s:s%, s:s, s:s%, s:s%, s:{s:s%, s:s%, s:s%}}", "url", service->public_url.data,
        service->public_url.size, "api_key", profile->api_key.data, profile->api_key.size,
        "warehouse", DEV_WAREHOUSE, "iceberg_uri", iceberg.data, iceberg.size, "internal_url",
        service->internal_url.data, service->internal_url.size, "demo", "table",
        profile->table.data, profile->table.size, "sink_id", profile->sink_id.data,
        profile->sink_id.size, "send_key", profile->send_key.data, profile->send_key.size);
    buf text = buf_create(arena, KIB, PROFILE_BYTES_MAX);
    char *room = json != NULL ? buf_reserve(&text, PROFILE_BYTES_MAX / 2) : NULL;
    size_t size = room != NULL ? json_dumpb(json, room, PROFILE_BYTES_MAX / 2, JSON_INDENT(2)) : 0;
    json_decref(json);
    if (size == 0 || size >= PROFILE_BYTES_MAX / 2) {
        return error_memory(error);
    }
    buf_commit(&text, size);
    buf_append_byte(&text, '\n');
    return file_write_durable(path, buf_str(&text), 0600, error);
}

/* ---- making things; each step finds what an earlier start made ---- */

/* *out_project is empty when there is none. */
MUST_USE static err find_project(struct arena *arena, const struct service *service,
                                 str *out_project, struct error *error)
{
    struct access_project *projects = NULL;
    size_t count = 0;
    TRY(access_list_projects(&service->db, arena, &projects, &count, error));
    *out_project = STR("");
    for (size_t i = 0; i < count; i++) {
        if (str_equal(projects[i].name, STR(DEV_PROJECT))) {
            *out_project = projects[i].id;
        }
    }
    return OK;
}

MUST_USE static err make_key(struct arena *arena, const struct service *service, str *out_project,
                             str *out_key, struct error *error)
{
    str project = {0};
    TRY(find_project(arena, service, &project, error));
    if (project.size > 0) {
        struct access_key row = {0};
        *out_project = project;
        return access_create_key(&service->db, arena, service->seam, project, STR("dev"),
                                 ACCESS_ADMIN, 0, out_key, &row, error);
    }
    return access_create_project(&service->db, arena, service->seam, STR(DEV_PROJECT), out_project,
                                 out_key, error);
}

MUST_USE static err make_table(struct arena *arena, const struct warehouse *warehouse,
                               struct error *error)
{
    static const char *const request =
        "{\"name\":\"" DEV_TABLE "\",\"schema\":{\"type\":\"struct\",\"schema-id\":0,\"fields\":["
        "{\"id\":1,\"name\":\"x\",\"required\":true,\"type\":\"long\",\"doc\":\"a number\"},"
        "{\"id\":2,\"name\":\"who\",\"required\":false,\"type\":\"string\",\"doc\":\"a name\"}]},"
        "\"properties\":{\"comment\":\"a table to try things on\"}}";
    AUTO_TABLE struct table table = {0};
    struct table_name name = {.namespace_name = STR(DEV_NAMESPACE), .name = STR(DEV_TABLE)};
    TRY(catalog_create_namespace(&warehouse->catalog, STR(DEV_NAMESPACE), error));
    json_t *json = json_loads(request, 0, NULL);
    if (json == NULL) {
        return error_memory(error);
    }
    err result = catalog_create(&warehouse->catalog, arena, name, json, &table, error);
    json_decref(json);
    if (result == CONFLICT) {
        error_clear(error);
        return OK;
    }
    return result;
}

MUST_USE static err make_sink(struct arena *arena, const struct service *service, str project,
                              struct dev_profile *profile, struct error *error)
{
    struct lifecycle lifecycle = {.db = &service->db,
                                  .seam = service->seam,
                                  .warehouses = service->warehouses,
                                  .installation_id = service->installation_id};
    struct lifecycle_bounds bounds = lifecycle_bounds_dev();
    struct lifecycle_request request = {.project = project,
                                        .name = STR(DEV_SINK),
                                        .warehouse = STR(DEV_WAREHOUSE),
                                        .namespace_name = STR(DEV_NAMESPACE),
                                        .table_name = STR(DEV_TABLE),
                                        .roll_seconds = bounds.roll_seconds_default,
                                        .roll_bytes = bounds.roll_bytes_default,
                                        .unknown_fields = STR("reject"),
                                        .idempotency = STR("required")};
    struct lifecycle_created created = {0};
    err made = lifecycle_create(&lifecycle, arena, &bounds, &request, &created, error);
    if (made == CONFLICT || made == NOT_FOUND) {
        error_clear(error); /* another sink stands there, or the user dropped the table */
        return OK;
    }
    TRY(made);
    profile->sink_id = created.sink_id;
    profile->send_key = created.send_key;
    return OK;
}

err dev_renew_sink(struct arena *arena, const struct service *service, struct dev_profile *profile,
                   struct error *error)
{
    str project = {0};
    struct ledger_sink sink = {0};
    i64 discarded = 0;
    if (profile->send_key.size > 0) {
        return OK;
    }
    TRY(find_project(arena, service, &project, error));
    err found = ledger_find_sink(&service->db, arena, project, STR(DEV_SINK), &sink, error);
    if (found == NOT_FOUND) {
        error_clear(error);
    } else {
        TRY(found);
        profile->sink_id = sink.id;
        if (sink.batches > 0) {
            return OK;
        }
        TRY(roller_delete_sink(service->roller, sink.id, &discarded, error));
        intake_notify_sink(service->intake, sink.id);
    }
    TRY(make_sink(arena, service, project, profile, error));
    intake_notify_sink(service->intake, profile->sink_id);
    return OK;
}

MUST_USE static err make_all(struct arena *arena, struct service *service,
                             struct dev_profile *profile, struct error *error)
{
    str project = {0};
    TRY(make_key(arena, service, &project, &profile->api_key, error));
    const struct warehouse *warehouse = warehouse_get(service->warehouses, STR(DEV_WAREHOUSE));
    if (warehouse == NULL) {
        TRY(warehouse_create(service->warehouses, project, STR(DEV_WAREHOUSE), NULL, NULL,
                             &warehouse, error));
    }
    TRY(make_table(arena, warehouse, error));
    return make_sink(arena, service, project, profile, error);
}

err dev_prepare(struct arena *arena, struct service *service, struct dev_profile *out_profile,
                struct error *error)
{
    struct dev_profile profile = {.table = STR(DEV_WAREHOUSE "." DEV_NAMESPACE "." DEV_TABLE),
                                  .sink_id = STR(""),
                                  .send_key = STR("")};
    str path = profile_path(arena, service);
    if (path.data == NULL) {
        return error_memory(error);
    }
    if (file_exists(path)) {
        return profile_read(arena, path, out_profile, error);
    }
    TRY(make_all(arena, service, &profile, error));
    *out_profile = profile;
    return OK;
}

/* ---- what is printed ---- */

static void block_append(buf *out, struct arena *arena, const char *title, str engine,
                         const struct connect_subject *subject)
{
    buf_append_format(out, "\n# %s\n\n", title);
    buf_append(out, connect_block(arena, engine, subject));
    buf_append_byte(out, '\n');
}

str dev_greeting(struct arena *arena, const struct service *service,
                 const struct dev_profile *profile)
{
    struct connect_subject subject = {.url = service->public_url,
                                      .warehouse = STR(DEV_WAREHOUSE),
                                      .api_key = profile->api_key,
                                      .table = STR(DEV_NAMESPACE "." DEV_TABLE),
                                      .sink_id = profile->sink_id,
                                      .send_key = profile->send_key};
    buf out = buf_create(arena, 4 * KIB, 64 * KIB);
    buf_append_format(&out,
                      "lhbox serves %.*s from %.*s\n"
                      "The keys below stand in %.*s/dev.json, which the lhbox commands read.\n",
                      STR_ARG(service->public_url), STR_ARG(service->data_directory),
                      STR_ARG(service->data_directory));
    block_append(&out, arena, "Send two rows to the demo table", STR("curl"), &subject);
    if (profile->send_key.size == 0) {
        buf_append(&out,
                   STR("\nThe sink's send key is not known here any more. To have a new one: "
                       "`lhbox sink delete " DEV_SINK "`,\nthen start again. The rows stay.\n"));
    }
    block_append(&out, arena, "Read them with DuckDB, two seconds later", STR("duckdb"), &subject);
    block_append(&out, arena, "Or with PyIceberg", STR("pyiceberg"), &subject);
    buf_append(&out, STR("\nCtrl-C stops the server; the next start goes on where it was.\n"));
    return buf_str(&out);
}
