/* send_source: a file or stdin as the bodies of sends.
 *
 * A file that begins with `{` is NDJSON: its lines become arrays of at most SEND_BODY_BYTES_MAX
 * bytes and SEND_ROWS_MAX elements, each line's bytes as they are. Anything else is one body, as it
 * is; the server judges it. One body is in memory at a time. */
#ifndef LHBOX_CLI_SEND_SOURCE_H
#define LHBOX_CLI_SEND_SOURCE_H

#include "base/arena.h"
#include "base/error.h"

enum { SEND_BODY_BYTES_MAX = 16 * MIB, SEND_ROWS_MAX = 100000 };

struct send_source;

struct send_batch {
    str body;       /* until the next one is asked for and found */
    i64 bytes_read; /* of the source, up to the end of this batch */
    bool last;
};

/* `path` "-" is stdin. NOT_FOUND, IO. */
MUST_USE err send_source_open(struct arena *arena, str path, struct send_source **out_source,
                              struct error *error);
void send_source_close(struct send_source *source);
/* -1 when it is no plain file. */
i64 send_source_size(const struct send_source *source);
/* NOT_FOUND at the end; LIMIT when a body would be too large; IO. */
MUST_USE err send_source_next(struct send_source *source, struct send_batch *out_batch,
                              struct error *error);

#endif
