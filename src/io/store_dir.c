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
/* Set last, so that its presence says that all attributes are there. */
#define TYPE_ATTRIBUTE "user.mime_type"

enum {
    NAME_ROOM = 256,
    TEMPORARY_ROOM = 64,
    ATTRIBUTE_NAMES_MAX = 4096,
    SIDECAR_BYTES_MAX = 4096,
    VERSION_ROOM = 64
};

/* ---- names beneath the root ---- */

static bool is_link(int fd, const char *part)
{
    struct stat status;
    return fstatat(fd, part, &status, AT_SYMLINK_NOFOLLOW) == 0 && S_ISLNK(status.st_mode);
}

/* Where openat2 is missing: every part by itself, none of which may be a link. */
static int open_by_parts(int root, const char *name, int flags)
{
    char part[NAME_ROOM];
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

/* `a/b/c` to `a/b` (empty: the root) and `c`, which gets a NUL. */
MUST_USE static err key_split(str key, str *out_parent, char out_name[NAME_ROOM],
                              struct error *error)
{
    i64 slash = str_find_last_byte(key, '/');
    str name = str_slice(key, (size_t)(slash + 1), key.size);
    bool ours = str_starts(key, STR(TEMPORARY_NAME "/")) || str_equal(key, STR(TEMPORARY_NAME)) ||
                (str_starts(name, STR(".")) && str_ends(name, STR(".meta")));
    if (name.size >= NAME_ROOM || ours) {
        return error_set(error, INVALID, ERROR_INVALID_REQUEST, "the store cannot keep '%.*s'",
                         STR_ARG(str_slice(key, 0, 200)));
    }
    memcpy(out_name, name.data, name.size);
    out_name[name.size] = '\0';
    *out_parent = str_slice(key, 0, slash < 0 ? 0 : (size_t)slash);
    return OK;
}

/* `.<name>.meta`; false where that is longer than a file system takes. */
static bool sidecar_name(const char *name, char out[NAME_ROOM])
{
    int size = snprintf(out, NAME_ROOM, ".%s.meta", name);
    return size > 0 && size < NAME_ROOM;
}

MUST_USE static err open_failed(int reason, str key, struct error *error)
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

/* ---- directories, durable before what is in them ---- */

static _Atomic u64 *durable_slot(struct store_dir *dir, u64 hash)
{
    return &dir->durable[hash % STORE_DIR_DURABLE_SLOTS];
}

static u64 durable_hash(str name)
{
    return str_hash(name) | 1; /* 0 is an empty slot */
}

/* Makes the directory and those above it, each fsynced in its parent. Takes the place of *fd. */
MUST_USE static err parent_step(struct store_dir *dir, str above, str part, int *fd,
                                struct error *error)
{
    char name[NAME_ROOM];
    if (part.size >= sizeof(name)) {
        return error_set(error, INVALID, ERROR_INVALID_REQUEST, "a part of the key is too long");
    }
    memcpy(name, part.data, part.size);
    name[part.size] = '\0';
    if (mkdirat(*fd, name, 0700) != 0 && errno != EEXIST) {
        return file_fd_error(errno, "cannot make directory", above, error);
    }
    u64 hash = durable_hash(above);
    if (atomic_load(durable_slot(dir, hash)) != hash) {
        file_fd_sync(*fd, above);
    }
    int next = openat(*fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (next < 0) {
        return open_failed(errno == ENOTDIR ? ELOOP : errno, above, error);
    }
    atomic_store(durable_slot(dir, hash), hash);
    (void)close(*fd);
    *fd = next;
    return OK;
}

MUST_USE static err parent_make(struct store_dir *dir, str parent, int *out_fd, struct error *error)
{
    int fd = openat(dir->root, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0) {
        return file_fd_error(errno, "cannot open", dir->directory, error);
    }
    str rest = parent;
    str part = {0};
    while (str_next(&rest, '/', &part)) {
        str above = {parent.data, (size_t)(part.data - parent.data) + part.size};
        err result = parent_step(dir, above, part, &fd, error);
        if (result != OK) {
            (void)close(fd);
            return result;
        }
    }
    *out_fd = fd;
    return OK;
}

/* The directory of a new object. One thread at a time makes directories, so that nobody builds on
 * an entry whose fsync is still to come. */
MUST_USE static err parent_open(struct store_dir *dir, str parent, int *out_fd, struct error *error)
{
    u64 hash = durable_hash(parent);
    if (parent.size == 0 || atomic_load(durable_slot(dir, hash)) == hash) {
        int fd = store_dir_open(dir, parent, O_RDONLY | O_DIRECTORY);
        if (fd >= 0) {
            *out_fd = fd;
            return OK;
        }
        if (errno != ENOENT) {
            return open_failed(errno, parent, error);
        }
        atomic_store(durable_slot(dir, hash), 0);
    }
    (void)pthread_mutex_lock(&dir->making);
    err result = parent_make(dir, parent, out_fd, error);
    (void)pthread_mutex_unlock(&dir->making);
    return result;
}

/* ---- metadata ---- */

/* False where the file system has no room or no attributes. */
static bool attributes_write(int fd, const struct store_meta *meta)
{
    for (size_t i = 0; i < meta->count; i++) {
        char name[NAME_ROOM];
        const struct store_meta_entry *entry = &meta->entries[i];
        int size = snprintf(name, sizeof(name), "user.%.*s", STR_ARG(entry->name));
        if (size < 0 || (size_t)size >= sizeof(name) ||
            fsetxattr(fd, name, entry->value.data, entry->value.size, 0) != 0) {
            return false;
        }
    }
    str type = meta->content_type.size > 0 ? meta->content_type : STR("application/octet-stream");
    return fsetxattr(fd, TYPE_ATTRIBUTE, type.data, type.size, 0) == 0;
}

MUST_USE static err attribute_read(struct arena *arena, int fd, const char *name, str *out_value,
                                   struct error *error)
{
    char *value = arena_alloc(arena, STORE_META_BYTES_MAX + 1);
    if (value == NULL) {
        return error_memory(error);
    }
    ssize_t size = fgetxattr(fd, name, value, STORE_META_BYTES_MAX);
    if (size < 0) {
        return file_fd_error(errno, "cannot read the attribute", str_from(name), error);
    }
    *out_value = (str){value, (size_t)size};
    return OK;
}

/* Leaves *out_there false where the object carries no (complete) attributes. */
MUST_USE static err attributes_read(struct arena *arena, int fd, struct store_meta *meta,
                                    bool *out_there, struct error *error)
{
    char names[ATTRIBUTE_NAMES_MAX];
    ssize_t size = flistxattr(fd, names, sizeof(names));
    *out_there = false;
    for (ssize_t at = 0; at < size; at += (ssize_t)strlen(names + at) + 1) {
        str name = str_from(names + at);
        if (str_equal(name, STR(TYPE_ATTRIBUTE))) {
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

/* Lines of `name=value`, the content type under the empty name. */
static size_t sidecar_print(const struct store_meta *meta, char out[SIDECAR_BYTES_MAX])
{
    int size = snprintf(out, SIDECAR_BYTES_MAX, "=%.*s\n", STR_ARG(meta->content_type));
    for (size_t i = 0; i < meta->count && size >= 0 && size < SIDECAR_BYTES_MAX; i++) {
        int more = snprintf(out + size, (size_t)(SIDECAR_BYTES_MAX - size), "%.*s=%.*s\n",
                            STR_ARG(meta->entries[i].name), STR_ARG(meta->entries[i].value));
        size = more < 0 ? -1 : size + more;
    }
    assert(size > 0 && size < SIDECAR_BYTES_MAX);
    return (size_t)size;
}

MUST_USE static err sidecar_read(struct arena *arena, int parent, const char *name,
                                 struct store_meta *meta, struct error *error)
{
    char sidecar[NAME_ROOM];
    if (!sidecar_name(name, sidecar)) {
        return OK;
    }
    int fd = openat(parent, sidecar, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    if (fd < 0) {
        return errno == ENOENT ? OK : file_fd_error(errno, "cannot open", str_from(sidecar), error);
    }
    str bytes = {0};
    err result = file_fd_read(arena, fd, SIDECAR_BYTES_MAX, str_from(sidecar), &bytes, error);
    (void)close(fd);
    TRY(result);
    *meta = (struct store_meta){0};
    str line = {0};
    while (str_next(&bytes, '\n', &line)) {
        i64 equals = str_find_byte(line, '=');
        if (equals == 0) {
            meta->content_type = str_slice(line, 1, line.size);
        } else if (equals > 0 && meta->count < STORE_META_MAX) {
            meta->entries[meta->count++] = (struct store_meta_entry){
                str_slice(line, 0, (size_t)equals), str_slice(line, (size_t)equals + 1, line.size)};
        }
    }
    return OK;
}

/* ---- put ---- */

/* One object being written. */
struct put {
    struct store_dir *dir;
    str key;
    char name[NAME_ROOM];
    char temporary[TEMPORARY_ROOM];
    char temporary_sidecar[TEMPORARY_ROOM]; /* empty: the metadata fits into attributes */
    int parent;
    enum store_durability durability;
};

/* No two writers of one machine share a temporary name, nor do two lives of one process id. */
static void temporary_name(char out[TEMPORARY_ROOM])
{
    u64 bits[2];
    seam_random(seam_system(), bits, sizeof(bits));
    (void)snprintf(out, TEMPORARY_ROOM, "%d-%016llx%016llx", getpid(), (unsigned long long)bits[0],
                   (unsigned long long)bits[1]);
}

static void put_sync(const struct put *put, int fd)
{
    if (put->durability == STORE_DURABLE) {
        file_fd_sync(fd, put->key);
    }
}

/* A temporary file with these bytes and attributes on the disk. *out_attributes: they could be
 * kept. */
MUST_USE static err temporary_write(struct put *put, const char *name, const str *pieces,
                                    size_t piece_count, const struct store_meta *meta,
                                    bool *out_attributes, struct error *error)
{
    int fd = openat(put->dir->temporary, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC,
                    0600);
    if (fd < 0) {
        return file_fd_error(errno, "cannot make a temporary file for", put->key, error);
    }
    *out_attributes = meta == NULL || attributes_write(fd, meta);
    err result = file_fd_write(fd, pieces, piece_count, put->key, error);
    if (result != OK) {
        (void)close(fd);
        return result;
    }
    put_sync(put, fd);
    file_fd_close_written(fd, put->key);
    return OK;
}

MUST_USE static err put_write(struct put *put, const str *pieces, size_t piece_count,
                              const struct store_meta *meta, struct error *error)
{
    bool kept = false;
    temporary_name(put->temporary);
    TRY(temporary_write(put, put->temporary, pieces, piece_count, meta, &kept, error));
    if (kept) {
        return OK;
    }
    char text[SIDECAR_BYTES_MAX];
    str bytes = {text, sidecar_print(meta, text)};
    temporary_name(put->temporary_sidecar);
    return temporary_write(put, put->temporary_sidecar, &bytes, 1, NULL, &kept, error);
}

MUST_USE static err put_rename(const struct put *put, const char *from, const char *to,
                               struct error *error)
{
    if (renameat(put->dir->temporary, from, put->parent, to) != 0) {
        return file_fd_error(errno, "cannot rename to", put->key, error);
    }
    return OK;
}

/* The sidecar first: an object that can be seen has its metadata. */
MUST_USE static err put_show(const struct put *put, struct error *error)
{
    char sidecar[NAME_ROOM];
    if (put->temporary_sidecar[0] != '\0') {
        if (!sidecar_name(put->name, sidecar)) {
            return error_set(error, INVALID, ERROR_INVALID_REQUEST, "the name %s is too long",
                             put->name);
        }
        TRY(put_rename(put, put->temporary_sidecar, sidecar, error));
    }
    CRASH_POINT(store_before_rename);
    TRY(put_rename(put, put->temporary, put->name, error));
    CRASH_POINT(store_after_rename);
    put_sync(put, put->parent);
    return OK;
}

static str version_print(const struct stat *status, char out[VERSION_ROOM])
{
    int size = snprintf(out, VERSION_ROOM, "%llx-%llx-%llx", (unsigned long long)status->st_ino,
                        (unsigned long long)status->st_mtim.tv_sec,
                        (unsigned long long)status->st_mtim.tv_nsec);
    return (str){out, (size_t)size};
}

MUST_USE static err check_version(const struct put *put, str wanted, struct error *error)
{
    char text[VERSION_ROOM];
    struct stat status;
    str version = STR("");
    if (fstatat(put->parent, put->name, &status, AT_SYMLINK_NOFOLLOW) == 0) {
        version = version_print(&status, text);
    } else if (errno != ENOENT) {
        return file_fd_error(errno, "cannot look at", put->key, error);
    }
    if (!str_equal(version, wanted)) {
        return error_set(error, CONFLICT, ERROR_UNAVAILABLE, "%.*s was replaced meanwhile",
                         STR_ARG(put->key));
    }
    return OK;
}

MUST_USE static err put_replace(const struct put *put, str replaces, struct error *error)
{
    (void)pthread_mutex_lock(&put->dir->replacing);
    err result = check_version(put, replaces, error);
    if (result == OK) {
        result = put_show(put, error);
    }
    (void)pthread_mutex_unlock(&put->dir->replacing);
    return result;
}

static void put_clean(const struct put *put)
{
    (void)unlinkat(put->dir->temporary, put->temporary, 0);
    if (put->temporary_sidecar[0] != '\0') {
        (void)unlinkat(put->dir->temporary, put->temporary_sidecar, 0);
    }
}

MUST_USE static err dir_put(void *self, str key, const str *pieces, size_t piece_count,
                            const struct store_meta *meta, struct error *error)
{
    struct put put = {
        .dir = self, .key = key, .durability = meta == NULL ? STORE_DURABLE : meta->durability};
    str parent = {0};
    TRY(key_split(key, &parent, put.name, error));
    TRY(parent_open(put.dir, parent, &put.parent, error));
    err result = put_write(&put, pieces, piece_count, meta, error);
    if (result == OK) {
        result = meta == NULL || meta->replaces.data == NULL
                     ? put_show(&put, error)
                     : put_replace(&put, meta->replaces, error);
    }
    if (result != OK) {
        put_clean(&put);
    }
    (void)close(put.parent);
    return result;
}

/* ---- get, head, remove ---- */

MUST_USE static err object_describe(struct store_dir *dir, struct arena *arena, int fd, str key,
                                    struct store_object *object, struct error *error)
{
    struct stat status;
    if (fstat(fd, &status) != 0) {
        return file_fd_error(errno, "cannot look at", key, error);
    }
    if (!S_ISREG(status.st_mode)) {
        return open_failed(ENOENT, key, error);
    }
    object->key = str_copy(arena, key);
    if (object->key.data == NULL) {
        return error_memory(error);
    }
    char version[VERSION_ROOM];
    object->version = str_copy(arena, version_print(&status, version));
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
    char name[NAME_ROOM];
    str parent = {0};
    TRY(key_split(key, &parent, name, error));
    int parent_fd = store_dir_open(dir, parent, O_RDONLY | O_DIRECTORY);
    if (parent_fd < 0) {
        return open_failed(errno, key, error);
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
    char name[NAME_ROOM];
    str parent = {0};
    TRY(key_split(key, &parent, name, error));
    /* Not blocking: a FIFO in the object's place must not hold the thread. */
    int fd = store_dir_open(dir, key, O_RDONLY | O_NONBLOCK | O_NOCTTY);
    if (fd < 0) {
        return open_failed(errno, key, error);
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
    char name[NAME_ROOM];
    char sidecar[NAME_ROOM];
    str parent = {0};
    TRY(key_split(key, &parent, name, error));
    int parent_fd = store_dir_open(dir, parent, O_RDONLY | O_DIRECTORY);
    if (parent_fd < 0) {
        err result = open_failed(errno, key, error);
        if (result == NOT_FOUND) {
            error_clear(error);
            return OK;
        }
        return result;
    }
    err result = OK;
    if (unlinkat(parent_fd, name, 0) != 0 && errno != ENOENT && errno != EISDIR) {
        result = file_fd_error(errno, "cannot remove", key, error);
    } else if (sidecar_name(name, sidecar)) {
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
    .put = dir_put,
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
    char ours[NAME_ROOM];
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
    char own[TEMPORARY_ROOM];
    char name[NAME_ROOM];
    char other[NAME_ROOM];
    temporary_name(own);
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
    struct stat root;
    struct stat temporary;
    (void)mkdirat(parent, name, 0700);
    int fd = openat(parent, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (fd >= 0 && (fstat(dir->root, &root) != 0 || fstat(fd, &temporary) != 0 ||
                    root.st_dev != temporary.st_dev)) {
        (void)close(fd);
        return -1;
    }
    return fd;
}

/* Beside the directory, so that whoever looks into it sees objects only; else inside. */
static int temporary_find(const struct store_dir *dir)
{
    char name[NAME_ROOM];
    i64 slash = str_find_last_byte(dir->directory, '/');
    str base = str_slice(dir->directory, (size_t)(slash + 1), dir->directory.size);
    int size = snprintf(name, sizeof(name), ".%.*s" TEMPORARY_NAME, STR_ARG(base));
    int parent = openat(dir->root, "..", O_PATH | O_DIRECTORY | O_CLOEXEC);
    int fd = -1;
    if (parent >= 0 && base.size > 0 && size > 0 && size < NAME_ROOM) {
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
    *out_store = (struct store){.ops = &dir_ops, .self = dir, .puts_in_flight_max = 1};
    return OK;
}
