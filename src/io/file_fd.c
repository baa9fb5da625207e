#include "io/file_fd.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

err file_fd_error(int error_number, const char *what, str path, struct error *error)
{
    bool full = error_number == ENOSPC || error_number == EDQUOT;
    return error_set(error, IO, full ? ERROR_DISK_LOW : ERROR_STORE_DOWN, "%s %.*s: %s", what,
                     STR_ARG(path), strerrordesc_np(error_number));
}

err file_fd_write(int fd, const str *pieces, size_t count, str path, struct error *error)
{
    for (size_t i = 0; i < count; i++) {
        str rest = pieces[i];
        while (rest.size > 0) {
            ssize_t wrote = write(fd, rest.data, rest.size);
            if (wrote < 0 && errno == EINTR) {
                continue;
            }
            if (wrote < 0) {
                return file_fd_error(errno, "cannot write", path, error);
            }
            rest = str_slice(rest, (size_t)wrote, rest.size);
        }
    }
    return OK;
}

err file_fd_read(struct arena *arena, int fd, size_t bytes_max, str path, str *out_bytes,
                 struct error *error)
{
    struct stat status;
    if (fstat(fd, &status) != 0) {
        return file_fd_error(errno, "cannot look at", path, error);
    }
    if (!S_ISREG(status.st_mode)) {
        return error_set(error, IO, ERROR_STORE_DOWN, "%.*s is no regular file", STR_ARG(path));
    }
    size_t size = (size_t)status.st_size;
    /* Not zeroed: a roll reads many MiB. */
    char *bytes = size <= bytes_max ? arena_grow(arena, NULL, 0, size + 1) : NULL;
    if (bytes == NULL) {
        return error_set(error, LIMIT, ERROR_OVERLOADED, "%.*s has %zu bytes, too many here",
                         STR_ARG(path), size);
    }
    size_t have = 0;
    while (have < size) {
        ssize_t got = read(fd, bytes + have, size - have);
        if (got < 0 && errno == EINTR) {
            continue;
        }
        if (got <= 0) {
            return file_fd_error(got < 0 ? errno : EIO, "cannot read", path, error);
        }
        have += (size_t)got;
    }
    bytes[size] = 0;
    *out_bytes = (str){bytes, size};
    return OK;
}

void file_fd_sync(int fd, str path)
{
    if (fsync(fd) != 0) {
        file_durability_lost("fsync", path, errno);
    }
}

void file_fd_close_written(int fd, str path)
{
    /* After EINTR the descriptor is closed on Linux, and what was synced is durable. */
    if (close(fd) != 0 && errno != EINTR) {
        file_durability_lost("close", path, errno);
    }
}

bool file_fd_path(str path, char out[FILE_PATH_MAX])
{
    if (path.size == 0 || path.size >= FILE_PATH_MAX || str_find_byte(path, '\0') >= 0) {
        return false;
    }
    memcpy(out, path.data, path.size);
    out[path.size] = '\0';
    return true;
}
