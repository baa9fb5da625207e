#include "server/catalog_api.h"

#include "base/assert.h"
#include "base/base64.h"
#include "server/catalog_fault.h"
#include "server/catalog_once.h"
#include "table/catalog_view.h"

#include <jansson.h>

enum { SEGMENTS_MAX = 7 };

struct route {
    enum http_method method;
    const char *method_text;
    const char *pattern;
    catalog_handler handler;
    enum access_level level;
    enum catalog_kind kind;
};

static const struct route ROUTES[] = {
#define X(method, pattern, handler, level, kind)                                                   \
    {HTTP_##method, #method, pattern, handler, ACCESS_##level, CATALOG_##kind},
#include "server/catalog_routes.def"
#undef X
};

/* What the path says. */
struct target {
    str segments[SEGMENTS_MAX]; /* as sent */
    size_t count;
};

/* ---- the path ---- */

static int hex_value(char digit)
{
    if (digit >= '0' && digit <= '9') {
        return digit - '0';
    }
    char lower = (char)(digit | 0x20);
    return lower >= 'a' && lower <= 'f' ? lower - 'a' + 10 : -1;
}

/* Percent-decoded; `plus` says what a plus sign stands for. data NULL at the arena's limit. */
static str decode(struct arena *arena, str segment, char plus)
{
    char *out = arena_alloc(arena, segment.size + 1);
    size_t size = 0;
    for (size_t i = 0; i < segment.size && out != NULL; i++) {
        char byte = segment.data[i];
        if (byte == '%' && i + 2 < segment.size && hex_value(segment.data[i + 1]) >= 0 &&
            hex_value(segment.data[i + 2]) >= 0) {
            byte = (char)(hex_value(segment.data[i + 1]) * 16 + hex_value(segment.data[i + 2]));
            i += 2;
        } else if (byte == '+') {
            byte = plus;
        }
        out[size++] = byte;
    }
    return out != NULL ? (str){out, size} : (str){0};
}

/* The segments after `/iceberg/v1/`; false when the path is another. */
static bool read_target(str raw_path, struct target *out_target)
{
    if (!str_starts(raw_path, STR("/iceberg/v1/"))) {
        return false;
    }
    str rest = str_slice(raw_path, sizeof("/iceberg/v1/") - 1, raw_path.size);
    struct target target = {.count = 0};
    str segment;
    while (str_next(&rest, '/', &segment)) {
        if (target.count == SEGMENTS_MAX) {
            return false;
        }
        target.segments[target.count++] = segment;
    }
    *out_target = target;
    return target.count > 0;
}

/* True when the segments from `skip` on are the pattern's; `{…}` takes any. */
static bool match(const char *pattern, const struct target *target, size_t skip)
{
    str rest = str_from(pattern);
    str part;
    size_t at = skip;
    while (str_next(&rest, '/', &part)) {
        if (at >= target->count) {
            return false;
        }
        if (part.data[0] != '{' && !str_equal(part, target->segments[at])) {
            return false;
        }
        at++;
    }
    return at == target->count;
}

static const struct route *find_route(const struct target *target, size_t skip,
                                      enum http_method method, buf *allow)
{
    for (size_t i = 0; i < ARRAY_COUNT(ROUTES); i++) {
        if (!match(ROUTES[i].pattern, target, skip)) {
            continue;
        }
        if (ROUTES[i].method == method) {
            return &ROUTES[i];
        }
        buf_append(allow, allow->size > 0 ? STR(", ") : STR(""));
        buf_append(allow, str_from(ROUTES[i].method_text));
    }
    return NULL;
}

/* ---- the names in it ---- */

MUST_USE static err decode_space(struct catalog_request *request, str segment, struct error *error)
{
    str name = decode(request->arena, segment, '+');
    if (name.data == NULL) {
        return error_memory(error);
    }
    TRY(catalog_check_namespace(name, error));
    /* A form-encoding client means a blank by a plus sign; a name that is there wins. */
    if (str_find_byte(segment, '+') >= 0) {
        json_auto_t *properties = NULL;
        if (catalog_local_load_namespace(request->local, name, &properties, NULL) == NOT_FOUND) {
            name = decode(request->arena, segment, ' ');
        }
    }
    request->namespace_name = name;
    return name.data != NULL ? OK : error_memory(error);
}

/* A table or a view has the name. */
static bool is_there(const struct catalog_request *request, str name)
{
    struct table_name wanted = {request->namespace_name, name};
    str location = {0};
    return catalog_local_find(request->local, request->arena, wanted, &location, NULL) == OK ||
           catalog_view_find(request->local, request->arena, wanted, &location, NULL) == OK;
}

MUST_USE static err decode_name(struct catalog_request *request, str segment, struct error *error)
{
    str name = decode(request->arena, segment, '+');
    if (name.data != NULL && str_find_byte(segment, '+') >= 0 && !is_there(request, name)) {
        name = decode(request->arena, segment, ' ');
    }
    request->name = name;
    return name.data != NULL ? OK : error_memory(error);
}

MUST_USE static err decode_names(struct catalog_request *request, const struct route *route,
                                 const struct target *target, size_t skip, struct error *error)
{
    str rest = str_from(route->pattern);
    str part;
    for (size_t at = skip; str_next(&rest, '/', &part); at++) {
        if (str_equal(part, STR("{namespace}"))) {
            TRY(decode_space(request, target->segments[at], error));
        } else if (part.data[0] == '{') {
            TRY(decode_name(request, target->segments[at], error));
        }
    }
    return OK;
}

/* ---- the warehouse ---- */

static const struct warehouse *own_warehouse(const struct call *call, str name)
{
    const struct warehouse *warehouse = warehouse_get(call->service->warehouses, name);
    bool own = warehouse != NULL && str_equal(warehouse->project, call->principal.project);
    return own ? warehouse : NULL;
}

const struct warehouse *catalog_only_warehouse(const struct call *call)
{
    const struct warehouse *found[2];
    size_t count = warehouse_list(call->service->warehouses, call->principal.project, found, 2);
    return count == 1 ? found[0] : NULL;
}

/* The first segment is the prefix; a path without one is understood where there is one warehouse.
 */
MUST_USE static err choose_warehouse(struct catalog_request *request, const struct target *target,
                                     size_t *out_skip, struct error *error)
{
    str first = target->segments[0];
    const struct warehouse *warehouse = own_warehouse(request->call, first);
    *out_skip = 1;
    bool bare = str_equal(first, STR("namespaces")) || str_equal(first, STR("tables")) ||
                str_equal(first, STR("views")) || str_equal(first, STR("transactions"));
    if (warehouse == NULL && bare) {
        warehouse = catalog_only_warehouse(request->call);
        *out_skip = 0;
    }
    if (warehouse == NULL) {
        return error_set(error, NOT_FOUND, ERROR_WAREHOUSE_NOT_FOUND,
                         "Warehouse does not exist: %.*s", STR_ARG(first));
    }
    request->warehouse = warehouse;
    request->catalog = warehouse->catalog;
    request->local = catalog_local_of(&warehouse->catalog);
    if (request->local == NULL) {
        return error_set(error, INVALID, ERROR_NOT_IMPLEMENTED,
                         "the catalog of the warehouse %.*s is served elsewhere", STR_ARG(first));
    }
    return OK;
}

/* ---- one request ---- */

MUST_USE static err check_query(const struct call *call, struct error *error)
{
    str query = http_request_query(call->request);
    bool key = str_find(query, STR("al_send_")) >= 0 || str_find(query, STR("al_key_")) >= 0 ||
               str_find(query, STR("al_tok_")) >= 0 || str_find(query, STR("client_secret=")) >= 0;
    return key ? error_set(error, INVALID, ERROR_KEY_IN_QUERY,
                           "a key stood in the URL: send it in the Authorization header, and make "
                           "a new one, because URLs are logged")
               : OK;
}

struct found {
    const struct route *route;
    buf allow;
};

MUST_USE static err handle(struct catalog_request *request, const struct target *target,
                           struct found *found, struct error *error)
{
    struct call *call = request->call;
    TRY(check_query(call, error));
    TRY(access_authenticate(&call->service->db, call->arena,
                            http_request_header(call->request, STR("Authorization")),
                            &call->principal, error));
    enum http_method method = http_request_method(call->request);
    if (target->count == 1 && str_equal(target->segments[0], STR("config"))) {
        TRY(access_require(&call->principal, ACCESS_READ, error));
        if (method != HTTP_GET) {
            buf_append(&found->allow, STR("GET"));
            return error_set(error, INVALID, ERROR_METHOD_NOT_ALLOWED, "this route takes GET");
        }
        return catalog_answer_config(request, error);
    }
    size_t skip = 0;
    TRY(choose_warehouse(request, target, &skip, error));
    found->route = find_route(target, skip, method, &found->allow);
    if (found->route == NULL && found->allow.size > 0) {
        return error_set(error, INVALID, ERROR_METHOD_NOT_ALLOWED, "this route takes %.*s",
                         STR_ARG(buf_str(&found->allow)));
    }
    if (found->route == NULL) {
        return error_set(error, NOT_FOUND, ERROR_NOT_FOUND, "there is no such route");
    }
    TRY(access_require(&call->principal, found->route->level, error));
    TRY(decode_names(request, found->route, target, skip, error));
    if (found->route->level == ACCESS_READ) {
        return found->route->handler(request, error);
    }
    return catalog_once(request, found->route->handler, found->route->kind, error);
}

static void respond(const struct catalog_request *request)
{
    struct http_response response = {.status = request->status, .body = request->body};
    if (request->etag.size > 0) {
        response.headers[response.header_count++] = (struct http_header){STR("ETag"),
                                                                         request->etag};
    }
    http_respond(request->call->request, &response);
}

void catalog_api_handle(struct call *call)
{
    struct catalog_request request = {.call = call, .arena = call->arena, .status = 200};
    struct target target = {.count = 0};
    struct error error = {0};
    struct found found = {.allow = buf_create(call->arena, 64, 256)};
    err result = OK;
    if (!read_target(http_request_raw_path(call->request), &target)) {
        result = error_set(&error, NOT_FOUND, ERROR_NOT_FOUND, "there is no such route");
    } else if (target.count == 2 && str_equal(target.segments[0], STR("oauth")) &&
               str_equal(target.segments[1], STR("tokens"))) {
        catalog_answer_token(call);
        return;
    } else {
        result = handle(&request, &target, &found, &error);
    }
    if (result == OK) {
        respond(&request);
    } else {
        enum catalog_kind kind = found.route != NULL ? found.route->kind : CATALOG_PLAIN;
        catalog_respond_error(call, kind, result, &error, buf_str(&found.allow));
    }
}

/* ---- for handlers ---- */

err catalog_body(struct catalog_request *request, json_t **out_body, struct error *error)
{
    str body = request->call->body;
    json_error_t why = {0};
    json_t *document = json_loadb(body.data != NULL ? body.data : "", body.size, 0, &why);
    if (document == NULL) {
        return error_set(error, INVALID, ERROR_INVALID_JSON, "the body is not JSON: %.150s",
                         why.text);
    }
    if (!json_is_object(document)) {
        json_decref(document);
        return error_set(error, INVALID, ERROR_INVALID_REQUEST, "the body must be a JSON object");
    }
    *out_body = document;
    return OK;
}

err catalog_reply(struct catalog_request *request, json_t *json, struct error *error)
{
    json_auto_t *owned = json;
    size_t size = json_dumpb(owned, NULL, 0, JSON_COMPACT);
    char *bytes = size > 0 ? arena_alloc(request->arena, size) : NULL;
    if (bytes == NULL) {
        return error_set(error, UNKNOWN, ERROR_OVERLOADED, "the answer is too large");
    }
    request->status = 200;
    request->body = (str){bytes, json_dumpb(owned, bytes, size, JSON_COMPACT)};
    return OK;
}

err catalog_reply_nothing(struct catalog_request *request)
{
    request->status = 204;
    request->body = (str){0};
    return OK;
}

err catalog_refuse(struct catalog_request *request, int status, const char *type, str message)
{
    request->status = status;
    request->body = catalog_fault_body(request->arena, (struct catalog_fault){status, type},
                                       message);
    return OK;
}

err catalog_space_from_json(struct arena *arena, const json_t *parts, str *out_name,
                            struct error *error)
{
    buf name = buf_create(arena, 64, CATALOG_NAMESPACE_PARTS_MAX * (CATALOG_NAME_BYTES_MAX + 1));
    if (!json_is_array(parts) || json_array_size(parts) == 0) {
        return error_set(error, INVALID, ERROR_INVALID_REQUEST,
                         "namespace: an array of one name or more is wanted");
    }
    for (size_t i = 0; i < json_array_size(parts); i++) {
        const json_t *part = json_array_get(parts, i);
        if (!json_is_string(part)) {
            return error_set(error, INVALID, ERROR_INVALID_REQUEST,
                             "namespace: its parts must be strings");
        }
        str text = {json_string_value(part), json_string_length(part)};
        /* A separator inside would make two parts of one. */
        TRY(catalog_check_name(text, error));
        if (i > 0) {
            buf_append_byte(&name, CATALOG_NAMESPACE_SEPARATOR);
        }
        buf_append(&name, text);
    }
    if (!buf_ok(&name)) {
        return error_set(error, INVALID, ERROR_INVALID_REQUEST, "namespace: too long");
    }
    TRY(catalog_check_namespace(buf_str(&name), error));
    *out_name = buf_str(&name);
    return OK;
}

json_t *catalog_text(str text)
{
    return json_stringn(text.data != NULL ? text.data : "", text.size);
}

json_t *catalog_space_to_json(str name)
{
    json_t *parts = json_array();
    str rest = name;
    str part;
    while (str_next(&rest, CATALOG_NAMESPACE_SEPARATOR, &part)) {
        json_array_append_new(parts, catalog_text(part));
    }
    return parts;
}

err catalog_table_from_json(struct arena *arena, const json_t *identifier,
                            struct table_name *out_name, struct error *error)
{
    const json_t *name = json_object_get(identifier, "name");
    if (!json_is_string(name)) {
        return error_set(error, INVALID, ERROR_INVALID_REQUEST,
                         "identifier: namespace and name are wanted");
    }
    str text = str_copy(arena, (str){json_string_value(name), json_string_length(name)});
    if (text.data == NULL) {
        return error_memory(error);
    }
    TRY(catalog_check_name(text, error));
    str space = {0};
    TRY(catalog_space_from_json(arena, json_object_get(identifier, "namespace"), &space, error));
    *out_name = (struct table_name){space, text};
    return OK;
}

struct table_name catalog_named(const struct catalog_request *request)
{
    return (struct table_name){request->namespace_name, request->name};
}

err catalog_body_name(const json_t *body, str *out_name, struct error *error)
{
    const json_t *name = json_object_get(body, "name");
    if (!json_is_string(name)) {
        return error_set(error, INVALID, ERROR_INVALID_REQUEST, "name: a string is wanted");
    }
    *out_name = (str){json_string_value(name), json_string_length(name)};
    return OK;
}

err catalog_read_registration(const json_t *body, struct catalog_registration *out_wanted,
                              struct error *error)
{
    const json_t *location = json_object_get(body, "metadata-location");
    struct catalog_registration wanted = {.how = CATALOG_REGISTER_NEW};
    TRY(catalog_body_name(body, &wanted.name, error));
    if (!json_is_string(location)) {
        return error_set(error, INVALID, ERROR_INVALID_REQUEST,
                         "metadata-location: a string is wanted");
    }
    wanted.metadata_location = (str){json_string_value(location), json_string_length(location)};
    if (json_is_true(json_object_get(body, "overwrite"))) {
        wanted.how = CATALOG_REGISTER_OVERWRITE;
    }
    *out_wanted = wanted;
    return OK;
}

err catalog_rename(struct catalog_request *request, enum catalog_item item, struct error *error)
{
    json_auto_t *body = NULL;
    struct table_name from = {0};
    struct table_name to = {0};
    TRY(catalog_body(request, &body, error));
    TRY(catalog_table_from_json(request->arena, json_object_get(body, "source"), &from, error));
    TRY(catalog_table_from_json(request->arena, json_object_get(body, "destination"), &to, error));
    if (!request->done) {
        TRY(catalog_local_rename(request->local, item, from, to, error));
    }
    return catalog_reply_nothing(request);
}

bool catalog_query_flag(struct catalog_request *request, str name)
{
    str value = http_request_parameter(request->call->request, name);
    return str_equal_ignore_case(value, STR("true")) || str_equal(value, STR("1"));
}

/* The name after which the page begins; data NULL: from the start. */
MUST_USE static err page_token(struct catalog_request *request, str *out_after, struct error *error)
{
    str token = http_request_parameter(request->call->request, STR("pageToken"));
    if (token.size == 0) {
        return OK;
    }
    buf after = buf_create(request->arena, token.size, CATALOG_NAMESPACE_PARTS_MAX * KIB);
    if (!base64_decode(&after, token) || !buf_ok(&after) || after.size == 0) {
        return error_set(error, INVALID, ERROR_INVALID_REQUEST, "pageToken is none of ours");
    }
    *out_after = buf_str(&after);
    return OK;
}

err catalog_page(struct catalog_request *request, struct catalog_names *names, str *out_next,
                 struct error *error)
{
    str after = {0};
    TRY(page_token(request, &after, error));
    str text = http_request_parameter(request->call->request, STR("pageSize"));
    i64 limit = 0;
    if (text.size > 0 && (!str_to_i64(text, &limit) || limit < 1)) {
        return error_set(error, INVALID, ERROR_INVALID_REQUEST,
                         "pageSize: a positive number is wanted");
    }
    size_t begin = 0;
    while (after.data != NULL && begin < names->count &&
           str_compare(names->names[begin], after) <= 0) {
        begin++;
    }
    size_t left = names->count - begin;
    size_t count = text.size > 0 ? (size_t)num_min_i64(limit, CATALOG_PAGE_MAX) : left;
    count = count < left ? count : left;
    *out_next = (str){0};
    if (count < left) {
        buf token = buf_create(request->arena, 64, CATALOG_NAMESPACE_PARTS_MAX * KIB);
        base64_encode_url(&token, names->names[begin + count - 1]);
        if (!buf_ok(&token)) {
            return error_memory(error);
        }
        *out_next = buf_str(&token);
    }
    *names = (struct catalog_names){names->names + begin, count};
    return OK;
}

err catalog_reply_page(struct catalog_request *request, const char *member, json_t *items, str next,
                       struct error *error)
{
    json_t *answer = json_pack("{s:o}", member, items);
    if (next.data != NULL) {
        json_object_set_new(answer, "next-page-token", catalog_text(next));
    }
    return catalog_reply(request, answer, error);
}

err catalog_reply_names(struct catalog_request *request, struct catalog_names *names,
                        struct error *error)
{
    str next = {0};
    TRY(catalog_page(request, names, &next, error));
    json_t *items = json_array();
    for (size_t i = 0; i < names->count; i++) {
        json_array_append_new(items, json_pack("{s:o, s:o}", "namespace",
                                               catalog_space_to_json(request->namespace_name),
                                               "name", catalog_text(names->names[i])));
    }
    return catalog_reply_page(request, "identifiers", items, next, error);
}

json_t *catalog_endpoints(void)
{
    json_t *endpoints = json_array();
    for (size_t i = 0; i < ARRAY_COUNT(ROUTES); i++) {
        json_array_append_new(endpoints, json_sprintf("%s /v1/{prefix}/%s", ROUTES[i].method_text,
                                                      ROUTES[i].pattern));
    }
    return endpoints;
}
