/* Walks the directories in byte order of whole keys. A directory is ordered as its name with the
 * slash that follows it in the keys below (`a.b` stands before `a/b`), so that a walk in depth
 * meets the keys in order and can stop at the limit. */
#include "io/file_fd.h"
#include "io/store_dir.h"

#include "base/assert.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

enum { DEPTH_MAX = STORE_KEY_MAX / 2 + 1 };
#define LIST_BYTES_MAX ((size_t)512 * MIB)

/* Whole keys, those of directories with a slash at the end. */
struct level {
    str *keys;
    size_t count;
    size_t capacity;
    size_t next;
};

struct walk {
    struct store_dir *dir;
    struct arena *arena; /* of the walk; what is listed goes to the caller's */
    str prefix;
    str after;
    struct level levels[DEPTH_MAX];
    size_t depth;
};

static int key_order(const void *a, const void *b)
{
    return str_compare(*(const str *)a, *(const str *)b);
}

/* Can the key, or one below it, belong to the answer? */
static bool key_wanted(const struct walk *walk, str key)
{
    bool directory = str_ends(key, STR("/"));
    bool named = str_starts(key, walk->prefix) || (directory && str_starts(walk->prefix, key));
    bool follows = str_compare(key, walk->after) > 0 || (directory && str_starts(walk->after, key));
    return named && follows;
}

MUST_USE static err level_add(struct walk *walk, struct level *level, str key, struct error *error)
{
    if (level->count == level->capacity) {
        size_t capacity = level->capacity == 0 ? 64 : level->capacity * 2;
        str *keys = arena_array(walk->arena, capacity, sizeof(*keys));
        if (keys == NULL) {
            return error_memory(error);
        }
        if (level->count > 0) {
            memcpy(keys, level->keys, level->count * sizeof(*keys));
        }
        level->keys = keys;
        level->capacity = capacity;
    }
    level->keys[level->count++] = key;
    return OK;
}

enum entry_kind { ENTRY_FILE, ENTRY_DIRECTORY, ENTRY_OTHER };

static enum entry_kind entry_kind(int fd, const struct dirent *entry)
{
    if (entry->d_type == DT_REG) {
        return ENTRY_FILE;
    }
    if (entry->d_type == DT_DIR) {
        return ENTRY_DIRECTORY;
    }
    struct stat status;
    if (entry->d_type != DT_UNKNOWN ||
        fstatat(fd, entry->d_name, &status, AT_SYMLINK_NOFOLLOW) != 0) {
        return ENTRY_OTHER;
    }
    return S_ISREG(status.st_mode)   ? ENTRY_FILE
           : S_ISDIR(status.st_mode) ? ENTRY_DIRECTORY
                                     : ENTRY_OTHER;
}

MUST_USE static err entry_add(struct walk *walk, struct level *level, str path, int fd,
                              const struct dirent *entry, struct error *error)
{
    enum entry_kind kind = entry_kind(fd, entry);
    str name = str_from(entry->d_name);
    if (name.data[0] == '.' || kind == ENTRY_OTHER || path.size + name.size > STORE_KEY_MAX) {
        return OK;
    }
    str key = str_format(walk->arena, "%.*s%s%s", STR_ARG(path), entry->d_name,
                         kind == ENTRY_DIRECTORY ? "/" : "");
    if (key.data == NULL) {
        return error_memory(error);
    }
    return key_wanted(walk, key) ? level_add(walk, level, key, error) : OK;
}

/* Reads the directory `path` (empty, or with a slash at its end) as the next level. One that is not
 * there holds nothing. */
MUST_USE static err level_open(struct walk *walk, str path, struct error *error)
{
    str name = path.size > 0 ? str_slice(path, 0, path.size - 1) : path;
    int fd = store_dir_open(walk->dir, name, O_RDONLY | O_DIRECTORY);
    if (fd < 0) {
        bool missing = errno == ENOENT || errno == ENOTDIR || errno == ELOOP;
        return missing ? OK : file_fd_error(errno, "cannot list", path, error);
    }
    DIR *entries = fdopendir(fd);
    if (entries == NULL) {
        (void)close(fd);
        return file_fd_error(errno, "cannot list", path, error);
    }
    assert(walk->depth < DEPTH_MAX);
    struct level *level = &walk->levels[walk->depth];
    *level = (struct level){0};
    err result = OK;
    errno = 0;
    for (struct dirent *entry = readdir(entries); entry != NULL && result == OK;
         errno = 0, entry = readdir(entries)) {
        result = entry_add(walk, level, path, fd, entry, error);
    }
    if (result == OK && errno != 0) {
        result = file_fd_error(errno, "cannot list", path, error);
    }
    (void)closedir(entries);
    TRY(result);
    if (level->count > 0) {
        qsort(level->keys, level->count, sizeof(*level->keys), key_order);
    }
    walk->depth++;
    return OK;
}

/* The next key in order; data NULL at the end. */
MUST_USE static err walk_next(struct walk *walk, str *out_key, struct error *error)
{
    *out_key = (str){NULL, 0};
    while (walk->depth > 0) {
        struct level *level = &walk->levels[walk->depth - 1];
        if (level->next == level->count) {
            walk->depth--;
            continue;
        }
        str key = level->keys[level->next++];
        if (!str_ends(key, STR("/"))) {
            *out_key = key;
            return OK;
        }
        TRY(level_open(walk, key, error));
    }
    return OK;
}

/* Fills in size and time; *out_there is false when the object went away meanwhile. */
MUST_USE static err object_stat(struct store_dir *dir, struct store_object *object, bool *out_there,
                                struct error *error)
{
    struct stat status;
    int fd = store_dir_open(dir, object->key, O_PATH);
    *out_there = fd >= 0;
    if (fd < 0) {
        bool missing = errno == ENOENT || errno == ENOTDIR || errno == ELOOP;
        return missing ? OK : file_fd_error(errno, "cannot look at", object->key, error);
    }
    int failed = fstat(fd, &status);
    (void)close(fd);
    if (failed != 0) {
        return file_fd_error(EIO, "cannot look at", object->key, error);
    }
    object->size = (i64)status.st_size;
    object->modified_at = (i64)status.st_mtim.tv_sec * TIME_SECOND_US +
                          (i64)status.st_mtim.tv_nsec / 1000;
    return OK;
}

MUST_USE static err walk_collect(struct walk *walk, struct arena *arena, size_t limit,
                                 struct store_list *list, struct error *error)
{
    size_t capacity = 0;
    for (;;) {
        str key = {0};
        TRY(walk_next(walk, &key, error));
        if (key.data == NULL) {
            return OK;
        }
        if (list->count == limit) {
            list->more = true;
            return OK;
        }
        if (list->count == capacity) {
            size_t wanted = capacity == 0 ? 64 : capacity * 2;
            struct store_object *objects = arena_array(arena, wanted, sizeof(*objects));
            if (objects == NULL) {
                return error_memory(error);
            }
            if (list->count > 0) {
                memcpy(objects, list->objects, list->count * sizeof(*objects));
            }
            list->objects = objects;
            capacity = wanted;
        }
        struct store_object *object = &list->objects[list->count];
        *object = (struct store_object){.key = str_copy(arena, key)};
        if (object->key.data == NULL) {
            return error_memory(error);
        }
        bool there = false;
        TRY(object_stat(walk->dir, object, &there, error));
        list->count += there ? 1 : 0;
    }
}

err store_dir_list(void *self, struct arena *arena, str prefix, str after, size_t limit,
                   struct store_list *out_list, struct error *error)
{
    AUTO_ARENA struct arena *own = arena_create(LIST_BYTES_MAX);
    struct walk *walk = arena_alloc(own, sizeof(*walk));
    if (walk == NULL) {
        return error_memory(error);
    }
    *walk = (struct walk){.dir = self, .arena = own, .prefix = prefix, .after = after};
    i64 slash = str_find_last_byte(prefix, '/');
    str start = str_slice(prefix, 0, (size_t)(slash + 1));
    if (start.size > 1 && !store_key_valid(str_slice(start, 0, start.size - 1))) {
        return error_set(error, INVALID, ERROR_INVALID_REQUEST, "'%.*s' begins no key",
                         STR_ARG(prefix));
    }
    struct store_list list = {0};
    TRY(level_open(walk, start, error));
    TRY(walk_collect(walk, arena, limit, &list, error));
    *out_list = list;
    return OK;
}
