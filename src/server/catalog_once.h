/* catalog_once: a catalog request with an Idempotency-Key takes effect once, and its repeats get an
 * equal answer (table/catalog_receipt). What was done is answered from the present state; what was
 * refused for good is refused again in the same words; a failure that may pass is not remembered.
 * A staged create has no effect and is done again each time. */
#ifndef LHBOX_SERVER_CATALOG_ONCE_H
#define LHBOX_SERVER_CATALOG_ONCE_H

#include "server/catalog_api.h"
#include "server/catalog_fault.h"

/* Runs the handler, or answers as it was answered before. */
MUST_USE err catalog_once(struct catalog_request *request, catalog_handler handler,
                          enum catalog_kind kind, struct error *error);

#endif
