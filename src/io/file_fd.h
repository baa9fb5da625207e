/* file_fd: what file and store_dir share below them: whole writes and syncs on open descriptors.
 *
 * The syncs return only when they worked: a failed one is file_durability_lost (exactly-once I28).
 * Any thread. */
#ifndef LHBOX_IO_FILE_FD_H
#define LHBOX_IO_FILE_FD_H

#include "io/file.h"

/* IO with disk_low where the space is used up, else with store_down. */
MUST_USE err file_fd_error(int error_number, const char *what, str path, struct error *error);
/* All the pieces, whatever the kernel takes at once. */
MUST_USE err file_fd_write(int fd, const str *pieces, size_t count, str path, struct error *error);
/* The same into a new file, and the disk takes the bytes from where they are, without a copy in the
 * system's memory of files: as far as the pieces are whole pages that begin at a multiple of
 * FILE_PAGE_BYTES, where they are many and the file system can do that. */
enum { FILE_PAGE_BYTES = 4096 };
MUST_USE err file_fd_write_uncached(int fd, const str *pieces, size_t count, str path,
                                    struct error *error);
/* From the start to the end of a regular file into the arena, NUL-terminated. LIMIT past bytes_max.
 */
MUST_USE err file_fd_read(struct arena *arena, int fd, size_t bytes_max, str path, str *out_bytes,
                          struct error *error);
void file_fd_sync(int fd, str path);
/* Closes a descriptor that was written: a late error is a lost write. */
void file_fd_close_written(int fd, str path);
/* Room for a path and a NUL; false when the path is longer or holds a NUL. */
enum { FILE_PATH_MAX = 4096 };
MUST_USE bool file_fd_path(str path, char out[FILE_PATH_MAX]);

#endif
