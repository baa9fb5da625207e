/* ground: what a server stands on: the locked data directory, its ledger, warehouses and secrets.
 *
 * Opened by the main thread at the start, closed by it at the end. */
#ifndef LHBOX_SERVER_GROUND_H
#define LHBOX_SERVER_GROUND_H

#include "server/config.h"
#include "server/service.h"

enum ground_make { GROUND_EXISTING, GROUND_MAKE };

struct ground_options {
    str data;
    enum ground_make make;
    i64 log_bytes; /* of the intake log; 0: none, but one that is there is still replayed */
    const str *allowed_locations;
    size_t allowed_count;
};

/* Fills data_directory, db, installation_id, warehouses and log of the service. BUSY when another
 * process has the directory; NOT_FOUND, with what to do, when there is nothing and nothing is to be
 * made. */
MUST_USE err ground_open(struct arena *arena, const struct ground_options *options,
                         struct service *service, struct error *error);
void ground_close(struct service *service);
/* Plain HTTP only on loopback, unless it is asked for; TLS keys readable by their owner alone. */
MUST_USE err ground_check_listener(const struct config *config, struct error *error);

#endif
