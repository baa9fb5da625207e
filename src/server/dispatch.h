/* dispatch: from the http loops to the send route, and everything else to a pool of workers.
 *
 * The send route never blocks and is handled on its loop. Management and catalog requests are read
 * whole, then a worker makes a `call` of them, where blocking is allowed. A full queue is 503
 * overloaded. */
#ifndef LHBOX_SERVER_DISPATCH_H
#define LHBOX_SERVER_DISPATCH_H

#include "server/service.h"

enum { DISPATCH_BODY_BYTES_MAX = 16 * MIB, DISPATCH_CALL_BYTES_MAX = 64 * MIB };

struct dispatch;

MUST_USE err dispatch_open(struct arena *arena, struct service *service, i32 workers,
                           size_t queue_max, struct dispatch **out_dispatch, struct error *error);
/* Of the public listener, and of the internal one. */
struct http_handlers dispatch_public(struct dispatch *dispatch);
struct http_handlers dispatch_internal(struct dispatch *dispatch);
/* Carries out what was taken and ends the workers. */
void dispatch_close(struct dispatch *dispatch);

#endif
