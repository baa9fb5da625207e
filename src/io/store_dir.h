/* store_dir: what the two halves of the directory store share; private to io.
 *
 * store_dir.c reads and writes single objects, store_list.c walks the directories. Any thread. */
#ifndef LHBOX_IO_STORE_DIR_H
#define LHBOX_IO_STORE_DIR_H

#include "io/store.h"

#include <pthread.h>
#include <stdatomic.h>

enum { STORE_DIR_DURABLE_SLOTS = 4096 };

struct store_dir {
    str directory; /* for messages */
    int root;
    int temporary;
    atomic_bool openat2_missing; /* an older kernel: names are walked part by part */
    pthread_mutex_t making;
    pthread_mutex_t replacing; /* around a look at a version and the rename that rests on it */
    /* Hashes of directories whose entry in their parent is known to be on the disk. A slot
     * that another name takes costs an fsync, nothing else. */
    _Atomic u64 durable[STORE_DIR_DURABLE_SLOTS];
};

/* Opens a name beneath the root without following any link; empty: the root itself. -1 and errno.
 */
int store_dir_open(struct store_dir *dir, str name, int flags);
err store_dir_list(void *self, struct arena *arena, str prefix, str after, size_t limit,
                   struct store_list *out_list, struct error *error);

#endif
