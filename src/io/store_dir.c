#include "io/store_dir.h"

#include "base/assert.h"
#include "base/seam.h"
#include "io/file_fd.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/xattr.h>
#include <unistd.h>

#define TEMPORARY_NAME ".tmp"

enum { ATTRIBUTE_NAMES_MAX = 4096 };

/* ---- names beneath the root ---- */

static bool is_link(int fd, const char *part)
{
    struct stat status;
    return fstatat(fd, part, &status, AT_SYMLINK_NOFOLLOW) == 0 && S_ISLNK(status.st_mode);
}

/* Where openat2 is missing: every part by itself, none of which may be a link. */
static int open_by_parts(int root, const char *name, int flags)
{
    char part[STORE_DIR_NAME_ROOM];
    int fd = openat(root, ".", O_PATH | O_DIRECTORY | O_CLOEXEC);
    while (fd >= 0) {
        size_t size = strcspn(name, "/");
        bool last = name[size] == '\0';
        if (size >= sizeof(part)) {
            (void)close(fd);
            errno = ENAMETOOLONG;
            return -1;
        }
        memcpy(part, name, size);
        part[size] = '\0';
        int next = openat(fd, part, (last ? flags : O_PATH | O_DIRECTORY) | O_NOFOLLOW | O_CLOEXEC);
        int reason = errno;
        if (next < 0 && reason == ENOTDIR && is_link(fd, part)) {
            reason = ELOOP;
        }
        (void)close(fd);
        errno = reason;
        fd = next;
        if (last) {
            return fd;
        }
        name += size + 1;
    }
    return -1;
}

int store_dir_open(struct store_dir *dir, str name, int flags)
{
    char text[STORE_KEY_MAX + 1];
    if (name.size == 0) {
        return openat(dir->root, ".", flags | O_CLOEXEC);
    }
    assert(name.size <= STORE_KEY_MAX);
    memcpy(text, name.data, name.size);
    text[name.size] = '\0';
    if (atomic_load(&dir->openat2_missing)) {
        return open_by_parts(dir->root, text, flags);
    }
    struct open_how how = {.flags = (u64)(unsigned)(flags | O_CLOEXEC),
                           .resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS |
                                      RESOLVE_NO_MAGICLINKS};
    long fd = syscall(SYS_openat2, dir->root, text, &how, sizeof(how));
    if (fd < 0 && (errno == ENOSYS || errno == EPERM)) {
        /* EPERM: a sandbox that does not know the call. */
        atomic_store(&dir->openat2_missing, true);
        return open_by_parts(dir->root, text, flags);
    }
    return (int)fd;
}

err store_dir_split(str key, str *out_parent, char out_name[STORE_DIR_NAME_ROOM],
                    struct error *error)
{
    i64 slash = str_find_last_byte(key, '/');
    str name = str_slice(key, (size_t)(slash + 1), key.size);
    bool ours = str_starts(key, STR(TEMPORARY_NAME "/")) || str_equal(key, STR(TEMPORARY_NAME)) ||
                (str_starts(name, STR(".")) && str_ends(name, STR(".meta")));
    if (name.size >= STORE_DIR_NAME_ROOM || ours) {
        return error_set(error, INVALID, ERROR_INVALID_REQUEST, "the store cannot keep '%.*s'",
                         STR_ARG(str_slice(key, 0, 200)));
    }
    memcpy(out_name, name.data, name.size);
    out_name[name.size] = '\0';
    *out_parent = str_slice(key, 0, slash < 0 ? 0 : (size_t)slash);
    return OK;
}

bool store_dir_sidecar(const char *name, char out[STORE_DIR_NAME_ROOM])
{
    int size = snprintf(out, STORE_DIR_NAME_ROOM, ".%s.meta", name);
    return size > 0 && size < STORE_DIR_NAME_ROOM;
}

err store_dir_refused(int reason, str key, struct error *error)
{
    if (reason == ENOENT || reason == ENOTDIR || reason == ENAMETOOLONG) {
        return error_set(error, NOT_FOUND, ERROR_NOT_FOUND, "there is no object %.*s",
                         STR_ARG(key));
    }
    if (reason == ELOOP || reason == EXDEV) {
        return error_set(error, DENIED, ERROR_LOCATION_REFUSED, "%.*s leads out of the store",
                         STR_ARG(key));
    }
    return file_fd_error(reason, "cannot open", key, error);
}

/* ---- metadata ---- */

MUST_USE static err attribute_read(struct arena *arena, int fd, const char *name, str *out_value,
                                   struct error *error)
{
    char *value = arena_alloc(arena, STORE_DIR_ATTRIBUTE_MAX + 1);
    if (value == NULL) {
        return error_memory(error);
    }
    ssize_t size = fgetxattr(fd, name, value, STORE_DIR_ATTRIBUTE_MAX);
    if (size < 0) {
        return file_fd_error(errno, "cannot read the attribute", str_from(name), error);
    }
    *out_value = (str){value, (size_t)size};
    return OK;
}

/* Lines of `name=value`, the content type under the empty name. */
static void meta_parse(str text, struct store_meta *meta)
{
    str line = {0};
    while (str_next(&text, '\n', &line)) {
        i64 equals = str_find_byte(line, '=');
        if (equals == 0) {
            meta->content_type = str_slice(line, 1, line.size);
        } else if (equals > 0 && meta->count < STORE_META_MAX) {
            meta->entries[meta->count++] = (struct store_meta_entry){
                str_slice(line, 0, (size_t)equals), str_slice(line, (size_t)equals + 1, line.size)};
        }
    }
}

/* Leaves *out_there false where the object carries no (complete) attributes. Older objects have an
 * attribute for each entry. */
MUST_USE static err attributes_read(struct arena *arena, int fd, struct store_meta *meta,
                                    bool *out_there, struct error *error)
{
    char names[ATTRIBUTE_NAMES_MAX];
    ssize_t size = flistxattr(fd, names, sizeof(names));
    *out_there = false;
    for (ssize_t at = 0; at < size; at += (ssize_t)strlen(names + at) + 1) {
        str name = str_from(names + at);
        if (str_equal(name, STR(STORE_DIR_META))) {
            str text = {0};
            TRY(attribute_read(arena, fd, names + at, &text, error));
            *meta = (struct store_meta){0};
            meta_parse(text, meta);
            *out_there = true;
            return OK;
        }
        if (str_equal(name, STR(STORE_DIR_TYPE))) {
            TRY(attribute_read(arena, fd, names + at, &meta->content_type, error));
            *out_there = true;
            continue;
        }
        if (!str_starts(name, STR("user.")) || meta->count == STORE_META_MAX) {
            continue;
        }
        struct store_meta_entry *entry = &meta->entries[meta->count];
        entry->name = str_copy(arena, str_slice(name, 5, name.size));
        if (entry->name.data == NULL) {
            return error_memory(error);
        }
        TRY(attribute_read(arena, fd, names + at, &entry->value, error));
        meta->count++;
    }
    return OK;
}

MUST_USE static err sidecar_read(struct arena *arena, int parent, const char *name,
                                 struct store_meta *meta, struct error *error)
{
    char sidecar[STORE_DIR_NAME_ROOM];
    if (!store_dir_sidecar(name, sidecar)) {
        return OK;
    }
    int fd = openat(parent, sidecar, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    if (fd < 0) {
        return errno == ENOENT ? OK : file_fd_error(errno, "cannot open", str_from(sidecar), error);
    }
    str bytes = {0};
    err result = file_fd_read(arena, fd, STORE_DIR_SIDECAR_MAX, str_from(sidecar), &bytes, error);
    (void)close(fd);
    TRY(result);
    *meta = (struct store_meta){0};
    meta_parse(bytes, meta);
    return OK;
}

/* ---- get, head, remove ---- */

str store_dir_version(const struct stat *status, char out[STORE_DIR_VERSION_ROOM])
{
    int size = snprintf(
        out, STORE_DIR_VERSION_ROOM, "%llx-%llx-%llx", (unsigned long long)status->st_ino,
        (unsigned long long)status->st_mtim.tv_sec, (unsigned long long)status->st_mtim.tv_nsec);
    return (str){out, (size_t)size};
}

MUST_USE static err object_describe(struct store_dir *dir, struct arena *arena, int fd, str key,
                                    struct store_object *object, struct error *error)
{
    struct stat status;
    if (fstat(fd, &status) != 0) {
        return file_fd_error(errno, "cannot look at", key, error);
    }
    if (!S_ISREG(status.st_mode)) {
        return store_dir_refused(ENOENT, key, error);
    }
    object->key = str_copy(arena, key);
    if (object->key.data == NULL) {
        return error_memory(error);
    }
    char version[STORE_DIR_VERSION_ROOM];
    object->version = str_copy(arena, store_dir_version(&status, version));
    if (object->version.data == NULL) {
        return error_memory(error);
    }
    object->size = (i64)status.st_size;
    object->modified_at = (i64)status.st_mtim.tv_sec * TIME_SECOND_US +
                          (i64)status.st_mtim.tv_nsec / 1000;
    bool there = false;
    TRY(attributes_read(arena, fd, &object->meta, &there, error));
    if (there) {
        return OK;
    }
    char name[STORE_DIR_NAME_ROOM];
    str parent = {0};
    TRY(store_dir_split(key, &parent, name, error));
    int parent_fd = store_dir_open(dir, parent, O_RDONLY | O_DIRECTORY);
    if (parent_fd < 0) {
        return store_dir_refused(errno, key, error);
    }
    err result = sidecar_read(arena, parent_fd, name, &object->meta, error);
    (void)close(parent_fd);
    return result;
}

enum want { WANT_HEAD, WANT_BODY };

MUST_USE static err object_read(struct store_dir *dir, struct arena *arena, str key, enum want want,
                                struct store_object *out_object, struct error *error)
{
    struct store_object object = {0};
    char name[STORE_DIR_NAME_ROOM];
    str parent = {0};
    TRY(store_dir_split(key, &parent, name, error));
    /* Not blocking: a FIFO in the object's place must not hold the thread. */
    int fd = store_dir_open(dir, key, O_RDONLY | O_NONBLOCK | O_NOCTTY);
    if (fd < 0) {
        return store_dir_refused(errno, key, error);
    }
    err result = object_describe(dir, arena, fd, key, &object, error);
    if (result == OK && want == WANT_BODY) {
        result = file_fd_read(arena, fd, SIZE_MAX - 1, key, &object.body, error);
        object.size = (i64)object.body.size;
    }
    (void)close(fd);
    if (result == OK) {
        *out_object = object;
    }
    return result;
}

MUST_USE static err dir_get(void *self, struct arena *arena, str key,
                            struct store_object *out_object, struct error *error)
{
    return object_read(self, arena, key, WANT_BODY, out_object, error);
}

MUST_USE static err dir_head(void *self, struct arena *arena, str key,
                             struct store_object *out_object, struct error *error)
{
    return object_read(self, arena, key, WANT_HEAD, out_object, error);
}

/* Not fsynced: an object that comes back after a power loss is an orphan, which the sweeps know. */
MUST_USE static err dir_remove(void *self, str key, struct error *error)
{
    struct store_dir *dir = self;
    char name[STORE_DIR_NAME_ROOM];
    char sidecar[STORE_DIR_NAME_ROOM];
    str parent = {0};
    TRY(store_dir_split(key, &parent, name, error));
    int parent_fd = store_dir_open(dir, parent, O_RDONLY | O_DIRECTORY);
    if (parent_fd < 0) {
        err result = store_dir_refused(errno, key, error);
        if (result == NOT_FOUND) {
            error_clear(error);
            return OK;
        }
        return result;
    }
    err result = OK;
    if (unlinkat(parent_fd, name, 0) != 0 && errno != ENOENT && errno != EISDIR) {
        result = file_fd_error(errno, "cannot remove", key, error);
    } else if (store_dir_sidecar(name, sidecar)) {
        (void)unlinkat(parent_fd, sidecar, 0);
    }
    (void)close(parent_fd);
    return result;
}

/* The temporary files are of the same file system, and so is all below the root but for what was
 * mounted there. */
MUST_USE static err dir_sync(void *self, struct error *error)
{
    struct store_dir *dir = self;
    (void)error;
    if (syncfs(dir->root) != 0) {
        file_durability_lost("syncfs", dir->directory, errno);
    }
    return OK;
}

static void dir_close(void *self)
{
    struct store_dir *dir = self;
    (void)close(dir->temporary);
    (void)close(dir->root);
    (void)pthread_mutex_destroy(&dir->making);
    (void)pthread_mutex_destroy(&dir->replacing);
}

static const struct store_ops dir_ops = {
    .put = store_dir_put,
    .group = &store_dir_group,
    .group_put = store_dir_group_put,
    .get = dir_get,
    .head = dir_head,
    .remove = dir_remove,
    .list = store_dir_list,
    .sync = dir_sync,
    .close = dir_close,
};

/* ---- opening ---- */

/* What a process that died left behind. Files of this process stay: another store of it may be open
 * on the same directory. */
static void temporary_clean(const struct store_dir *dir)
{
    int fd = openat(dir->temporary, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *entries = fd >= 0 ? fdopendir(fd) : NULL;
    if (entries == NULL) {
        if (fd >= 0) {
            (void)close(fd);
        }
        return;
    }
    char ours[STORE_DIR_NAME_ROOM];
    (void)snprintf(ours, sizeof(ours), "%d-", getpid());
    for (struct dirent *entry = readdir(entries); entry != NULL; entry = readdir(entries)) {
        str name = str_from(entry->d_name);
        if (!str_starts(name, STR(".")) && !str_starts(name, str_from(ours))) {
            (void)unlinkat(dir->temporary, entry->d_name, 0);
        }
    }
    (void)closedir(entries);
}

/* Two keys that differ in case only are two objects (exactly-once O10). */
MUST_USE static err case_check(const struct store_dir *dir, struct error *error)
{
    char own[STORE_DIR_TEMPORARY_ROOM];
    char name[STORE_DIR_NAME_ROOM];
    char other[STORE_DIR_NAME_ROOM];
    store_dir_temporary(own);
    (void)snprintf(name, sizeof(name), "%s-A", own);
    (void)snprintf(other, sizeof(other), "%s-a", own);
    int fd = openat(dir->temporary, name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (fd < 0) {
        return file_fd_error(errno, "cannot write in", dir->directory, error);
    }
    (void)close(fd);
    bool blind = faccessat(dir->temporary, other, F_OK, AT_SYMLINK_NOFOLLOW) == 0;
    (void)unlinkat(dir->temporary, name, 0);
    if (blind) {
        return error_set(error, INVALID, ERROR_INVALID_CONFIG,
                         "the file system of %.*s does not tell upper from lower case",
                         STR_ARG(dir->directory));
    }
    return OK;
}

/* Makes and opens the directory `name` of `parent` for temporary files; -1 where it is of another
 * file system than the root, or cannot be made. */
static int temporary_open(const struct store_dir *dir, int parent, const char *name)
{
    struct stat temporary;
    (void)mkdirat(parent, name, 0700);
    int fd = openat(parent, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (fd >= 0 && (fstat(fd, &temporary) != 0 || temporary.st_dev != dir->device)) {
        (void)close(fd);
        return -1;
    }
    return fd;
}

/* Beside the directory, so that whoever looks into it sees objects only; else inside. */
static int temporary_find(const struct store_dir *dir)
{
    char name[STORE_DIR_NAME_ROOM];
    i64 slash = str_find_last_byte(dir->directory, '/');
    str base = str_slice(dir->directory, (size_t)(slash + 1), dir->directory.size);
    int size = snprintf(name, sizeof(name), ".%.*s" TEMPORARY_NAME, STR_ARG(base));
    int parent = openat(dir->root, "..", O_PATH | O_DIRECTORY | O_CLOEXEC);
    int fd = -1;
    if (parent >= 0 && base.size > 0 && size > 0 && size < STORE_DIR_NAME_ROOM) {
        fd = temporary_open(dir, parent, name);
    }
    if (parent >= 0) {
        (void)close(parent);
    }
    return fd >= 0 ? fd : temporary_open(dir, dir->root, TEMPORARY_NAME);
}

MUST_USE static err dir_prepare(struct store_dir *dir, struct error *error)
{
    char text[FILE_PATH_MAX];
    if (!file_fd_path(dir->directory, text)) {
        return error_set(error, INVALID, ERROR_INVALID_CONFIG, "%.*s is no usable path",
                         STR_ARG(dir->directory));
    }
    dir->root = open(text, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (dir->root < 0) {
        return file_fd_error(errno, "cannot open directory", dir->directory, error);
    }
    struct stat root;
    if (fstat(dir->root, &root) != 0) {
        return file_fd_error(errno, "cannot look at", dir->directory, error);
    }
    dir->device = root.st_dev;
    dir->temporary = temporary_find(dir);
    if (dir->temporary < 0) {
        return file_fd_error(errno, "cannot make a temporary directory for", dir->directory, error);
    }
    temporary_clean(dir);
    return case_check(dir, error);
}

err store_open_dir(struct arena *arena, str directory, struct store *out_store, struct error *error)
{
    TRY(file_make_directory(directory, error));
    struct store_dir *dir = arena_alloc(arena, sizeof(*dir));
    while (directory.size > 1 && directory.data[directory.size - 1] == '/') {
        directory.size--;
    }
    str copy = str_copy(arena, directory);
    if (dir == NULL || copy.data == NULL) {
        return error_memory(error);
    }
    dir->directory = copy;
    dir->root = -1;
    dir->temporary = -1;
    int made = pthread_mutex_init(&dir->making, NULL);
    made |= pthread_mutex_init(&dir->replacing, NULL);
    assert(made == 0);
    err result = dir_prepare(dir, error);
    if (result != OK) {
        dir_close(dir);
        return result;
    }
    *out_store = (struct store){.ops = &dir_ops,
                                .self = dir,
                                .puts_in_flight_max = 1,
                                .meta_bytes_max = STORE_META_LIST_BYTES_MAX};
    return OK;
}
