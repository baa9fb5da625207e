/* api: the management routes: finding the handler, the caller's rights, reading the request,
 * answering.
 *
 * A handler runs on a worker thread and fills an answer or an error; the router sends it. The
 * routes and who may use them stand in routes.def. */
#ifndef LHBOX_SERVER_API_H
#define LHBOX_SERVER_API_H

#include "server/service.h"
#include "sink/ledger.h"

#include <jansson.h>

enum { API_PARTS_MAX = 3, API_LIMIT_DEFAULT = 100, API_LIMIT_MAX = 1000 };

struct api_answer {
    int status;
    json_t *json; /* owned; NULL: no body */
    str text;     /* instead of json; with its type */
    str content_type;
};

struct api_request {
    struct call *call;
    str parts[API_PARTS_MAX]; /* what the stars of the pattern matched */
    struct api_answer answer;
};

typedef err (*api_handler)(struct api_request *request, struct error *error);

#define X(method, pattern, handler, who)                                                           \
    err handler(struct api_request *request, struct error *error);
#include "server/routes.def"
#undef X

/* ---- for handlers ---- */

/* Takes the reference. Always OK, so that it can be returned. */
err api_reply(struct api_request *request, int status, json_t *json);
/* The body as an object whose members are all in `known` (ended by NULL). An empty body is {}. A
 * new reference. INVALID with invalid_request or unknown_field. */
MUST_USE err api_body(struct api_request *request, const char *const *known, json_t **out_body,
                      struct error *error);
/* Members. A required one that is absent, or one of another kind, is invalid_request with its path;
 * an absent optional one leaves *out alone. Texts are copied into the call's arena. */
enum api_member { API_OPTIONAL, API_REQUIRED };
MUST_USE err api_text(struct api_request *request, const json_t *body, const char *name,
                      enum api_member member, str *out_text, struct error *error);
MUST_USE err api_integer(const json_t *body, const char *name, enum api_member member,
                         i64 *out_value, struct error *error);
err api_invalid(struct error *error, const char *path, const char *wanted);
/* The `limit` query parameter. */
MUST_USE err api_limit(struct api_request *request, size_t *out_limit, struct error *error);
str api_cursor(struct api_request *request);               /* empty: none */
bool api_flag(struct api_request *request, str parameter); /* =1 or =true */
json_t *api_json_text(str text);                           /* null when data is NULL */
json_t *api_json_time(instant at);                         /* RFC 3339, null for 0 */
/* The sink that the first star names, of the caller's project. NOT_FOUND: sink_not_found. */
MUST_USE err api_find_sink(struct api_request *request, struct ledger_sink *out_sink,
                           struct error *error);
/* Tells intake and roller that a sink's settings or state changed. */
void api_sink_changed(struct api_request *request, str sink_id);
/* One row in the audit log, by the call's key. A failure is logged: the change has been made. */
void api_audit_write(struct api_request *request, const char *action, str object);
/* The same, durable with the next change of the ledger that is. */
void api_audit_write_later(struct api_request *request, const char *action, str object);

#endif
