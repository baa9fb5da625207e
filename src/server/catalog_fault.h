/* catalog_fault: what a failure is called in the REST catalog spec, and its answer.
 *
 * On a commit, clients delete their files after a 4xx and keep them after a 5xx: so a 4xx is
 * answered exactly when nothing was committed. */
#ifndef LHBOX_SERVER_CATALOG_FAULT_H
#define LHBOX_SERVER_CATALOG_FAULT_H

#include "server/service.h"

/* What a failure of the route says: of a commit, that it is not there; of a registration, that the
 * file which the caller names is no metadata. */
enum catalog_kind { CATALOG_PLAIN, CATALOG_COMMIT, CATALOG_REGISTER };

struct catalog_fault {
    int status;
    const char *type; /* the exception's name */
};

struct catalog_fault catalog_fault_of(enum catalog_kind kind, err result,
                                      const struct error *error);
/* The message with its hint. */
str catalog_fault_text(struct arena *arena, const struct error *error);
/* {"error":{"message","type","code"}} */
str catalog_fault_body(struct arena *arena, struct catalog_fault fault, str message);
/* `allow` empty: no such header. */
void catalog_respond_error(struct call *call, enum catalog_kind kind, err result,
                           struct error *error, str allow);

#endif
