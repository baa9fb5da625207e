/* service: what the routes of one process share, and one management request on its way.
 *
 * A service is made once by serve and read by all threads; what changes inside is behind the
 * modules it points to. Management and catalog requests run on a small pool of worker threads,
 * where blocking is allowed; each such request is a `call`. The send route does not use calls: it
 * never blocks. */
#ifndef LHBOX_SERVER_SERVICE_H
#define LHBOX_SERVER_SERVICE_H

#include "account/access.h"
#include "io/http_server.h"
#include "io/journal.h"
#include "sink/warehouse.h"

#include <stdatomic.h>

struct intake;
struct intake_early;
struct intake_log;
struct roller;
struct config;

struct service {
    const struct seam *seam;
    struct db db;
    struct warehouses *warehouses;
    struct intake *intake; /* sink/intake.h */
    struct journal journal;
    struct intake_log *log;     /* over the journal; NULL: none, and nothing of an earlier one */
    struct intake_early *early; /* sink/intake_early.h */
    struct roller *roller;      /* server/roller.h */
    const struct config *config;
    str installation_id;
    str node_id;
    str data_directory; /* absolute; keys/bootstrap lies in it */
    str public_url;     /* http://127.0.0.1:8181 */
    str internal_url;
    bool dev; /* policy floors of `lhbox dev` */
    atomic_bool draining;
};

struct call {
    struct service *service;
    struct http_request *request;
    str body;                   /* whole, as received */
    struct arena *arena;        /* freed when the call returns; 64 MiB */
    struct principal principal; /* filled by the router where a route needs a key */
    bool internal;              /* came by the internal listener */
};

/* Each answers the request exactly once. */
void api_handle(struct call *call);         /* /v1/… and the rest */
void catalog_api_handle(struct call *call); /* /iceberg/… */

#endif
