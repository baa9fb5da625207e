#include "io/file.h"

#include "base/log.h"
#include "base/metric.h"
#include "io/file_fd.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

static err path_refused(str path, struct error *error)
{
    return error_set(error, INVALID, ERROR_INVALID_CONFIG, "%.*s is no usable path", STR_ARG(path));
}

/* The directory that holds the last part: `.` for a bare name, `/` for a name in the root. */
static str path_parent(str path)
{
    while (path.size > 1 && path.data[path.size - 1] == '/') {
        path.size--;
    }
    i64 slash = str_find_last_byte(path, '/');
    if (slash < 0) {
        return STR(".");
    }
    return slash == 0 ? STR("/") : str_slice(path, 0, (size_t)slash);
}

MUST_USE static err directory_open(str path, int *out_fd, struct error *error)
{
    char text[FILE_PATH_MAX];
    if (!file_fd_path(path, text)) {
        return path_refused(path, error);
    }
    int fd = open(text, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0) {
        return file_fd_error(errno, "cannot open directory", path, error);
    }
    *out_fd = fd;
    return OK;
}

MUST_USE static err directory_sync(str path, struct error *error)
{
    int fd = -1;
    TRY(directory_open(path, &fd, error));
    file_fd_sync(fd, path);
    (void)close(fd);
    return OK;
}

MUST_USE static err directory_make_one(str path, struct error *error)
{
    char text[FILE_PATH_MAX];
    if (!file_fd_path(path, text)) {
        return path_refused(path, error);
    }
    if (mkdir(text, 0700) == 0) {
        return directory_sync(path_parent(path), error);
    }
    struct stat status;
    if (errno == EEXIST && stat(text, &status) == 0 && S_ISDIR(status.st_mode)) {
        return OK;
    }
    return file_fd_error(errno, "cannot make directory", path, error);
}

err file_make_directory(str path, struct error *error)
{
    for (size_t at = 1; at <= path.size; at++) {
        bool part_ends = at == path.size || path.data[at] == '/';
        if (part_ends && path.data[at - 1] != '/') {
            TRY(directory_make_one(str_slice(path, 0, at), error));
        }
    }
    return path.size > 0 ? OK : path_refused(path, error);
}

err file_read(struct arena *arena, str path, size_t bytes_max, str *out_bytes, struct error *error)
{
    char text[FILE_PATH_MAX];
    if (!file_fd_path(path, text)) {
        return path_refused(path, error);
    }
    int fd = open(text, O_RDONLY | O_CLOEXEC);
    if (fd < 0 && errno == ENOENT) {
        return error_set(error, NOT_FOUND, ERROR_NOT_FOUND, "there is no %.*s", STR_ARG(path));
    }
    if (fd < 0) {
        return file_fd_error(errno, "cannot open", path, error);
    }
    err result = file_fd_read(arena, fd, bytes_max, path, out_bytes, error);
    (void)close(fd);
    return result;
}

/* Makes the file anew with these bytes on the disk; on failure it is gone again. */
MUST_USE static err file_create_synced(str path, str bytes, u32 mode, struct error *error)
{
    char text[FILE_PATH_MAX];
    if (!file_fd_path(path, text)) {
        return path_refused(path, error);
    }
    int fd = open(text, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, (mode_t)mode);
    if (fd < 0 && errno == EEXIST) {
        return error_set(error, CONFLICT, ERROR_NAME_TAKEN, "%.*s exists already", STR_ARG(path));
    }
    if (fd < 0) {
        return file_fd_error(errno, "cannot make", path, error);
    }
    err result = file_fd_write(fd, &bytes, 1, path, error);
    if (result != OK) {
        (void)close(fd);
        (void)unlink(text);
        return result;
    }
    file_fd_sync(fd, path);
    file_fd_close_written(fd, path);
    return OK;
}

err file_write_durable(str path, str bytes, u32 mode, struct error *error)
{
    char target[FILE_PATH_MAX];
    char temporary[FILE_PATH_MAX];
    if (!file_fd_path(path, target)) {
        return path_refused(path, error);
    }
    /* Process and thread name the temporary file, so that no two writers share one. */
    int size = snprintf(temporary, sizeof(temporary), "%s.%d-%d.tmp", target, getpid(), gettid());
    if (size < 0 || (size_t)size >= sizeof(temporary)) {
        return path_refused(path, error);
    }
    (void)unlink(temporary);
    TRY(file_create_synced(str_from(temporary), bytes, mode, error));
    if (rename(temporary, target) != 0) {
        err result = file_fd_error(errno, "cannot rename to", path, error);
        (void)unlink(temporary);
        return result;
    }
    return directory_sync(path_parent(path), error);
}

err file_write_new(str path, str bytes, struct error *error)
{
    TRY(file_create_synced(path, bytes, 0600, error));
    return directory_sync(path_parent(path), error);
}

bool file_exists(str path)
{
    char text[FILE_PATH_MAX];
    struct stat status;
    return file_fd_path(path, text) && stat(text, &status) == 0;
}

bool file_is_exposed(str path)
{
    char text[FILE_PATH_MAX];
    struct stat status;
    if (!file_fd_path(path, text) || stat(text, &status) != 0) {
        return false;
    }
    return (status.st_mode & (S_IRGRP | S_IWGRP | S_IROTH | S_IWOTH)) != 0;
}

err file_lock_directory(str directory, struct error *error)
{
    char text[FILE_PATH_MAX];
    int size = snprintf(text, sizeof(text), "%.*s/.lock", STR_ARG(directory));
    if (size < 0 || (size_t)size >= sizeof(text)) {
        return path_refused(directory, error);
    }
    int fd = open(text, O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (fd < 0) {
        return file_fd_error(errno, "cannot open", str_from(text), error);
    }
    /* The descriptor stays open: the lock goes with the process. */
    if (flock(fd, LOCK_EX | LOCK_NB) == 0) {
        return OK;
    }
    int reason = errno;
    (void)close(fd);
    if (reason == EWOULDBLOCK) {
        (void)error_set(error, BUSY, ERROR_UNAVAILABLE, "another process uses the directory %.*s",
                        STR_ARG(directory));
        error_hint(error, "stop that process, or take another directory with --data");
        return BUSY;
    }
    return file_fd_error(reason, "cannot lock", directory, error);
}

err file_space(str path, i64 *out_free, i64 *out_total, struct error *error)
{
    char text[FILE_PATH_MAX];
    if (!file_fd_path(path, text)) {
        return path_refused(path, error);
    }
    struct statvfs status;
    if (statvfs(text, &status) != 0) {
        return file_fd_error(errno, "cannot look at", path, error);
    }
    i64 free_bytes = 0;
    i64 total_bytes = 0;
    if (!num_mul_i64((i64)status.f_bavail, (i64)status.f_frsize, &free_bytes) ||
        !num_mul_i64((i64)status.f_blocks, (i64)status.f_frsize, &total_bytes)) {
        return error_set(error, IO, ERROR_STORE_DOWN, "%.*s has an impossible size", STR_ARG(path));
    }
    *out_free = free_bytes;
    *out_total = total_bytes;
    return OK;
}

/* Takes `.` and `..` and doubled slashes out of an absolute path. Links are left as they are. */
MUST_USE static err path_normalise(struct arena *arena, str path, str *out_path,
                                   struct error *error)
{
    char *text = arena_alloc(arena, path.size + 2);
    if (text == NULL) {
        return error_memory(error);
    }
    size_t size = 0;
    str rest = path;
    str part = {0};
    while (str_next(&rest, '/', &part)) {
        if (part.size == 0 || str_equal(part, STR("."))) {
            continue;
        }
        if (str_equal(part, STR(".."))) {
            while (size > 0 && text[size - 1] != '/') {
                size--;
            }
            size -= size > 0 ? 1 : 0;
            continue;
        }
        text[size++] = '/';
        memcpy(text + size, part.data, part.size);
        size += part.size;
    }
    if (size == 0) {
        text[size++] = '/';
    }
    text[size] = '\0';
    *out_path = (str){text, size};
    return OK;
}

err file_absolute(struct arena *arena, str path, str *out_path, struct error *error)
{
    char directory[FILE_PATH_MAX];
    if (path.size == 0 || path.size >= FILE_PATH_MAX || str_find_byte(path, '\0') >= 0) {
        return path_refused(path, error);
    }
    if (path.data[0] == '/') {
        return path_normalise(arena, path, out_path, error);
    }
    if (getcwd(directory, sizeof(directory)) == NULL) {
        return file_fd_error(errno, "cannot find the directory of", path, error);
    }
    str whole = str_format(arena, "%s/%.*s", directory, STR_ARG(path));
    if (whole.data == NULL) {
        return error_memory(error);
    }
    return path_normalise(arena, whole, out_path, error);
}

_Noreturn void file_durability_lost(const char *what, str path, int error_number)
{
    metric_add(METRIC_FSYNC_FAILURES, 1);
    log_event(LOG_ERROR, "durability_lost", LOG_S("call", str_from(what)), LOG_S("path", path),
              LOG_S("reason", str_from(strerrordesc_np(error_number))));
    _exit(FILE_EXIT_DURABILITY);
}
