#include "io/file_fd.h"

#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
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

/* ---- writing ---- */

enum {
    WRITE_PIECES_MAX = 64,        /* what one call takes; far less than IOV_MAX */
    UNCACHED_BYTES_MIN = 1 * MIB, /* fewer are copied sooner than a disk answers */
    /* With more at once, who waits for a small write beside it waits for all of that. */
    UNCACHED_CALL_BYTES = 512 * KIB,
};

/* Of the pieces, what is not written yet. */
struct rest {
    const str *pieces;
    size_t count;
    size_t done; /* of the first */
};

/* An iovec over bytes that are only read. */
static struct iovec piece_of(str bytes)
{
    union {
        const char *given;
        char *asked; /* writev does not write there */
    } base = {.given = bytes.data};
    return (struct iovec){base.asked, bytes.size};
}

/* Writes what one call takes of the next `bytes`; like writev. */
static ssize_t write_some(int fd, const struct rest *rest, size_t bytes)
{
    struct iovec gathered[WRITE_PIECES_MAX];
    int many = 0;
    for (size_t i = 0; i < rest->count && bytes > 0 && many < WRITE_PIECES_MAX; i++) {
        str piece = str_slice(rest->pieces[i], i == 0 ? rest->done : 0, rest->pieces[i].size);
        piece.size = piece.size < bytes ? piece.size : bytes;
        bytes -= piece.size;
        gathered[many++] = piece_of(piece);
    }
    ssize_t wrote = 0;
    do {
        wrote = writev(fd, gathered, many);
    } while (wrote < 0 && errno == EINTR);
    return wrote;
}

static void rest_pass(struct rest *rest, size_t bytes)
{
    rest->done += bytes;
    while (rest->count > 0 && rest->done >= rest->pieces->size) {
        rest->done -= rest->pieces->size;
        rest->pieces++;
        rest->count--;
    }
}

MUST_USE static err write_rest(int fd, struct rest *rest, str path, struct error *error)
{
    rest_pass(rest, 0); /* empty ones in front */
    while (rest->count > 0) {
        ssize_t wrote = write_some(fd, rest, SIZE_MAX);
        if (wrote < 0) {
            return file_fd_error(errno, "cannot write", path, error);
        }
        rest_pass(rest, (size_t)wrote);
    }
    return OK;
}

err file_fd_write(int fd, const str *pieces, size_t count, str path, struct error *error)
{
    struct rest rest = {.pieces = pieces, .count = count};
    return write_rest(fd, &rest, path, error);
}

/* Bytes from the front on that are whole pages of memory. */
static size_t whole_pages(const struct rest *rest)
{
    size_t bytes = 0;
    for (size_t i = 0; i < rest->count; i++) {
        str piece = rest->pieces[i];
        if ((uintptr_t)piece.data % FILE_PAGE_BYTES != 0) {
            break;
        }
        bytes += piece.size - piece.size % FILE_PAGE_BYTES;
        if (piece.size % FILE_PAGE_BYTES != 0) {
            break;
        }
    }
    return bytes;
}

MUST_USE static bool set_direct(int fd, int direct)
{
    int flags = fcntl(fd, F_GETFL);
    return flags >= 0 && fcntl(fd, F_SETFL, (flags & ~O_DIRECT) | direct) == 0;
}

/* What the file system does not take in this way is left in the rest, to be tried in the usual one,
 * which then tells what is wrong. */
static void write_pages(int fd, struct rest *rest, size_t bytes)
{
    while (bytes > 0) {
        size_t some = bytes < UNCACHED_CALL_BYTES ? bytes : UNCACHED_CALL_BYTES;
        ssize_t wrote = write_some(fd, rest, some);
        if (wrote <= 0) {
            return;
        }
        rest_pass(rest, (size_t)wrote);
        bytes -= (size_t)wrote;
    }
}

err file_fd_write_uncached(int fd, const str *pieces, size_t count, str path, struct error *error)
{
    struct rest rest = {.pieces = pieces, .count = count};
    size_t bytes = whole_pages(&rest);
    if (bytes >= UNCACHED_BYTES_MIN && set_direct(fd, O_DIRECT)) {
        write_pages(fd, &rest, bytes);
        if (!set_direct(fd, 0)) {
            return file_fd_error(errno, "cannot write", path, error);
        }
    }
    return write_rest(fd, &rest, path, error);
}

/* ---- reading ---- */

/* To elsewhere than the begin of a cache line the kernel copies at half the speed. One byte of it
 * is for the NUL: an arena's memory begins at a multiple of 16. */
enum { READ_ALIGN = 64 };

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
    char *bytes = size <= bytes_max ? arena_grow(arena, NULL, 0, size + READ_ALIGN) : NULL;
    if (bytes == NULL) {
        return error_set(error, LIMIT, ERROR_OVERLOADED, "%.*s has %zu bytes, too many here",
                         STR_ARG(path), size);
    }
    bytes += -(uintptr_t)bytes % READ_ALIGN;
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

/* ---- durable ---- */

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
