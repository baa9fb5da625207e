/* catalog_receipt: a request that carries an Idempotency-Key takes effect once (REST catalog spec,
 * "Idempotency-Key").
 *
 * catalog_receipt_open gives the same catalog, whose transactions write the request's receipt
 * beside their effect: a repeat finds the receipt exactly when the effect is there, whatever became
 * of the answer. Two requests under one id at the same time: one takes effect, the other CONFLICT.
 * Receipts are kept for CATALOG_RECEIPT_US. Any thread; blocking. */
#ifndef LHBOX_TABLE_CATALOG_RECEIPT_H
#define LHBOX_TABLE_CATALOG_RECEIPT_H

#include "table/catalog_local.h"

#define CATALOG_RECEIPT_US   (30 * 60 * TIME_SECOND_US)
#define CATALOG_RECEIPT_TEXT "PT30M" /* the same, ISO 8601 */

enum { CATALOG_RECEIPT_BODY_MAX = 16 * KIB };

struct catalog_receipt;

/* What became of an earlier request under the id. */
struct catalog_outcome {
    bool found;
    int status; /* 0: it was done; else it was refused with this and `body` */
    str body;
};

/* `request_hash` tells requests apart. What the arguments point to must live as long as the
 * receipt, which lives in the arena. */
MUST_USE err catalog_receipt_open(struct arena *arena, const struct catalog *catalog, str id,
                                  str request_hash, struct catalog_receipt **out_receipt,
                                  struct error *error);
/* The catalog to carry the request out with. */
struct catalog catalog_receipt_catalog(struct catalog_receipt *receipt);
/* INVALID: the id was used for another request. */
MUST_USE err catalog_receipt_find(struct catalog_receipt *receipt, struct arena *arena,
                                  struct catalog_outcome *out_outcome, struct error *error);
/* For a request that is over without a transaction of its own: it changed nothing (status 0), or it
 * was refused and always would be. OK also when there is a receipt already. */
MUST_USE err catalog_receipt_write(struct catalog_receipt *receipt, int status, str body,
                                   struct error *error);

#endif
