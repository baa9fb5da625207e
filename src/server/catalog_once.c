#include "server/catalog_once.h"

#include "base/buf.h"
#include "base/id.h"
#include "base/log.h"
#include "io/crypto.h"
#include "table/catalog_receipt.h"

/* Of method, target and body, so that one id means one request. */
static str hash_request(const struct catalog_request *request)
{
    const struct http_request *sent = request->call->request;
    struct sha256 body = crypto_sha256(request->call->body);
    buf text = buf_create(request->arena, KIB, MIB);
    buf_append_i64(&text, http_request_method(sent));
    buf_append(&text, http_request_raw_path(sent));
    buf_append_byte(&text, '?');
    buf_append(&text, http_request_query(sent));
    buf_append_byte(&text, '\n');
    buf_append_bytes(&text, (const char *)body.bytes, sizeof(body.bytes));
    struct sha256 whole = crypto_sha256(buf_str(&text));
    return buf_ok(&text)
               ? str_copy(request->arena, (str){(const char *)whole.bytes, sizeof(whole.bytes)})
               : (str){0};
}

MUST_USE static err open_receipt(struct catalog_request *request, str id,
                                 struct catalog_receipt **out_receipt, struct error *error)
{
    struct uuid uuid;
    if (!id_uuid_parse(id, &uuid)) {
        return error_set(error, INVALID, ERROR_INVALID_REQUEST,
                         "Idempotency-Key: a UUID is wanted");
    }
    char *text = arena_alloc(request->arena, ID_UUID_SIZE);
    str hash = hash_request(request);
    if (text == NULL || hash.data == NULL) {
        return error_memory(error);
    }
    TRY(catalog_receipt_open(request->arena, &request->catalog, id_uuid_format(uuid, text), hash,
                             out_receipt, error));
    request->catalog = catalog_receipt_catalog(*out_receipt);
    request->local = catalog_local_of(&request->catalog);
    return OK;
}

MUST_USE static err answer_again(struct catalog_request *request,
                                 const struct catalog_outcome *outcome, catalog_handler handler,
                                 struct error *error)
{
    if (outcome->status != 0) {
        request->status = outcome->status;
        request->body = outcome->body;
        return OK;
    }
    request->done = true;
    return handler(request, error);
}

/* The same request would fail so again. */
static bool is_final(err result, int status)
{
    bool judged = result == INVALID || result == NOT_FOUND || result == CONFLICT ||
                  result == DENIED;
    return judged && status >= 400 && status < 500;
}

/* What is not written here costs a repeat its equal answer, and no more. */
static void write_end(struct catalog_request *request, struct catalog_receipt *receipt, err result,
                      enum catalog_kind kind, const struct error *why)
{
    int status = request->status >= 400 ? request->status : 0;
    str body = status != 0 ? request->body : STR("");
    if (result != OK) {
        struct catalog_fault fault = catalog_fault_of(kind, result, why);
        status = fault.status;
        body = catalog_fault_body(request->arena, fault, catalog_fault_text(request->arena, why));
        if (!is_final(result, status)) {
            return;
        }
    }
    struct error error = {0};
    err written = body.size <= CATALOG_RECEIPT_BODY_MAX
                      ? catalog_receipt_write(receipt, status, body, &error)
                      : OK;
    if (written != OK) {
        log_error("catalog_receipt_unwritten", written, &error,
                  http_request_id(request->call->request));
    }
}

err catalog_once(struct catalog_request *request, catalog_handler handler, enum catalog_kind kind,
                 struct error *error)
{
    str id = http_request_header(request->call->request, STR("Idempotency-Key"));
    if (id.size == 0) {
        return handler(request, error);
    }
    struct catalog_receipt *receipt = NULL;
    struct catalog_outcome outcome = {.found = false};
    TRY(open_receipt(request, id, &receipt, error));
    TRY(catalog_receipt_find(receipt, request->arena, &outcome, error));
    if (outcome.found) {
        return answer_again(request, &outcome, handler, error);
    }
    struct error why = {0};
    err result = handler(request, &why);
    if (result != OK && catalog_receipt_find(receipt, request->arena, &outcome, NULL) == OK &&
        outcome.found) {
        return answer_again(request, &outcome, handler, error); /* a twin was faster */
    }
    if (!request->staged) {
        write_end(request, receipt, result, kind, &why);
    }
    return result == OK ? OK : error_set(error, result, why.code, "%s", why.message);
}
