/* catalog_api: the embedded catalog's REST face: the open Iceberg REST catalog spec below /iceberg.
 *
 * A handler runs on a worker thread and fills an answer or an error; catalog_api_handle finds the
 * route, the caller, the warehouse and the names, and sends one of the two, errors in the REST
 * spec's form. A 4xx on a commit says that nothing was committed; a 5xx that it is not known. */
#ifndef LHBOX_SERVER_CATALOG_API_H
#define LHBOX_SERVER_CATALOG_API_H

#include "server/service.h"
#include "table/catalog_local.h"

enum { CATALOG_PAGE_MAX = 1000 };

struct catalog_request {
    struct call *call;
    struct arena *arena; /* of the call */
    const struct warehouse *warehouse;
    struct catalog catalog; /* the warehouse's, or one that keeps a receipt beside it */
    struct catalog_local *local;
    str namespace_name; /* joined by 0x1F */
    str name;           /* of a table or view */
    bool done;          /* it took effect before: the answer alone is wanted */
    /* the answer */
    bool staged; /* it has no effect */
    int status;
    str body;
    str etag;
};

typedef err (*catalog_handler)(struct catalog_request *request, struct error *error);

#define X(method, pattern, handler, level, kind)                                                   \
    err handler(struct catalog_request *request, struct error *error);
#include "server/catalog_routes.def"
#undef X

/* Routes without a prefix. */
err catalog_answer_config(struct catalog_request *request, struct error *error);
void catalog_answer_token(struct call *call);

/* ---- for handlers ---- */

/* The body as an object; a new reference. INVALID. */
MUST_USE err catalog_body(struct catalog_request *request, json_t **out_body, struct error *error);
/* Takes the reference. UNKNOWN when there is no room for the answer: what the request did is done.
 */
MUST_USE err catalog_reply(struct catalog_request *request, json_t *json, struct error *error);
/* 204. Always OK. */
err catalog_reply_nothing(struct catalog_request *request);
/* An error answer that only one route has. Always OK. */
err catalog_refuse(struct catalog_request *request, int status, const char *type, str message);
/* A namespace from its JSON array, and back (a new reference). */
MUST_USE err catalog_space_from_json(struct arena *arena, const json_t *parts, str *out_name,
                                     struct error *error);
json_t *catalog_space_to_json(str name);
MUST_USE err catalog_table_from_json(struct arena *arena, const json_t *identifier,
                                     struct table_name *out_name, struct error *error);
json_t *catalog_text(str text); /* a new reference */
/* `true` in any case, or 1. */
bool catalog_query_flag(struct catalog_request *request, str name);
/* The page of `names` that the query asks for; *out_next is the token of the next one, data NULL:
 * none. */
MUST_USE err catalog_page(struct catalog_request *request, struct catalog_names *names,
                          str *out_next, struct error *error);
/* {"<member>": items, "next-page-token"?}; takes the reference. */
MUST_USE err catalog_reply_page(struct catalog_request *request, const char *member, json_t *items,
                                str next, struct error *error);
/* The page of a namespace's tables or views. */
MUST_USE err catalog_reply_names(struct catalog_request *request, struct catalog_names *names,
                                 struct error *error);
/* `name` and `metadata-location` of a body, and whether it says `overwrite`. */
struct catalog_registration {
    str name;
    str metadata_location;
    enum catalog_register how;
};
MUST_USE err catalog_read_registration(const json_t *body, struct catalog_registration *out_wanted,
                                       struct error *error);
MUST_USE err catalog_body_name(const json_t *body, str *out_name, struct error *error);
/* `source` and `destination` of the body. */
MUST_USE err catalog_rename(struct catalog_request *request, enum catalog_item item,
                            struct error *error);
/* What the path names. */
struct table_name catalog_named(const struct catalog_request *request);
const struct warehouse *catalog_only_warehouse(const struct call *call);
/* "GET /v1/{prefix}/namespaces", …: a new reference to an array. */
json_t *catalog_endpoints(void);

#endif
