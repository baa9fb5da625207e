/* Writing objects: alone, or several that become durable together.
 *
 * written (temporary, unsynced) -> synced -> shown under its name -> directory synced. A group does
 * each step for all of its objects before the next one, so that the disk works on all of them at
 * once; a large group is synced with its whole file system, which waits for the disk once. */
#include "io/file_fd.h"
#include "io/store_dir.h"

#include "base/assert.h"
#include "base/buf.h"
#include "base/seam.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/utsname.h>
#include <sys/xattr.h>
#include <unistd.h>

/* ---- groups ---- */

enum { FOLDERS_MAX = 64, MADE_MAX = 256, WHOLE_SYNC_MIN = 16, HINTED_BYTES = MIB };

/* One object being written. */
struct put {
    struct store_dir *dir;
    str key;
    str folder; /* the key's directory */
    char name[STORE_DIR_NAME_ROOM];
    char temporary[STORE_DIR_TEMPORARY_ROOM];
    char temporary_sidecar[STORE_DIR_TEMPORARY_ROOM]; /* empty: the metadata fits into attributes */
    int file;                                         /* open until it is synced; -1 */
    int sidecar;
    int parent;
    enum store_durability durability;
    enum store_caching caching;
    bool fresh; /* in a group: only where there is no object */
    bool shown;
};

/* A directory that has new entries. */
struct folder {
    const struct store_dir *dir;
    u64 hash;
    int fd;
};

/* A new directory, whose entry is durable once its parent is synced. */
struct made {
    struct store_dir *dir;
    u64 hash;
};

struct held {
    struct put puts[STORE_GROUP_MAX];
    char keys[STORE_GROUP_MAX][STORE_KEY_MAX];
    struct folder folders[FOLDERS_MAX];
    struct made made[MADE_MAX];
    size_t folder_count;
    size_t made_count;
};

/* ---- directories, durable before what is in them ---- */

static _Atomic u64 *durable_slot(struct store_dir *dir, u64 hash)
{
    return &dir->durable[hash % STORE_DIR_DURABLE_SLOTS];
}

static u64 durable_hash(str name)
{
    return str_hash(name) | 1; /* 0 is an empty slot */
}

static void held_made(struct held *held, struct store_dir *dir, u64 hash)
{
    for (size_t i = 0; i < held->made_count; i++) {
        if (held->made[i].dir == dir && held->made[i].hash == hash) {
            return;
        }
    }
    held->made[held->made_count++] = (struct made){dir, hash};
}

/* The sync of the directory `hash`, in which the directory `made` is new, is left to the group's
 * end; false where it has no room for that. */
static bool held_folder(struct held *held, struct store_dir *dir, u64 hash, int fd, u64 made)
{
    if (held == NULL || held->made_count == MADE_MAX) {
        return false;
    }
    size_t i = 0;
    while (i < held->folder_count &&
           (held->folders[i].dir != dir || held->folders[i].hash != hash)) {
        i++;
    }
    if (i == FOLDERS_MAX) {
        return false;
    }
    if (i == held->folder_count) {
        int copy = fcntl(fd, F_DUPFD_CLOEXEC, 0);
        if (copy < 0) {
            return false;
        }
        held->folders[held->folder_count++] = (struct folder){dir, hash, copy};
    }
    held_made(held, dir, made);
    return true;
}

/* Makes the directory `above`, whose last part is `part`, in the one of *fd, and takes its place.
 */
MUST_USE static err parent_step(struct store_dir *dir, struct held *held, str above, str part,
                                int *fd, struct error *error)
{
    char name[STORE_DIR_NAME_ROOM];
    if (part.size >= sizeof(name)) {
        return error_set(error, INVALID, ERROR_INVALID_REQUEST, "a part of the key is too long");
    }
    memcpy(name, part.data, part.size);
    name[part.size] = '\0';
    if (mkdirat(*fd, name, 0700) != 0 && errno != EEXIST) {
        return file_fd_error(errno, "cannot make directory", above, error);
    }
    u64 hash = durable_hash(above);
    str parent = {above.data, (size_t)(part.data - above.data)};
    bool durable = atomic_load(durable_slot(dir, hash)) == hash;
    if (!durable && !held_folder(held, dir, durable_hash(parent), *fd, hash)) {
        file_fd_sync(*fd, above);
        atomic_store(durable_slot(dir, hash), hash);
    }
    int next = openat(*fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (next < 0) {
        return store_dir_refused(errno == ENOTDIR ? ELOOP : errno, above, error);
    }
    (void)close(*fd);
    *fd = next;
    return OK;
}

/* The directory and those above it, made where they are missing. */
MUST_USE static err parent_make(struct store_dir *dir, struct held *held, str parent, int *out_fd,
                                struct error *error)
{
    int fd = openat(dir->root, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0) {
        return file_fd_error(errno, "cannot open", dir->directory, error);
    }
    str rest = parent;
    str part = {0};
    while (str_next(&rest, '/', &part)) {
        str above = {parent.data, (size_t)(part.data - parent.data) + part.size};
        err result = parent_step(dir, held, above, part, &fd, error);
        if (result != OK) {
            (void)close(fd);
            return result;
        }
    }
    *out_fd = fd;
    return OK;
}

/* The directory of a new object. One thread at a time makes directories, so that nobody builds on
 * an entry whose fsync is still to come; one that a group has yet to sync is not known as durable,
 * and whoever else builds on it syncs it, too. */
MUST_USE static err parent_open(struct store_dir *dir, struct held *held, str parent, int *out_fd,
                                struct error *error)
{
    u64 hash = durable_hash(parent);
    if (parent.size == 0 || atomic_load(durable_slot(dir, hash)) == hash) {
        int fd = store_dir_open(dir, parent, O_RDONLY | O_DIRECTORY);
        if (fd >= 0) {
            *out_fd = fd;
            return OK;
        }
        if (errno != ENOENT) {
            return store_dir_refused(errno, parent, error);
        }
        atomic_store(durable_slot(dir, hash), 0);
    }
    (void)pthread_mutex_lock(&dir->making);
    err result = parent_make(dir, held, parent, out_fd, error);
    (void)pthread_mutex_unlock(&dir->making);
    return result;
}

/* ---- metadata ---- */

/* Whether there is something to keep for whoever gets the object; what it replaces has metadata. */
static bool meta_tells(const struct store_meta *meta)
{
    return meta != NULL &&
           (meta->content_type.size > 0 || meta->count > 0 || meta->replaces.data != NULL);
}

/* Lines of `name=value`, the content type under the empty name. */
static void meta_print(buf *out, const struct store_meta *meta)
{
    str type = meta->content_type.size > 0 ? meta->content_type : STR("application/octet-stream");
    buf_append_byte(out, '=');
    buf_append(out, type);
    buf_append_byte(out, '\n');
    for (size_t i = 0; i < meta->count; i++) {
        buf_append(out, meta->entries[i].name);
        buf_append_byte(out, '=');
        buf_append(out, meta->entries[i].value);
        buf_append_byte(out, '\n');
    }
}

/* All in one attribute, which lies in the inode itself where several would need a block of their
 * own. False where it is too much, or the file system has no room or no attributes. */
static bool attribute_write(int fd, str text)
{
    return text.size <= STORE_DIR_ATTRIBUTE_MAX &&
           fsetxattr(fd, STORE_DIR_META, text.data, text.size, 0) == 0;
}

/* ---- put ---- */

/* No two writers of one machine share a temporary name, nor do two lives of one process id. */
void store_dir_temporary(char out[STORE_DIR_TEMPORARY_ROOM])
{
    u64 bits[2];
    seam_random(seam_system(), bits, sizeof(bits));
    (void)snprintf(out, STORE_DIR_TEMPORARY_ROOM, "%d-%016llx%016llx", getpid(),
                   (unsigned long long)bits[0], (unsigned long long)bits[1]);
}

/* A temporary file with these bytes and this metadata, on its way to the disk. *out_kept: it has
 * the metadata. */
MUST_USE static err temporary_write(const struct put *put, const char *name, const str *pieces,
                                    size_t piece_count, str meta, int *out_fd, bool *out_kept,
                                    struct error *error)
{
    int fd = openat(put->dir->temporary, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC,
                    0600);
    if (fd < 0) {
        return file_fd_error(errno, "cannot make a temporary file for", put->key, error);
    }
    *out_fd = fd;
    *out_kept = meta.size == 0 || attribute_write(fd, meta);
    return put->caching == STORE_UNCACHED
               ? file_fd_write_uncached(fd, pieces, piece_count, put->key, error)
               : file_fd_write(fd, pieces, piece_count, put->key, error);
}

MUST_USE static err put_write(struct put *put, const str *pieces, size_t piece_count,
                              const struct store_meta *meta, struct error *error)
{
    AUTO_ARENA struct arena *arena = arena_create((size_t)4 * STORE_DIR_SIDECAR_MAX);
    buf text = buf_create(arena, KIB, STORE_DIR_SIDECAR_MAX);
    bool kept = false;
    if (meta_tells(meta)) {
        meta_print(&text, meta);
    }
    if (!buf_ok(&text)) {
        return error_memory(error);
    }
    str bytes = buf_str(&text);
    store_dir_temporary(put->temporary);
    TRY(temporary_write(put, put->temporary, pieces, piece_count, bytes, &put->file, &kept, error));
    if (kept) {
        return OK;
    }
    store_dir_temporary(put->temporary_sidecar);
    return temporary_write(put, put->temporary_sidecar, &bytes, 1, STR(""), &put->sidecar, &kept,
                           error);
}

static void put_sync_one(const struct put *put, int fd)
{
    if (put->durability == STORE_DURABLE) {
        file_fd_sync(fd, put->key);
    }
}

static void put_end_one(const struct put *put, int *fd)
{
    if (*fd >= 0) {
        put_sync_one(put, *fd);
        file_fd_close_written(*fd, put->key);
        *fd = -1;
    }
}

/* What is made durable later goes on its way now, so that no sync finds all of it waiting. */
static void put_send_off(const struct put *put)
{
    if (put->durability == STORE_LATER) {
        (void)sync_file_range(put->file, 0, 0, SYNC_FILE_RANGE_WRITE);
    }
}

static void put_sync(struct put *put)
{
    put_end_one(put, &put->file);
    put_end_one(put, &put->sidecar);
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
MUST_USE static err put_show(struct put *put, struct error *error)
{
    char sidecar[STORE_DIR_NAME_ROOM];
    assert(put->file < 0 && put->sidecar < 0);
    if (put->temporary_sidecar[0] != '\0') {
        if (!store_dir_sidecar(put->name, sidecar)) {
            return error_set(error, INVALID, ERROR_INVALID_REQUEST, "the name %s is too long",
                             put->name);
        }
        TRY(put_rename(put, put->temporary_sidecar, sidecar, error));
    }
    CRASH_POINT(store_before_rename);
    TRY(put_rename(put, put->temporary, put->name, error));
    put->shown = true;
    CRASH_POINT(store_after_rename);
    return OK;
}

MUST_USE static err check_version(const struct put *put, str wanted, struct error *error)
{
    char text[STORE_DIR_VERSION_ROOM];
    struct stat status;
    str version = STR("");
    if (fstatat(put->parent, put->name, &status, AT_SYMLINK_NOFOLLOW) == 0) {
        version = store_dir_version(&status, text);
    } else if (errno != ENOENT) {
        return file_fd_error(errno, "cannot look at", put->key, error);
    }
    if (!str_equal(version, wanted)) {
        return error_set(error, CONFLICT, ERROR_UNAVAILABLE, "%.*s was replaced meanwhile",
                         STR_ARG(put->key));
    }
    return OK;
}

MUST_USE static err put_replace(struct put *put, str replaces, struct error *error)
{
    (void)pthread_mutex_lock(&put->dir->replacing);
    err result = check_version(put, replaces, error);
    if (result == OK) {
        result = put_show(put, error);
    }
    (void)pthread_mutex_unlock(&put->dir->replacing);
    return result;
}

static void close_quietly(int fd)
{
    if (fd >= 0) {
        (void)close(fd);
    }
}

/* What is not shown goes. */
static void put_end(const struct put *put)
{
    close_quietly(put->file);
    close_quietly(put->sidecar);
    close_quietly(put->parent);
    if (put->shown) {
        return;
    }
    if (put->temporary[0] != '\0') {
        (void)unlinkat(put->dir->temporary, put->temporary, 0);
    }
    if (put->temporary_sidecar[0] != '\0') {
        (void)unlinkat(put->dir->temporary, put->temporary_sidecar, 0);
    }
}

/* The directory of the put before, where it is the same; -1. */
static int parent_again(const struct put *put, const struct put *before)
{
    bool same = before != NULL && before->dir == put->dir && str_equal(before->folder, put->folder);
    return same ? fcntl(before->parent, F_DUPFD_CLOEXEC, 0) : -1;
}

/* `held` and `before`, the put that came last: of a group; or NULL. */
MUST_USE static err put_begin(struct put *put, struct held *held, const struct put *before,
                              const str *pieces, size_t piece_count, const struct store_meta *meta,
                              struct error *error)
{
    put->file = -1;
    put->sidecar = -1;
    put->parent = -1;
    put->caching = meta != NULL ? meta->caching : STORE_CACHED;
    TRY(store_dir_split(put->key, &put->folder, put->name, error));
    put->parent = parent_again(put, before);
    if (put->parent < 0) {
        TRY(parent_open(put->dir, held, put->folder, &put->parent, error));
    }
    return put_write(put, pieces, piece_count, meta, error);
}

MUST_USE static err put_finish(struct put *put, const struct store_meta *meta, struct error *error)
{
    bool replaces = meta != NULL && meta->replaces.data != NULL;
    put_send_off(put);
    put_sync(put);
    TRY(replaces ? put_replace(put, meta->replaces, error) : put_show(put, error));
    put_sync_one(put, put->parent);
    return OK;
}

/* Since Linux 5.8 syncfs tells of writes that failed; before, it is worth nothing. */
static bool whole_sync_tells(void)
{
    struct utsname system;
    i64 major = 0;
    i64 minor = 0;
    if (uname(&system) != 0) {
        return false;
    }
    str rest = str_from(system.release);
    str part = {0};
    bool numbers = str_next(&rest, '.', &part) && str_to_i64(part, &major) &&
                   str_next(&rest, '.', &part) && str_to_i64(part, &minor);
    return numbers && (major > 5 || (major == 5 && minor >= 8));
}

/* Later means a syncfs that can be believed. */
static enum store_durability durability_of(const struct store_meta *meta)
{
    bool later = meta != NULL && meta->durability == STORE_LATER && whole_sync_tells();
    return later ? STORE_LATER : STORE_DURABLE;
}

err store_dir_put(void *self, str key, const str *pieces, size_t piece_count,
                  const struct store_meta *meta, struct error *error)
{
    struct put put = {.dir = self, .key = key, .durability = durability_of(meta)};
    err result = put_begin(&put, NULL, NULL, pieces, piece_count, meta, error);
    if (result == OK) {
        result = put_finish(&put, meta, error);
    }
    put_end(&put);
    return result;
}

/* ---- a group ---- */

static void held_drop(struct store_group *group)
{
    struct held *held = group->held;
    for (size_t i = 0; i < group->count; i++) {
        put_end(&held->puts[i]);
    }
    for (size_t i = 0; held != NULL && i < held->folder_count; i++) {
        (void)close(held->folders[i].fd);
    }
    if (held != NULL) {
        held->folder_count = 0;
        held->made_count = 0;
    }
    group->count = 0;
}

/* Each file system once that the group's objects lie on. */
static void whole_sync(const struct held *held, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        const struct put *put = &held->puts[i];
        bool synced = false;
        for (size_t j = 0; j < i && !synced; j++) {
            synced = held->puts[j].dir->device == put->dir->device;
        }
        if (!synced && syncfs(put->dir->root) != 0) {
            file_durability_lost("syncfs", put->key, errno);
        }
    }
}

static void held_sync_files(struct held *held, size_t count, bool whole)
{
    if (whole) {
        whole_sync(held, count);
    }
    for (size_t i = 0; i < count; i++) {
        struct put *put = &held->puts[i];
        put->durability = whole ? STORE_LATER : STORE_DURABLE; /* on the disk already, or not */
        put_sync(put);
    }
}

/* New directories have their place for good. */
static void held_settle(struct held *held, bool synced)
{
    for (size_t i = 0; i < held->folder_count; i++) {
        if (!synced) {
            file_fd_sync(held->folders[i].fd, held->folders[i].dir->directory);
        }
        (void)close(held->folders[i].fd);
    }
    for (size_t i = 0; i < held->made_count; i++) {
        struct made *made = &held->made[i];
        atomic_store(durable_slot(made->dir, made->hash), made->hash);
    }
    held->folder_count = 0;
    held->made_count = 0;
}

/* One sync a directory, however many of the objects lie in it. */
static void held_sync_parents(const struct held *held, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        const struct put *put = &held->puts[i];
        bool synced = false;
        for (size_t j = 0; j < i && !synced; j++) {
            synced = held->puts[j].dir == put->dir && str_equal(held->puts[j].folder, put->folder);
        }
        if (!synced) {
            file_fd_sync(put->parent, put->key);
        }
    }
}

MUST_USE static err held_end(struct store_group *group, struct error *error)
{
    struct held *held = group->held;
    err result = OK;
    bool whole = group->count >= WHOLE_SYNC_MIN && whole_sync_tells();
    if (group->count > 0) {
        held_sync_files(held, group->count, whole);
    }
    for (size_t i = 0; i < group->count && result == OK; i++) {
        struct put *put = &held->puts[i];
        result = put->fresh ? put_replace(put, STR(""), error) : put_show(put, error);
    }
    if (group->count > 0 && result == OK) {
        if (whole) {
            whole_sync(held, group->count);
        } else {
            held_sync_parents(held, group->count);
        }
        held_settle(held, whole);
    }
    held_drop(group);
    return result;
}

const struct store_group_ops store_dir_group = {.end = held_end, .drop = held_drop};

static size_t pieces_size(const str *pieces, size_t piece_count)
{
    size_t size = 0;
    for (size_t i = 0; i < piece_count; i++) {
        size += pieces[i].size;
    }
    return size;
}

err store_dir_group_put(void *self, struct store_group *group, str key, const str *pieces,
                        size_t piece_count, const struct store_meta *meta, struct error *error)
{
    bool fresh = meta != NULL && meta->replaces.data != NULL;
    assert(!fresh || meta->replaces.size == 0);
    if (group->held == NULL) {
        group->held = arena_alloc(group->arena, sizeof(struct held));
    }
    if (group->held == NULL) {
        return error_memory(error);
    }
    if (group->count == STORE_GROUP_MAX) {
        TRY(held_end(group, error));
    }
    struct held *held = group->held;
    struct put *put = &held->puts[group->count];
    memcpy(held->keys[group->count], key.data, key.size);
    *put = (struct put){.dir = self, .key = {held->keys[group->count], key.size}, .fresh = fresh};
    const struct put *before = group->count > 0 ? put - 1 : NULL;
    err result = put_begin(put, held, before, pieces, piece_count, meta, error);
    if (result != OK) {
        put_end(put);
        return result;
    }
    /* Only a hint: what it begins now, the sync at the end need not wait for. Small ones of a large
     * group are written out together in the end, which takes less. */
    if (group->count < WHOLE_SYNC_MIN || pieces_size(pieces, piece_count) >= HINTED_BYTES) {
        (void)sync_file_range(put->file, 0, 0, SYNC_FILE_RANGE_WRITE);
    }
    group->count++;
    return OK;
}
