/* journal_files: what the journal in a directory asks of its files; private to io and the tests.
 *
 * A seam, so that the tests can lose, tear and refuse what is written, and stop between any two
 * calls. Names are parts of a path, without slashes. */
#ifndef LHBOX_IO_JOURNAL_FILES_H
#define LHBOX_IO_JOURNAL_FILES_H

#include "io/journal.h"

enum { JOURNAL_NAMES_MAX = 2048, JOURNAL_NAME_ROOM = 64, JOURNAL_ALIGNMENT = 4096 };

struct journal_file_ops {
    /* All names, without those that begin with a dot. LIMIT past JOURNAL_NAMES_MAX. */
    err (*list)(void *self, struct arena *arena, str *out_names, size_t *out_count,
                struct error *error);
    /* A small file. NOT_FOUND. */
    err (*load)(void *self, struct arena *arena, str name, str *out_bytes, struct error *error);
    /* Replaces a small file, durable when OK. */
    err (*save)(void *self, str name, str bytes, struct error *error);
    /* A new file that has its room and reads as zeros, durable when OK; gone again on failure. */
    err (*make)(void *self, str name, u64 bytes, struct error *error);
    err (*remove)(void *self, str name, struct error *error);
    /* For reads and writes of whole blocks; BUSY while another process has it open. NOT_FOUND. */
    err (*open)(void *self, str name, int *out_file, u64 *out_bytes, struct error *error);
    err (*read)(void *self, int file, u64 offset, void *out_bytes, size_t size,
                struct error *error);
    /* Zeros where nothing was ever written: a block that was costs a quarter to write again. */
    err (*fill)(void *self, int file, u64 bytes, struct error *error);
    /* Durable when OK. Anything else: nobody knows what is on the disk, and it must not be asked
     * again. The real files end the process then. */
    err (*write)(void *self, int file, u64 offset, const void *bytes, size_t size,
                 struct error *error);
    /* What an earlier process wrote is on the disk. */
    err (*sync)(void *self, int file, struct error *error);
    void (*close)(void *self, int file);
    void (*end)(void *self); /* after all others */
};

struct journal_files {
    const struct journal_file_ops *ops;
    void *self;
};

MUST_USE err journal_files_open_dir(struct arena *arena, str directory,
                                    struct journal_files *out_files, struct error *error);

/* journal_open_dir over these files, which it ends when it is closed or cannot be opened. */
MUST_USE err journal_open_files(struct arena *arena, const struct journal_options *options,
                                const struct journal_files *files, struct journal *out_journal,
                                struct error *error);

#endif
