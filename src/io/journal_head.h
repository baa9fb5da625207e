/* journal_head: which files a journal consists of; private to io.
 *
 * `head` is a small text that says whose log it is and how large; the segments are named
 * `<log id>.<number>`. Segments come first and go last, so whatever stops in between, a head has
 * all its segments, and files that are not the head's hold nothing that is needed. A segment
 * without any head is looked into before it is taken for the rest of an unfinished making. */
#ifndef LHBOX_IO_JOURNAL_HEAD_H
#define LHBOX_IO_JOURNAL_HEAD_H

#include "io/journal_block.h"
#include "io/journal_files.h"

struct journal_head {
    str identity;
    u64 log;
    u64 segment_bytes;
    u32 segments;
};

/* The head and its open segments; of another or no log CORRUPT or INVALID; made when there is none.
 * Files of no use are removed. `window` is JOURNAL_GROUP_BYTES of aligned room. */
MUST_USE err journal_head_open(struct arena *arena, const struct journal_files *files,
                               const struct journal_options *options, u8 *window,
                               struct journal_head *out_head, int out_segments[],
                               struct error *error);
/* A new log of the options' sizes in place of one that holds nothing to replay; its segments are
 * closed, and the new ones open. */
MUST_USE err journal_head_replace(struct arena *arena, const struct journal_files *files,
                                  const struct journal_options *options, struct journal_head *head,
                                  int segments[], struct error *error);
void journal_head_close(const struct journal_files *files, const struct journal_head *head,
                        const int segments[]);
/* The text of the file, and back; CORRUPT. The identity is lent. */
str journal_head_print(struct arena *arena, const struct journal_head *head);
MUST_USE err journal_head_parse(str text, struct journal_head *out_head, struct error *error);

#endif
