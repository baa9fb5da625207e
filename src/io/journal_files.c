#include "io/journal_files.h"

#include "base/assert.h"
#include "io/file_fd.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

enum { SMALL_FILE_BYTES_MAX = 4096 };

struct dir_files {
    str directory;
    int root;
};

/* Every name that comes here is a short one of ours, or came from the directory. */
static void name_text(str name, char out[NAME_MAX + 1])
{
    assert(name.size <= NAME_MAX);
    memcpy(out, name.data, name.size);
    out[name.size] = '\0';
}

MUST_USE static err path_of(const struct dir_files *files, struct arena *arena, str name,
                            str *out_path, struct error *error)
{
    *out_path = str_format(arena, "%.*s/%.*s", STR_ARG(files->directory), STR_ARG(name));
    return out_path->data == NULL ? error_memory(error) : OK;
}

MUST_USE static err names_read(DIR *entries, struct arena *arena, str *out_names, size_t *out_count,
                               struct error *error)
{
    *out_count = 0;
    for (struct dirent *entry = readdir(entries); entry != NULL; entry = readdir(entries)) {
        str name = str_from(entry->d_name);
        if (str_starts(name, STR("."))) {
            continue;
        }
        if (*out_count == JOURNAL_NAMES_MAX) {
            return error_set(error, LIMIT, ERROR_STORE_DOWN, "the log's directory has %d files",
                             JOURNAL_NAMES_MAX);
        }
        str copy = str_copy(arena, name);
        if (copy.data == NULL) {
            return error_memory(error);
        }
        out_names[(*out_count)++] = copy;
    }
    return OK;
}

MUST_USE static err dir_list(void *self, struct arena *arena, str *out_names, size_t *out_count,
                             struct error *error)
{
    struct dir_files *files = self;
    int fd = openat(files->root, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *entries = fd >= 0 ? fdopendir(fd) : NULL;
    if (entries == NULL) {
        err result = file_fd_error(errno, "cannot list", files->directory, error);
        if (fd >= 0) {
            (void)close(fd);
        }
        return result;
    }
    err result = names_read(entries, arena, out_names, out_count, error);
    (void)closedir(entries);
    return result;
}

MUST_USE static err dir_load(void *self, struct arena *arena, str name, str *out_bytes,
                             struct error *error)
{
    str path = {0};
    TRY(path_of(self, arena, name, &path, error));
    return file_read(arena, path, SMALL_FILE_BYTES_MAX, out_bytes, error);
}

MUST_USE static err dir_save(void *self, str name, str bytes, struct error *error)
{
    AUTO_ARENA struct arena *arena = arena_create((size_t)16 * KIB);
    str path = {0};
    TRY(path_of(self, arena, name, &path, error));
    return file_write_durable(path, bytes, 0600, error);
}

static _Alignas(JOURNAL_ALIGNMENT) char zeros[MIB];

MUST_USE static err zeros_write(int fd, u64 bytes, str name, struct error *error)
{
    for (u64 done = 0; done < bytes; done += sizeof(zeros)) {
        u64 rest = bytes - done;
        const str piece = {zeros, rest < sizeof(zeros) ? (size_t)rest : sizeof(zeros)};
        TRY(file_fd_write(fd, &piece, 1, name, error));
    }
    return OK;
}

/* Reserved where the file system can do that, else written. */
MUST_USE static err room_take(int fd, u64 bytes, str name, struct error *error)
{
    if (fallocate(fd, 0, 0, (off_t)bytes) == 0) {
        return OK;
    }
    if (errno == EOPNOTSUPP || errno == ENOSYS) {
        return zeros_write(fd, bytes, name, error);
    }
    return file_fd_error(errno, "cannot take room for the log's file", name, error);
}

MUST_USE static err dir_make(void *self, str name, u64 bytes, struct error *error)
{
    struct dir_files *files = self;
    char text[NAME_MAX + 1];
    name_text(name, text);
    int fd = openat(files->root, text, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (fd < 0) {
        return file_fd_error(errno, "cannot make the log's file", name, error);
    }
    err result = room_take(fd, bytes, name, error);
    if (result != OK) {
        (void)close(fd);
        (void)unlinkat(files->root, text, 0);
        return result;
    }
    file_fd_sync(fd, name);
    file_fd_close_written(fd, name);
    file_fd_sync(files->root, files->directory);
    return OK;
}

MUST_USE static err dir_remove(void *self, str name, struct error *error)
{
    struct dir_files *files = self;
    char text[NAME_MAX + 1];
    name_text(name, text);
    if (unlinkat(files->root, text, 0) != 0 && errno != ENOENT) {
        return file_fd_error(errno, "cannot remove", name, error);
    }
    return OK;
}

/* Some take O_DIRECT, but for larger blocks than ours. */
static bool takes_blocks(int fd)
{
    _Alignas(JOURNAL_ALIGNMENT) char block[JOURNAL_ALIGNMENT];
    return pread(fd, block, sizeof(block), JOURNAL_ALIGNMENT) >= 0 || errno != EINVAL;
}

/* Past the page cache where the file system takes that; durable at each write in any case. */
static int file_open(const struct dir_files *files, const char *name)
{
    int flags = O_RDWR | O_DSYNC | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC;
    int fd = openat(files->root, name, flags | O_DIRECT);
    if (fd >= 0 && takes_blocks(fd)) {
        return fd;
    }
    if (fd < 0 && errno != EINVAL) {
        return fd;
    }
    if (fd >= 0) {
        (void)close(fd);
    }
    return openat(files->root, name, flags);
}

MUST_USE static err dir_open(void *self, str name, int *out_file, u64 *out_bytes,
                             struct error *error)
{
    struct dir_files *files = self;
    char text[NAME_MAX + 1];
    struct stat status;
    name_text(name, text);
    int fd = file_open(files, text);
    if (fd < 0 && errno == ENOENT) {
        return error_set(error, NOT_FOUND, ERROR_STORE_DOWN, "the log's file %.*s is missing",
                         STR_ARG(name));
    }
    if (fd < 0) {
        return file_fd_error(errno, "cannot open the log's file", name, error);
    }
    if (flock(fd, LOCK_EX | LOCK_NB) != 0) {
        (void)close(fd);
        return error_set(error, BUSY, ERROR_UNAVAILABLE, "another process uses the log in %.*s",
                         STR_ARG(files->directory));
    }
    if (fstat(fd, &status) != 0 || !S_ISREG(status.st_mode)) {
        (void)close(fd);
        return error_set(error, CORRUPT, ERROR_STORE_DOWN, "%.*s is no file of a log",
                         STR_ARG(name));
    }
    *out_file = fd;
    *out_bytes = (u64)status.st_size;
    return OK;
}

MUST_USE static err dir_read(void *self, int file, u64 offset, void *out_bytes, size_t size,
                             struct error *error)
{
    struct dir_files *files = self;
    for (size_t have = 0; have < size;) {
        ssize_t got = pread(file, (char *)out_bytes + have, size - have, (off_t)(offset + have));
        if (got < 0 && errno == EINTR) {
            continue;
        }
        if (got <= 0) {
            return file_fd_error(got < 0 ? errno : EIO, "cannot read the log in", files->directory,
                                 error);
        }
        have += (size_t)got;
    }
    return OK;
}

static void write_all(const struct dir_files *files, int file, u64 offset, const void *bytes,
                      size_t size)
{
    for (size_t done = 0; done < size;) {
        ssize_t wrote = pwrite(file, (const char *)bytes + done, size - done,
                               (off_t)(offset + done));
        if (wrote < 0 && errno != EINTR) {
            file_durability_lost("write of the log", files->directory, errno);
        }
        done += wrote > 0 ? (size_t)wrote : 0;
    }
}

MUST_USE static err dir_write(void *self, int file, u64 offset, const void *bytes, size_t size,
                              struct error *error)
{
    (void)error;
    write_all(self, file, offset, bytes, size);
    return OK;
}

/* Only into holes: what was written once, and may be a block of the log, is none. */
MUST_USE static err dir_fill(void *self, int file, u64 bytes, struct error *error)
{
    (void)error;
    off_t end = (off_t)bytes;
    off_t at = lseek(file, 0, SEEK_HOLE);
    while (at >= 0 && at < end) {
        off_t data = lseek(file, at, SEEK_DATA);
        off_t until = data < 0 || data > end ? end : data;
        for (; at < until; at += (off_t)sizeof(zeros)) {
            off_t rest = until - at;
            write_all(self, file, (u64)at, zeros,
                      rest < (off_t)sizeof(zeros) ? (size_t)rest : sizeof(zeros));
        }
        at = lseek(file, until, SEEK_HOLE);
    }
    return OK;
}

MUST_USE static err dir_sync(void *self, int file, struct error *error)
{
    struct dir_files *files = self;
    (void)error;
    file_fd_sync(file, files->directory);
    return OK;
}

static void dir_close(void *self, int file)
{
    (void)self;
    (void)close(file);
}

static void dir_end(void *self)
{
    struct dir_files *files = self;
    (void)close(files->root);
}

err journal_files_open_dir(struct arena *arena, str directory, struct journal_files *out_files,
                           struct error *error)
{
    static const struct journal_file_ops ops = {
        .list = dir_list,
        .load = dir_load,
        .save = dir_save,
        .make = dir_make,
        .remove = dir_remove,
        .open = dir_open,
        .read = dir_read,
        .fill = dir_fill,
        .write = dir_write,
        .sync = dir_sync,
        .close = dir_close,
        .end = dir_end,
    };
    char text[FILE_PATH_MAX];
    TRY(file_make_directory(directory, error));
    struct dir_files *files = arena_alloc(arena, sizeof(*files));
    str copy = str_copy(arena, directory);
    if (files == NULL || copy.data == NULL) {
        return error_memory(error);
    }
    if (!file_fd_path(directory, text)) {
        return error_set(error, INVALID, ERROR_INVALID_CONFIG, "%.*s is no usable path",
                         STR_ARG(directory));
    }
    files->directory = copy;
    files->root = open(text, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (files->root < 0) {
        return file_fd_error(errno, "cannot open directory", directory, error);
    }
    *out_files = (struct journal_files){.ops = &ops, .self = files};
    return OK;
}
