/* file: the few file-system calls lhbox makes outside a store.
 *
 * A failed fsync, fdatasync or close of a durable file is never retried: file_durability_lost() is
 * called, which answers no further request and ends the process with exit code 74 (exactly-once
 * I28). */
#ifndef LHBOX_IO_FILE_H
#define LHBOX_IO_FILE_H

#include "base/arena.h"
#include "base/error.h"

enum { FILE_EXIT_DURABILITY = 74 };

/* mkdir -p with mode 0700, each new directory fsynced in its parent. */
MUST_USE err file_make_directory(str path, struct error *error);
/* The whole file, at most bytes_max. NOT_FOUND, LIMIT, IO. */
MUST_USE err file_read(struct arena *arena, str path, size_t bytes_max, str *out_bytes,
                       struct error *error);
/* Temp file in the same directory, write, fsync, rename, fsync directory. Mode as given. */
MUST_USE err file_write_durable(str path, str bytes, u32 mode, struct error *error);
/* O_CREAT | O_EXCL, mode 0600, fsynced: CONFLICT when it exists. For secrets. */
MUST_USE err file_write_new(str path, str bytes, struct error *error);
bool file_exists(str path);
/* True when group or others can read or write it. */
bool file_is_exposed(str path);
/* flock(2) on `<directory>/.lock`, kept until the process ends. BUSY when another process has it.
 */
MUST_USE err file_lock_directory(str directory, struct error *error);
/* Bytes free and bytes in all of the file system that holds `path`. */
MUST_USE err file_space(str path, i64 *out_free, i64 *out_total, struct error *error);
/* An absolute path without `.` and `..` (the last part need not exist). */
MUST_USE err file_absolute(struct arena *arena, str path, str *out_path, struct error *error);

/* Logs, counts and leaves with exit code 74 at once. `what` names the call. */
_Noreturn void file_durability_lost(const char *what, str path, int error_number);

#endif
