/* file_tree: a directory copied with all below it, durable and read back.
 *
 * Regular files and directories, with their extended attributes (a store keeps its metadata there).
 * Names that begin with a dot are left out, but for the sidecars `.<name>.meta` of a store; links
 * and everything else too. Files may come while it runs, and may go: what is gone when its turn
 * comes is left out. Files that are replaced by rename, as ours are, are copied whole, the old or
 * the new one. What the target has already, by name and size, stays.
 *
 * A copied file is hashed while it is read, synced, and read again: CORRUPT when it came out
 * otherwise. Blocking; any thread. */
#ifndef LHBOX_IO_FILE_TREE_H
#define LHBOX_IO_FILE_TREE_H

#include "base/arena.h"
#include "base/error.h"
#include "io/crypto.h"

enum file_tree_how {
    FILE_TREE_COPY,
    FILE_TREE_LINK, /* hard links: no second copy of the bytes; the same file system only */
};

struct file_tree_file {
    str path; /* below the root */
    i64 bytes;
    bool has_hash; /* a link is not read */
    struct sha256 hash;
};

/* After each file that is new in the target. */
typedef err (*file_tree_told)(void *context, const struct file_tree_file *file,
                              struct error *error);

struct file_tree {
    str from; /* absolute */
    str to;   /* absolute; made when missing, mode 0700 */
    enum file_tree_how how;
    str only;   /* files of this name alone; empty: all */
    str except; /* files of this name not; empty: none */
    file_tree_told told;
    void *context;
};

MUST_USE err file_tree_copy(const struct file_tree *tree, struct error *error);
MUST_USE err file_tree_hash(str path, struct sha256 *out_hash, i64 *out_bytes, struct error *error);
/* True when the directory is missing or has nothing in it. */
MUST_USE err file_tree_is_empty(str directory, bool *out_empty, struct error *error);

#endif
