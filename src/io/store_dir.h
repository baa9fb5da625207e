/* store_dir: what the parts of the directory store share; private to io.
 *
 * store_dir.c opens and reads, store_put.c writes, store_list.c walks the directories. Any thread.
 */
#ifndef LHBOX_IO_STORE_DIR_H
#define LHBOX_IO_STORE_DIR_H

#include "io/store.h"

#include <pthread.h>
#include <stdatomic.h>
#include <sys/stat.h>

/* All of an object's metadata, as a sidecar has it. */
#define STORE_DIR_META "user.lhbox"
/* Of older objects, with an attribute for each entry: the last one, which says that all are there.
 */
#define STORE_DIR_TYPE "user.mime_type"

enum {
    STORE_DIR_DURABLE_SLOTS = 4096,
    STORE_DIR_NAME_ROOM = 256,
    STORE_DIR_TEMPORARY_ROOM = 64,
    STORE_DIR_SIDECAR_MAX = STORE_META_LIST_BYTES_MAX + 4096,
    STORE_DIR_ATTRIBUTE_MAX = STORE_META_BYTES_MAX + 512,
    STORE_DIR_VERSION_ROOM = 64,
};

struct store_dir {
    str directory; /* for messages */
    int root;
    int temporary;
    dev_t device;                /* the file system of both */
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
/* `a/b/c` to `a/b` (empty: the root) and `c`, which gets a NUL. */
MUST_USE err store_dir_split(str key, str *out_parent, char out_name[STORE_DIR_NAME_ROOM],
                             struct error *error);
/* `.<name>.meta`; false where that is longer than a file system takes. */
MUST_USE bool store_dir_sidecar(const char *name, char out[STORE_DIR_NAME_ROOM]);
/* What an open that failed for this reason means. */
MUST_USE err store_dir_refused(int reason, str key, struct error *error);
/* A name that no other writer of the machine has, nor another life of this process id. */
void store_dir_temporary(char out[STORE_DIR_TEMPORARY_ROOM]);
str store_dir_version(const struct stat *status, char out[STORE_DIR_VERSION_ROOM]);
MUST_USE err store_dir_put(void *self, str key, const str *pieces, size_t piece_count,
                           const struct store_meta *meta, struct error *error);
extern const struct store_group_ops store_dir_group;
MUST_USE err store_dir_group_put(void *self, struct store_group *group, str key, const str *pieces,
                                 size_t piece_count, const struct store_meta *meta,
                                 struct error *error);
err store_dir_list(void *self, struct arena *arena, str prefix, str after, size_t limit,
                   struct store_list *out_list, struct error *error);

#endif
