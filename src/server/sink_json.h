/* sink_json: a sink and its batches as the API shows them (contract: GET /v1/sinks/{id}, batch
 * status).
 *
 * Reads the reject counts from the ledger; runs on a worker thread. */
#ifndef LHBOX_SERVER_SINK_JSON_H
#define LHBOX_SERVER_SINK_JSON_H

#include "server/service.h"
#include "sink/ledger.h"

#include <jansson.h>

/* A new reference. */
MUST_USE err sink_json(struct call *call, const struct ledger_sink *sink, json_t **out_json,
                       struct error *error);
json_t *sink_json_batch(const struct ledger_batch *batch);
const char *sink_json_batch_state(enum batch_state state);

#endif
