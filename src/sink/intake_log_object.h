/* intake_log_object: an object that the replay of the intake log brings back, of one record or of
 * several that share it; private to sink/intake*.c.
 *
 * Which of an object's records is the last in the log is found in a first pass
 * (intake_log_objects_note); in the second one each adds its part (intake_log_objects_add), and
 * with the last part the object is compared with the store's, and put again where they differ. So
 * what is held in memory is what the server held that wrote the log. */
#ifndef LHBOX_SINK_INTAKE_LOG_OBJECT_H
#define LHBOX_SINK_INTAKE_LOG_OBJECT_H

#include "sink/intake_log_record.h"
#include "sink/warehouse.h"

struct intake_log_objects;

/* NULL at the memory limit. */
struct intake_log_objects *intake_log_objects_create(void);
void intake_log_objects_destroy(struct intake_log_objects *objects); /* NULL: does nothing */
/* The record stands at the position; records come in order. */
MUST_USE err intake_log_objects_note(struct intake_log_objects *objects,
                                     const struct intake_log_record *record, u64 position,
                                     struct error *error);
/* `needed`: a batch of the record waits, or its orphan is decided on later. An object of which no
 * part is needed is not made again; but half of it would be taken for a damaged one, so it is
 * mended where it is there. *out_put: it was put again. */
MUST_USE err intake_log_objects_add(struct intake_log_objects *objects,
                                    const struct intake_log_record *record, u64 position,
                                    const struct warehouse *warehouse, bool needed, bool *out_put,
                                    struct error *error);

/* Puts the file unless it is there with these bytes and this metadata: what a power loss took of it
 * is anything, none of it, a part, or its metadata. */
MUST_USE err intake_log_ensure_file(const struct warehouse *warehouse, str key, str body,
                                    struct store_meta *meta, bool *out_put, struct error *error);

#endif
