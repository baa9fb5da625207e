#include "base/base64.h"
#include "server/catalog_api.h"
#include "server/catalog_fault.h"
#include "table/catalog_receipt.h"

#define TOKEN_TYPE_ACCESS "urn:ietf:params:oauth:token-type:access_token"
#define GRANT_EXCHANGE    "urn:ietf:params:oauth:grant-type:token-exchange"

enum { NAMES_SHOWN_MAX = 32, FORM_BYTES_MAX = 64 * KIB };

/* ---- GET /iceberg/v1/config ---- */

/* The warehouse that the client asks for by name or by the place of its tables. data NULL: none. */
static const struct warehouse *wanted_warehouse(const struct catalog_request *request, str wanted)
{
    const struct warehouse *all[WAREHOUSES_MAX];
    const struct call *call = request->call;
    size_t count = warehouse_list(call->service->warehouses, call->principal.project, all,
                                  WAREHOUSES_MAX);
    while (wanted.size > 0 && wanted.data[wanted.size - 1] == '/') {
        wanted.size -= 1;
    }
    for (size_t i = 0; i < count; i++) {
        if (str_equal(all[i]->name, wanted) || str_equal(all[i]->tables_uri, wanted)) {
            return all[i];
        }
    }
    return wanted.size == 0 ? catalog_only_warehouse(call) : NULL;
}

/* "garden, orchard" */
static str known_names(const struct catalog_request *request)
{
    const struct warehouse *known[NAMES_SHOWN_MAX];
    const struct call *call = request->call;
    size_t count = warehouse_list(call->service->warehouses, call->principal.project, known,
                                  NAMES_SHOWN_MAX);
    buf text = buf_create(request->arena, 128, 4 * KIB);
    for (size_t i = 0; i < count; i++) {
        buf_append(&text, i > 0 ? STR(", ") : STR(""));
        buf_append(&text, known[i]->name);
    }
    return count > 0 ? buf_str(&text) : STR("none");
}

err catalog_answer_config(struct catalog_request *request, struct error *error)
{
    str wanted = http_request_parameter(request->call->request, STR("warehouse"));
    const struct warehouse *warehouse = wanted_warehouse(request, wanted);
    if (warehouse == NULL && wanted.size == 0) {
        return error_set(error, INVALID, ERROR_INVALID_REQUEST,
                         "say which warehouse (?warehouse=): there are %.*s",
                         STR_ARG(known_names(request)));
    }
    if (warehouse == NULL) {
        return error_set(error, NOT_FOUND, ERROR_WAREHOUSE_NOT_FOUND,
                         "Warehouse does not exist: %.*s. There are: %.*s", STR_ARG(wanted),
                         STR_ARG(known_names(request)));
    }
    return catalog_reply(request,
                         json_pack("{s:{}, s:{s:o}, s:o, s:s}", "defaults", "overrides", "prefix",
                                   catalog_text(warehouse->name), "endpoints", catalog_endpoints(),
                                   "idempotency-key-lifetime", CATALOG_RECEIPT_TEXT),
                         error);
}

/* ---- POST /iceberg/v1/oauth/tokens ---- */

/* What a client sent, from the form and from Basic authentication. */
struct token_request {
    str grant_type;
    str secret;
};

static int hex_value(char digit)
{
    if (digit >= '0' && digit <= '9') {
        return digit - '0';
    }
    char lower = (char)(digit | 0x20);
    return lower >= 'a' && lower <= 'f' ? lower - 'a' + 10 : -1;
}

/* application/x-www-form-urlencoded; data NULL when it is malformed. */
static str form_decode(struct arena *arena, str text)
{
    buf out = buf_create(arena, text.size + 1, FORM_BYTES_MAX);
    for (size_t i = 0; i < text.size; i++) {
        char byte = text.data[i];
        if (byte == '%') {
            int high = i + 2 < text.size ? hex_value(text.data[i + 1]) : -1;
            int low = i + 2 < text.size ? hex_value(text.data[i + 2]) : -1;
            if (high < 0 || low < 0) {
                return (str){0};
            }
            byte = (char)(high * 16 + low);
            i += 2;
        } else if (byte == '+') {
            byte = ' ';
        }
        buf_append_byte(&out, (u8)byte);
    }
    return buf_ok(&out) ? buf_str(&out) : (str){0};
}

/* data NULL when the form has no such field. */
static str form_field(struct arena *arena, str form, str name)
{
    str part;
    while (str_next(&form, '&', &part)) {
        i64 mark = str_find_byte(part, '=');
        if (mark >= 0 && str_equal(form_decode(arena, str_slice(part, 0, (size_t)mark)), name)) {
            return form_decode(arena, str_slice(part, (size_t)mark + 1, part.size));
        }
    }
    return (str){0};
}

/* The password of Basic authentication; data NULL: none. */
static str basic_secret(struct arena *arena, str authorization)
{
    if (!str_equal_ignore_case(str_slice(authorization, 0, 6), STR("Basic "))) {
        return (str){0};
    }
    buf pair = buf_create(arena, authorization.size, FORM_BYTES_MAX);
    str coded = str_trim(str_slice(authorization, 6, authorization.size));
    if (!base64_decode(&pair, coded) || !buf_ok(&pair)) {
        return (str){0};
    }
    i64 colon = str_find_byte(buf_str(&pair), ':');
    return colon < 0 ? (str){0} : str_slice(buf_str(&pair), (size_t)colon + 1, pair.size);
}

static void token_refuse(struct call *call, int status, const char *code, const char *description)
{
    struct http_response response = {
        .status = status,
        .headers = {{STR("Cache-Control"), STR("no-store")},
                    {STR("WWW-Authenticate"), STR("Basic realm=\"lhbox\"")}},
        .header_count = status == 401 ? 2 : 1,
        .body = str_format(call->arena, "{\"error\":\"%s\",\"error_description\":\"%s\"}", code,
                           description),
    };
    http_respond(call->request, &response);
}

static void token_reply(struct call *call, str token, i64 seconds)
{
    struct http_response response = {
        .status = 200,
        .headers = {{STR("Cache-Control"), STR("no-store")}},
        .header_count = 1,
        .body = str_format(call->arena,
                           "{\"access_token\":\"%.*s\",\"token_type\":\"bearer\","
                           "\"expires_in\":%lld,\"issued_token_type\":\"" TOKEN_TYPE_ACCESS
                           "\",\"scope\":\"catalog\"}",
                           STR_ARG(token), (long long)seconds),
    };
    http_respond(call->request, &response);
}

static struct token_request read_token_request(struct call *call)
{
    struct token_request wanted = {
        .grant_type = form_field(call->arena, call->body, STR("grant_type"))};
    bool exchange = str_equal(wanted.grant_type, STR(GRANT_EXCHANGE));
    wanted.secret = form_field(call->arena, call->body,
                               exchange ? STR("subject_token") : STR("client_secret"));
    if (wanted.secret.size == 0) {
        wanted.secret = basic_secret(call->arena,
                                     http_request_header(call->request, STR("Authorization")));
    }
    return wanted;
}

static void token_fail(struct call *call, bool exchange, err result, struct error *error)
{
    if (error->code == ERROR_SEND_ONLY || result != DENIED) {
        catalog_respond_error(call, CATALOG_PLAIN, result, error, (str){0});
    } else if (exchange) {
        token_refuse(call, 400, "invalid_request",
                     "an exchange renews a token or key of this catalog only, and subject_token is "
                     "none; ask with client_credentials and an API key");
    } else {
        token_refuse(call, 401, "invalid_client", "client_secret is no good API key");
    }
}

/* Of RFC 8693 only what clients renew their token with; a token for somebody else is none. */
static bool is_renewal(struct call *call)
{
    str type = form_field(call->arena, call->body, STR("requested_token_type"));
    return form_field(call->arena, call->body, STR("actor_token")).size == 0 &&
           (type.size == 0 || str_equal(type, STR(TOKEN_TYPE_ACCESS)));
}

/* Refuses before the form is looked at. */
MUST_USE static err token_check(struct call *call, struct error *error)
{
    str authorization = http_request_header(call->request, STR("Authorization"));
    if (str_starts(id_bearer(authorization), STR("al_send_"))) {
        return error_set(error, DENIED, ERROR_SEND_ONLY,
                         "a send key is good for its sink's send route only");
    }
    str query = http_request_query(call->request);
    if (str_find(query, STR("secret=")) >= 0 || str_find(query, STR("al_")) >= 0) {
        return error_set(error, INVALID, ERROR_KEY_IN_QUERY,
                         "credentials belong in the body or the Authorization header");
    }
    return OK;
}

void catalog_answer_token(struct call *call)
{
    struct error error = {0};
    if (http_request_method(call->request) != HTTP_POST) {
        err wrong = error_set(&error, INVALID, ERROR_METHOD_NOT_ALLOWED, "this route takes POST");
        catalog_respond_error(call, CATALOG_PLAIN, wrong, &error, STR("POST"));
        return;
    }
    err result = token_check(call, &error);
    if (result != OK) {
        catalog_respond_error(call, CATALOG_PLAIN, result, &error, (str){0});
        return;
    }
    struct token_request wanted = read_token_request(call);
    if (wanted.grant_type.size == 0) {
        token_refuse(call, 400, "invalid_request", "grant_type is missing");
        return;
    }
    bool exchange = str_equal(wanted.grant_type, STR(GRANT_EXCHANGE));
    if (!exchange && !str_equal(wanted.grant_type, STR("client_credentials"))) {
        token_refuse(call, 400, "unsupported_grant_type",
                     "client_credentials with an API key is what this catalog takes");
        return;
    }
    if (exchange && !is_renewal(call)) {
        token_refuse(call, 400, "invalid_request",
                     "an exchange renews the caller's own access token; other types and "
                     "actor_token are not supported");
        return;
    }
    str token = {0};
    i64 seconds = 0;
    result = access_make_token(&call->service->db, call->arena, call->service->seam, wanted.secret,
                               &token, &seconds, &error);
    if (result == OK) {
        token_reply(call, token, seconds);
    } else {
        token_fail(call, exchange, result, &error);
    }
}
