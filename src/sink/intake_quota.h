/* intake_quota: the bytes of each file bucket against its quota; private to sink/intake*.c.
 *
 * What is accepted is added up, and the bucket is measured when the sum says that it is full, at
 * most once a second: what rolls and sweeps take away is seen then. On a worker: measuring lists
 * the bucket. */
#ifndef LHBOX_SINK_INTAKE_QUOTA_H
#define LHBOX_SINK_INTAKE_QUOTA_H

#include "sink/intake_send.h"

struct intake_quota;

MUST_USE err intake_quota_open(struct arena *arena, const struct intake_options *options,
                               struct intake_quota **out_quota, struct error *error);
void intake_quota_close(struct intake_quota *quota);
/* True when the bucket surely has room, which then is taken. Does not block. NULL: no quota. */
bool intake_quota_try(struct intake_quota *quota, const struct warehouse *warehouse, i64 bytes);
/* False when the bucket has no room for so many bytes more. */
bool intake_quota_take(struct intake_quota *quota, const struct warehouse *warehouse, i64 bytes);

#endif
