#include "server/api.h"

#include "account/audit.h"
#include "base/assert.h"
#include "base/log.h"
#include "base/metric.h"
#include "io/crypto.h"
#include "io/file.h"

/* 0.1 is told as 0.1: a double has no more digits that mean anything. */
enum { REAL_DIGITS = 15 };

enum who { PUBLIC, INTERNAL, READ, WRITE, ADMIN, BOOTSTRAP };

struct route {
    enum http_method method;
    const char *method_text;
    const char *pattern;
    api_handler handler;
    enum who who;
};

static const struct route ROUTES[] = {
#define X(method, pattern, handler, who) {HTTP_##method, #method, pattern, handler, who},
#include "server/routes.def"
#undef X
};

/* ---- routing ---- */

static bool match(const char *pattern, str path, str parts[API_PARTS_MAX])
{
    str rest = str_from(pattern);
    str left = path;
    str wanted = {0};
    str part = {0};
    size_t stars = 0;
    while (str_next(&rest, '/', &wanted)) {
        if (!str_next(&left, '/', &part)) {
            return false;
        }
        if (str_equal(wanted, STR("*"))) {
            assert(stars < API_PARTS_MAX);
            if (part.size == 0) {
                return false;
            }
            parts[stars++] = part;
        } else if (!str_equal(wanted, part)) {
            return false;
        }
    }
    return left.data == NULL;
}

static const struct route *find_route(struct api_request *request, str *out_allow)
{
    enum http_method method = http_request_method(request->call->request);
    if (method == HTTP_HEAD) {
        method = HTTP_GET;
    }
    str path = http_request_path(request->call->request);
    buf allow = buf_create(request->call->arena, 64, 256);
    for (size_t i = 0; i < ARRAY_COUNT(ROUTES); i++) {
        str parts[API_PARTS_MAX] = {{0}};
        if (!match(ROUTES[i].pattern, path, parts)) {
            continue;
        }
        if (ROUTES[i].method == method) {
            memcpy(request->parts, parts, sizeof(parts));
            return &ROUTES[i];
        }
        buf_append(&allow, allow.size > 0 ? STR(", ") : STR(""));
        buf_append(&allow, str_from(ROUTES[i].method_text));
    }
    *out_allow = buf_str(&allow);
    return NULL;
}

/* ---- rights ---- */

static err check_bootstrap(struct call *call, str authorization, struct error *error)
{
    str path = str_format(call->arena, "%.*s/keys/bootstrap",
                          STR_ARG(call->service->data_directory));
    str wanted = {0};
    TRY(file_read(call->arena, path, KIB, &wanted, error));
    struct sha256 stored = crypto_sha256(
        str_trim(str_slice(wanted, 0, (size_t)str_find_byte(wanted, '\n'))));
    struct sha256 given = crypto_sha256(id_bearer(authorization));
    if (crypto_equal(stored.bytes, given.bytes, sizeof(stored.bytes))) {
        return OK;
    }
    err result = error_set(error, DENIED, ERROR_UNAUTHORIZED,
                           "this route wants the bootstrap secret");
    error_hint(error, "it stands in keys/bootstrap of the data directory");
    return result;
}

static err check_rights(struct call *call, const struct route *route, struct error *error)
{
    str authorization = http_request_header(call->request, STR("Authorization"));
    switch (route->who) {
    case PUBLIC:
        return OK;
    case INTERNAL:
        if (call->internal) {
            return OK;
        }
        error_hint(error, "it is on the internal listener: docs/operations.md");
        return error_set(error, NOT_FOUND, ERROR_NOT_FOUND, "no such route");
    case BOOTSTRAP:
        if (str_starts(id_bearer(authorization), STR("al_send_"))) {
            return error_set(error, DENIED, ERROR_SEND_ONLY,
                             "a send key is good for its sink's send route only");
        }
        return check_bootstrap(call, authorization, error);
    case READ:
    case WRITE:
    case ADMIN:
        break;
    }
    TRY(access_authenticate(&call->service->db, call->arena, authorization, &call->principal,
                            error));
    enum access_level level = route->who == READ    ? ACCESS_READ
                              : route->who == WRITE ? ACCESS_WRITE
                                                    : ACCESS_ADMIN;
    return access_require(&call->principal, level, error);
}

static err check_query(struct call *call, struct error *error)
{
    str query = http_request_query(call->request);
    if (str_find(query, STR("al_send_")) < 0 && str_find(query, STR("al_key_")) < 0) {
        return OK;
    }
    err result = error_set(error, INVALID, ERROR_KEY_IN_QUERY, "a key stood in the URL");
    error_hint(error, "send it in the Authorization header, and make a new one: URLs are logged");
    return result;
}

/* ---- answering ---- */

static void respond(struct api_request *request)
{
    const struct api_answer *answer = &request->answer;
    assert(answer->status >= 200);
    struct http_response response = {
        .status = answer->status, .content_type = answer->content_type, .body = answer->text};
    char *text = NULL;
    if (answer->json != NULL) {
        text = json_dumps(answer->json,
                          JSON_COMPACT | JSON_ENCODE_ANY | JSON_REAL_PRECISION(REAL_DIGITS));
        assert(text != NULL);
        response.body = str_from(text);
    }
    http_respond(request->call->request, &response);
    json_decref(answer->json);
    if (text != NULL) {
        json_free_t free_text = NULL;
        json_get_alloc_funcs(NULL, &free_text);
        free_text(text);
    }
}

static void respond_error(struct call *call, err result, struct error *error, str allow)
{
    if (error->code == ERROR_NONE) {
        (void)error_set(error, result,
                        result == IO || result == UNKNOWN || result == BUSY ? ERROR_UNAVAILABLE
                                                                            : ERROR_INTERNAL,
                        "the request could not be carried out (%s)", err_text(result));
    }
    if (error_code_http_status(error->code) >= 500) {
        log_error("request_failed", result, error, http_request_id(call->request));
    }
    struct http_response response = {.status = error_code_http_status(error->code),
                                     .body = http_error_body(call->arena, error)};
    if (allow.size > 0) {
        response.headers[response.header_count++] = (struct http_header){STR("Allow"), allow};
    }
    if (response.status == 401) {
        response.headers[response.header_count++] = (struct http_header){STR("WWW-Authenticate"),
                                                                         STR("Bearer")};
    }
    if (allow.size > 0 || response.status == 401) {
        http_respond(call->request, &response);
    } else {
        http_respond_error(call->request, error);
    }
}

void api_handle(struct call *call)
{
    struct error error = {0};
    struct api_request request = {.call = call};
    str allow = {0};
    const struct route *route = find_route(&request, &allow);
    err result = check_query(call, &error);
    if (result == OK && route == NULL) {
        result = allow.size > 0
                     ? error_set(&error, INVALID, ERROR_METHOD_NOT_ALLOWED, "this route takes %.*s",
                                 STR_ARG(allow))
                     : error_set(&error, NOT_FOUND, ERROR_NOT_FOUND, "there is no such route");
        error_hint(&error, "docs/api.md lists the routes");
    }
    if (result == OK) {
        result = check_rights(call, route, &error);
    }
    if (result == OK) {
        result = route->handler(&request, &error);
    }
    if (result == OK) {
        respond(&request);
    } else {
        json_decref(request.answer.json);
        respond_error(call, result, &error, allow);
    }
}

/* ---- for handlers ---- */

err api_reply(struct api_request *request, int status, json_t *json)
{
    assert(request->answer.json == NULL);
    request->answer.status = status;
    request->answer.json = json;
    return OK;
}

err api_invalid(struct error *error, const char *path, const char *wanted)
{
    error_field_text(error, "path", str_from(path));
    return error_set(error, INVALID, ERROR_INVALID_REQUEST, "%s%s%s", path,
                     path[0] != '\0' ? ": " : "", wanted);
}

static err check_members(const json_t *body, const char *const *known, struct error *error)
{
    const char *name = NULL;
    const json_t *value = NULL;
    json_object_foreach((json_t *)(uintptr_t)body, name, value)
    {
        bool found = false;
        for (size_t i = 0; known[i] != NULL; i++) {
            found = found || str_equal(str_from(known[i]), str_from(name));
        }
        if (!found) {
            error_field_text(error, "path", str_from(name));
            return error_set(error, INVALID, ERROR_UNKNOWN_FIELD, "there is no member %.100s",
                             name);
        }
    }
    return OK;
}

err api_body(struct api_request *request, const char *const *known, json_t **out_body,
             struct error *error)
{
    str body = request->call->body;
    json_error_t why = {0};
    json_t *document = body.size == 0
                           ? json_object()
                           : json_loadb(body.data, body.size, JSON_REJECT_DUPLICATES, &why);
    if (document == NULL) {
        error_field_i64(error, "offset", why.position);
        return error_set(error, INVALID, ERROR_INVALID_JSON, "the body is not JSON: %.150s",
                         why.text);
    }
    err result = json_is_object(document)
                     ? check_members(document, known, error)
                     : api_invalid(error, "", "the body must be a JSON object");
    if (result != OK) {
        json_decref(document);
        return result;
    }
    *out_body = document;
    return OK;
}

err api_text(struct api_request *request, const json_t *body, const char *name,
             enum api_member member, str *out_text, struct error *error)
{
    const json_t *value = json_object_get(body, name);
    if (value == NULL && member == API_OPTIONAL) {
        return OK;
    }
    if (!json_is_string(value)) {
        return api_invalid(error, name, "a string is wanted");
    }
    str text = str_copy(request->call->arena,
                        (str){json_string_value(value), json_string_length(value)});
    if (text.data == NULL) {
        return error_memory(error);
    }
    *out_text = text;
    return OK;
}

err api_integer(const json_t *body, const char *name, enum api_member member, i64 *out_value,
                struct error *error)
{
    const json_t *value = json_object_get(body, name);
    if (value == NULL && member == API_OPTIONAL) {
        return OK;
    }
    if (!json_is_integer(value)) {
        return api_invalid(error, name, "a whole number is wanted");
    }
    *out_value = json_integer_value(value);
    return OK;
}

err api_limit(struct api_request *request, size_t *out_limit, struct error *error)
{
    str text = http_request_parameter(request->call->request, STR("limit"));
    i64 limit = API_LIMIT_DEFAULT;
    if (text.data != NULL && (!str_to_i64(text, &limit) || limit < 1 || limit > API_LIMIT_MAX)) {
        return api_invalid(error, "limit", "1 to 1000 is wanted");
    }
    *out_limit = (size_t)limit;
    return OK;
}

str api_cursor(struct api_request *request)
{
    str cursor = http_request_parameter(request->call->request, STR("cursor"));
    return cursor.data != NULL ? cursor : STR("");
}

bool api_flag(struct api_request *request, str parameter)
{
    str value = http_request_parameter(request->call->request, parameter);
    return str_equal(value, STR("1")) || str_equal(value, STR("true"));
}

json_t *api_json_text(str text)
{
    return text.data == NULL ? json_null() : json_stringn(text.data, text.size);
}

json_t *api_json_time(instant at)
{
    char text[TIME_TEXT_SIZE];
    return at == 0 ? json_null() : api_json_text(time_format(at, text));
}

typedef err (*audit_way)(const struct db *db, const struct audit_entry *entry, struct error *error);

static void write_audit(struct api_request *request, const char *action, str object, audit_way way)
{
    struct call *call = request->call;
    struct error error = {0};
    struct audit_entry entry = {
        .project = call->principal.project.data != NULL ? call->principal.project : STR(""),
        .actor = call->principal.key_id.data != NULL ? call->principal.key_id : STR("bootstrap"),
        .action = str_from(action),
        .object = object,
        .outcome = STR("ok"),
        .request_id = http_request_id(call->request),
    };
    err result = way(&call->service->db, &entry, &error);
    if (result != OK) {
        log_error("audit_failed", result, &error, object);
    }
}

void api_audit_write(struct api_request *request, const char *action, str object)
{
    write_audit(request, action, object, audit_write);
}

void api_audit_write_later(struct api_request *request, const char *action, str object)
{
    write_audit(request, action, object, audit_write_later);
}
