#include "server/catalog_fault.h"

#include "base/buf.h"
#include "base/log.h"

enum { FAULT_BODY_MAX = 8 * KIB };

#define FAULT_FILE_GONE "Failed to open input stream for file: "

/* Facts that have one answer on every route. */
static const struct {
    enum error_code code;
    struct catalog_fault fault;
} FAULTS[] = {
    {ERROR_TABLE_NOT_FOUND, {404, "NoSuchTableException"}},
    {ERROR_VIEW_NOT_FOUND, {404, "NoSuchViewException"}},
    {ERROR_NAMESPACE_NOT_FOUND, {404, "NoSuchNamespaceException"}},
    {ERROR_WAREHOUSE_NOT_FOUND, {404, "NoSuchWarehouseException"}},
    {ERROR_NOT_FOUND, {404, "NotFoundException"}},
    {ERROR_TABLE_EXISTS, {409, "AlreadyExistsException"}},
    {ERROR_NAME_TAKEN, {409, "AlreadyExistsException"}},
    {ERROR_UNAUTHORIZED, {401, "NotAuthorizedException"}},
    {ERROR_FORBIDDEN, {403, "ForbiddenException"}},
    {ERROR_SEND_ONLY, {403, "ForbiddenException"}},
    {ERROR_LOCATION_REFUSED, {403, "ForbiddenException"}},
    {ERROR_METHOD_NOT_ALLOWED, {405, "UnsupportedOperationException"}},
    {ERROR_INVALID_VIEW, {400, "IllegalArgumentException"}},
    {ERROR_NOT_IMPLEMENTED, {406, "UnsupportedOperationException"}},
};

static struct catalog_fault fault_of_commit(err result)
{
    switch (result) {
    case CONFLICT:
    case BUSY:
    case LIMIT:
    case IO:
    case CANCELLED:
        return (struct catalog_fault){409, "CommitFailedException"};
    case NOT_FOUND:
        return (struct catalog_fault){404, "NotFoundException"};
    case INVALID:
    case CORRUPT:
        return (struct catalog_fault){400, "BadRequestException"};
    case DENIED:
        return (struct catalog_fault){403, "ForbiddenException"};
    case UNKNOWN:
    case OK:
        break;
    }
    return (struct catalog_fault){500, "CommitStateUnknownException"};
}

static struct catalog_fault fault_of_plain(err result, const struct error *error)
{
    switch (result) {
    case INVALID:
        return (struct catalog_fault){400, "BadRequestException"};
    case DENIED:
        return (struct catalog_fault){403, "ForbiddenException"};
    case NOT_FOUND:
        return (struct catalog_fault){404, "NotFoundException"};
    case CONFLICT:
        return error->code == ERROR_INVALID_REQUEST
                   ? (struct catalog_fault){409, "NamespaceNotEmptyException"}
                   : (struct catalog_fault){409, "CommitFailedException"};
    case LIMIT:
    case BUSY:
    case IO:
    case CANCELLED:
        return (struct catalog_fault){503, "ServiceUnavailableException"};
    case CORRUPT:
    case UNKNOWN:
    case OK:
        break;
    }
    return (struct catalog_fault){500, "InternalServerError"};
}

struct catalog_fault catalog_fault_of(enum catalog_kind kind, err result, const struct error *error)
{
    if (result == CORRUPT && str_starts(str_from(error->message), STR(FAULT_FILE_GONE))) {
        return (struct catalog_fault){404, "NotFoundException"};
    }
    for (size_t i = 0; i < ARRAY_COUNT(FAULTS); i++) {
        if (FAULTS[i].code == error->code && result != UNKNOWN) {
            return FAULTS[i].fault;
        }
    }
    if (kind == CATALOG_REGISTER && result == CORRUPT) {
        return (struct catalog_fault){400, "BadRequestException"};
    }
    return kind == CATALOG_COMMIT ? fault_of_commit(result) : fault_of_plain(result, error);
}

str catalog_fault_body(struct arena *arena, struct catalog_fault fault, str message)
{
    buf body = buf_create(arena, 512, FAULT_BODY_MAX);
    buf_append(&body, STR("{\"error\":{\"message\":"));
    buf_append_json_string(&body, message);
    buf_append(&body, STR(",\"type\":\""));
    buf_append(&body, str_from(fault.type));
    buf_append(&body, STR("\",\"code\":"));
    buf_append_i64(&body, fault.status);
    buf_append(&body, STR("}}"));
    return buf_ok(&body) ? buf_str(&body)
                         : STR("{\"error\":{\"message\":\"out of memory\",\"type\":"
                               "\"ServiceUnavailableException\",\"code\":503}}");
}

str catalog_fault_text(struct arena *arena, const struct error *error)
{
    buf message = buf_create(arena, 256, FAULT_BODY_MAX);
    if (error->code == ERROR_SEND_ONLY) {
        buf_append(&message, STR("send_only: "));
    }
    buf_append(&message, str_from(error->message));
    if (error->hint[0] != '\0') {
        buf_append(&message, STR(" ("));
        buf_append(&message, str_from(error->hint));
        buf_append(&message, STR(")"));
    }
    return buf_ok(&message) ? buf_str(&message) : str_from(error->message);
}

void catalog_respond_error(struct call *call, enum catalog_kind kind, err result,
                           struct error *error, str allow)
{
    (void)error_set(error, result, ERROR_NONE, "the request could not be carried out (%s)",
                    err_text(result));
    struct catalog_fault fault = catalog_fault_of(kind, result, error);
    if (fault.status >= 500) {
        log_error("catalog_request_failed", result, error, http_request_id(call->request));
    }
    str message = catalog_fault_text(call->arena, error);
    struct http_response response = {.status = fault.status,
                                     .body = catalog_fault_body(call->arena, fault, message)};
    if (allow.size > 0 && fault.status == 405) {
        response.headers[response.header_count++] = (struct http_header){STR("Allow"), allow};
    }
    if (fault.status == 401) {
        response.headers[response.header_count++] = (struct http_header){STR("WWW-Authenticate"),
                                                                         STR("Bearer")};
    }
    http_respond(call->request, &response);
}
