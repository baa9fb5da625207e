/* GET /v1/connection and the warehouses: where things are. */
#include "server/api.h"
#include "server/connect.h"

#include "base/num.h"

enum { WAREHOUSES_SHOWN_MAX = 1000 };

static const char *const ENGINES[] = {"duckdb", "pyiceberg", "spark", "trino", "curl"};

static err own_warehouse(struct api_request *request, str name,
                         const struct warehouse **out_warehouse, struct error *error)
{
    struct call *call = request->call;
    const struct warehouse *warehouse = warehouse_get(call->service->warehouses, name);
    if (warehouse == NULL || !str_equal(warehouse->project, call->principal.project)) {
        err result = error_set(error, NOT_FOUND, ERROR_WAREHOUSE_NOT_FOUND,
                               "there is no warehouse %.*s", STR_ARG(name));
        error_hint(error, "`lhbox warehouse list` shows yours");
        return result;
    }
    *out_warehouse = warehouse;
    return OK;
}

static str rejects_prefix(struct arena *arena, const struct warehouse *warehouse)
{
    return str_format(arena, "%.*s/_sink/*/rejects/", STR_ARG(warehouse->files_path));
}

static err connection_json(struct api_request *request, const struct warehouse *warehouse,
                           json_t **out_json, struct error *error)
{
    struct call *call = request->call;
    const struct connect_subject subject = {
        .url = call->service->public_url,
        .warehouse = warehouse->name,
        .api_key = STR(CONNECT_KEY_PLACEHOLDER),
        .rejects_prefix = rejects_prefix(call->arena, warehouse),
    };
    json_t *blocks = json_object();
    for (size_t i = 0; i < ARRAY_COUNT(ENGINES); i++) {
        str block = connect_block(call->arena, str_from(ENGINES[i]), &subject);
        json_object_set_new(blocks, ENGINES[i], api_json_text(block));
    }
    str iceberg_uri = str_format(call->arena, "%.*s/iceberg", STR_ARG(subject.url));
    str ingest_url = str_format(call->arena, "%.*s/v1/sinks/", STR_ARG(subject.url));
    str recipe = connect_rejects_recipe(call->arena, subject.rejects_prefix);
    if (iceberg_uri.data == NULL || ingest_url.data == NULL || recipe.data == NULL) {
        json_decref(blocks);
        return error_memory(error);
    }
    *out_json = json_pack("{s:o, s:o, s:o, s:s, s:o, s:{s:o}}", "iceberg_uri",
                          api_json_text(iceberg_uri), "warehouse", api_json_text(warehouse->name),
                          "ingest_url", api_json_text(ingest_url), "sinks_note", CONNECT_SINKS_NOTE,
                          "blocks", blocks, "read_recipes", "rejects", api_json_text(recipe));
    return OK;
}

err api_connection(struct api_request *request, struct error *error)
{
    struct call *call = request->call;
    str name = http_request_parameter(call->request, STR("warehouse"));
    const struct warehouse *warehouse = NULL;
    if (name.data != NULL) {
        TRY(own_warehouse(request, name, &warehouse, error));
    } else if (warehouse_list(call->service->warehouses, call->principal.project, &warehouse, 1) ==
               0) {
        err result = error_set(error, NOT_FOUND, ERROR_WAREHOUSE_NOT_FOUND,
                               "the project has no warehouse");
        error_hint(error, "make one: lhbox warehouse create NAME");
        return result;
    }
    json_t *json = NULL;
    TRY(connection_json(request, warehouse, &json, error));
    return api_reply(request, 200, json);
}

/* ---- warehouses ---- */

static json_t *warehouse_json(const struct warehouse *warehouse)
{
    return json_pack("{s:o, s:o, s:{s:s}, s:{s:s}}", "name", api_json_text(warehouse->name),
                     "tables_uri", api_json_text(warehouse->tables_uri), "store", "type",
                     warehouse->files_path.data != NULL ? "dir" : "s3", "catalog", "type",
                     warehouse->embedded ? "embedded" : "rest");
}

err api_warehouse_create(struct api_request *request, struct error *error)
{
    static const char *const known[] = {"name", "store", "catalog", NULL};
    struct call *call = request->call;
    json_t *body = NULL;
    str name = {0};
    const struct warehouse *warehouse = NULL;
    TRY(api_body(request, known, &body, error));
    err result = api_text(request, body, "name", API_REQUIRED, &name, error);
    if (result == OK) {
        result = warehouse_create(call->service->warehouses, call->principal.project, name,
                                  json_object_get(body, "store"), json_object_get(body, "catalog"),
                                  &warehouse, error);
    }
    json_decref(body);
    TRY(result);
    api_audit_write(request, "warehouse.create", name);
    return api_reply(request, 201, warehouse_json(warehouse));
}

err api_warehouse_list(struct api_request *request, struct error *error)
{
    struct call *call = request->call;
    size_t limit = 0;
    TRY(api_limit(request, &limit, error));
    const struct warehouse **all = arena_array(call->arena, WAREHOUSES_SHOWN_MAX,
                                               sizeof(const struct warehouse *));
    if (all == NULL) {
        return error_memory(error);
    }
    size_t count = warehouse_list(call->service->warehouses, call->principal.project, all,
                                  WAREHOUSES_SHOWN_MAX);
    str cursor = api_cursor(request);
    size_t from = 0;
    for (size_t i = 0; cursor.size > 0 && i < count; i++) {
        from = str_equal(all[i]->name, cursor) ? i + 1 : from;
    }
    json_t *list = json_array();
    size_t shown = 0;
    for (; from + shown < count && shown < limit; shown++) {
        json_array_append_new(list, warehouse_json(all[from + shown]));
    }
    json_t *json = json_pack("{s:o}", "warehouses", list);
    if (from + shown < count) {
        json_object_set_new(json, "next_cursor", api_json_text(all[from + shown - 1]->name));
    }
    return api_reply(request, 200, json);
}

err api_warehouse_get(struct api_request *request, struct error *error)
{
    const struct warehouse *warehouse = NULL;
    TRY(own_warehouse(request, request->parts[0], &warehouse, error));
    return api_reply(request, 200, warehouse_json(warehouse));
}

/* ---- measuring ---- */

struct measure {
    i64 bytes;
    i64 objects;
};

static err measure_prefix(const struct store *store, str prefix, struct measure *out_measure,
                          struct error *error)
{
    struct measure measure = {0};
    AUTO_ARENA struct arena *arena = arena_create(8 * (size_t)MIB);
    str after = STR("");
    struct store_list list = {.more = true};
    while (list.more) {
        TRY(store_list(store, arena, prefix, after, 1000, &list, error));
        for (size_t i = 0; i < list.count; i++) {
            measure.bytes += list.objects[i].size;
            measure.objects++;
        }
        char last[STORE_KEY_MAX];
        if (list.count == 0) {
            break;
        }
        str key = list.objects[list.count - 1].key;
        memcpy(last, key.data, key.size);
        arena_reset(arena);
        after = str_copy(arena, (str){last, key.size});
    }
    *out_measure = measure;
    return OK;
}

err api_warehouse_measure(struct api_request *request, struct error *error)
{
    const struct warehouse *warehouse = NULL;
    TRY(own_warehouse(request, request->parts[0], &warehouse, error));
    struct measure all = {0};
    struct measure sink = {0};
    struct measure tables = {0};
    TRY(measure_prefix(&warehouse->files, STR(""), &all, error));
    TRY(measure_prefix(&warehouse->files, STR("_sink/"), &sink, error));
    if (warehouse->locations.count > 0) {
        TRY(measure_prefix(&warehouse->locations.items[0].store, STR(""), &tables, error));
    }
    instant now = seam_now(request->call->service->seam);
    return api_reply(request, 200,
                     json_pack("{s:I, s:I, s:{s:I, s:I}, s:o}", "bytes",
                               (json_int_t)(all.bytes + tables.bytes), "objects",
                               (json_int_t)(all.objects + tables.objects), "by_prefix", "_sink",
                               (json_int_t)sink.bytes, "tables", (json_int_t)tables.bytes,
                               "measured_at", api_json_time(now)));
}
