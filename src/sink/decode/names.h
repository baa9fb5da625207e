/* decode/names: what is wrong with a row's names, before any value is looked at. */
#ifndef LHBOX_SINK_DECODE_NAMES_H
#define LHBOX_SINK_DECODE_NAMES_H

#include "sink/decode.h"
#include "sink/decode/hits.h"

/* duplicate_key, bad_unicode in a name, reserved_column, unknown_column: in this order, each in
 * byte order. */
void decode_check_names(struct decode_hits *hits, const struct decode_tree *tree,
                        enum decode_unknown unknown);

/* Whether the top-level member goes into the capture column, that column's own name included. */
bool decode_is_captured(const struct decode_tree *tree, u32 member);
/* Appends the captured members as one JSON object, each as sent: their number goes to
 * *out_count. What is wrong with them are hits. */
void decode_capture(struct decode_hits *hits, const struct decode_tree *tree, buf *out,
                    size_t *out_count);

#endif
