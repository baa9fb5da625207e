#include "io/file_fd.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

err file_fd_error(int error_number, const char *what, str path, struct error *error)
{
    bool full = error_number == ENOSPC || error_number == EDQUOT;
    return error_set(error, IO, full ? ERROR_DISK_LOW : ERROR_STORE_DOWN, "%s %.*s: %s", what,
                     STR_ARG(path), strerrordesc_np(error_number));
}

/* What one call takes; far less than IOV_MAX. */
enum { WRITE_PIECES_MAX = 64 };

/* An iovec over bytes that are only read. */
static struct iovec piece_of(str bytes)
{
    union {
        const char *given;
        char *asked; /* writev does not write there */
    } base = {.given = bytes.data};
    return (struct iovec){base.asked, bytes.size};
}

/* The next pieces, the first of them from `done` on; returns how many. */
static int pieces_gather(const str *pieces, size_t count, size_t done,
                         struct iovec out[WRITE_PIECES_MAX])
{
    int gathered = 0;
    for (size_t i = 0; i < count && gathered < WRITE_PIECES_MAX; i++) {
        out[gathered++] = piece_of(str_slice(pieces[i], i == 0 ? done : 0, pieces[i].size));
    }
    return gathered;
}

err file_fd_write(int fd, const str *pieces, size_t count, str path, struct error *error)
{
    size_t at = 0;
    size_t done = 0; /* of pieces[at] */
    while (at < count) {
        if (done == pieces[at].size) {
            at++;
            done = 0;
            continue;
        }
        struct iovec gathered[WRITE_PIECES_MAX];
        int many = pieces_gather(pieces + at, count - at, done, gathered);
        ssize_t wrote = writev(fd, gathered, many);
        if (wrote < 0 && errno == EINTR) {
            continue;
        }
        if (wrote < 0) {
            return file_fd_error(errno, "cannot write", path, error);
        }
        done += (size_t)wrote;
        for (; at < count && done > pieces[at].size; at++) {
            done -= pieces[at].size;
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
