#include "io/file_tree.h"

#include "io/file.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

enum {
    PIECE_BYTES = 256 * 1024,
    ATTRIBUTE_NAMES_MAX = 4096,
    ATTRIBUTE_BYTES_MAX = 4096,
    TREE_BYTES_MAX = 256 * 1024 * 1024, /* of the names of its directories */
};

/* A directory that is still to be read, below the root. */
struct folder {
    str path; /* empty: the root */
    struct folder *next;
};

struct walk {
    const struct file_tree *tree;
    struct arena *arena;  /* of the folders */
    struct arena *names;  /* of the folder being read */
    char *piece;          /* PIECE_BYTES */
    struct folder *first; /* to be read */
    str path;             /* of the folder being read */
    int from;
    int to;
};

MUST_USE static err failed(struct error *error, const char *what, str path)
{
    bool full = errno == ENOSPC || errno == EDQUOT;
    return error_set(error, IO, full ? ERROR_DISK_LOW : ERROR_STORE_DOWN, "%s %.*s: %s", what,
                     STR_ARG(path), strerror(errno));
}

static str join(struct arena *arena, str path, str name)
{
    return path.size == 0 ? str_copy(arena, name)
                          : str_format(arena, "%.*s/%.*s", STR_ARG(path), STR_ARG(name));
}

/* ---- one file ---- */

MUST_USE static err write_all(int fd, const char *bytes, size_t size, str path, struct error *error)
{
    size_t written = 0;
    while (written < size) {
        ssize_t step = write(fd, bytes + written, size - written);
        if (step < 0 && errno != EINTR) {
            return failed(error, "writing", path);
        }
        written += step > 0 ? (size_t)step : 0;
    }
    return OK;
}

/* From the file's present position to its end; `to` -1: only hashed. */
MUST_USE static err pass_bytes(struct walk *walk, int from, int to, struct file_tree_file *file,
                               struct error *error)
{
    struct crypto_hash hash;
    crypto_hash_begin(&hash);
    file->bytes = 0;
    for (;;) {
        ssize_t size = read(from, walk->piece, PIECE_BYTES);
        if (size < 0 && errno == EINTR) {
            continue;
        }
        if (size < 0) {
            return failed(error, "reading", file->path);
        }
        if (size == 0) {
            break;
        }
        crypto_hash_add(&hash, (str){walk->piece, (size_t)size});
        file->bytes += size;
        if (to >= 0) {
            TRY(write_all(to, walk->piece, (size_t)size, file->path, error));
        }
    }
    file->hash = crypto_hash_end(&hash);
    file->has_hash = true;
    return OK;
}

MUST_USE static err copy_attributes(int from, int to, str path, struct error *error)
{
    char names[ATTRIBUTE_NAMES_MAX];
    char value[ATTRIBUTE_BYTES_MAX];
    ssize_t size = flistxattr(from, names, sizeof(names));
    if (size < 0) {
        return errno == ENOTSUP ? OK : failed(error, "listing attributes of", path);
    }
    str rest = {names, (size_t)size};
    str name = {0};
    while (rest.size > 0 && str_next(&rest, '\0', &name)) {
        if (!str_starts(name, STR("user."))) {
            continue;
        }
        ssize_t bytes = fgetxattr(from, name.data, value, sizeof(value));
        if (bytes < 0 || fsetxattr(to, name.data, value, (size_t)bytes, 0) != 0) {
            return failed(error, "copying attributes of", path);
        }
    }
    return OK;
}

MUST_USE static err read_back(struct walk *walk, int to, const struct file_tree_file *file,
                              struct error *error)
{
    struct file_tree_file again = {.path = file->path};
    (void)posix_fadvise(to, 0, 0, POSIX_FADV_DONTNEED); /* from the disk, where that can be had */
    if (lseek(to, 0, SEEK_SET) < 0) {
        return failed(error, "reading", file->path);
    }
    TRY(pass_bytes(walk, to, -1, &again, error));
    if (again.bytes != file->bytes || memcmp(&again.hash, &file->hash, sizeof(again.hash)) != 0) {
        return error_set(error, CORRUPT, ERROR_STORE_DOWN, "the copy of %.*s reads otherwise",
                         STR_ARG(file->path));
    }
    return OK;
}

MUST_USE static err copy_bytes(struct walk *walk, int from, const char *name,
                               struct file_tree_file *file, struct error *error)
{
    int to = openat(walk->to, name, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (to < 0) {
        return failed(error, "making", file->path);
    }
    err result = pass_bytes(walk, from, to, file, error);
    result = result == OK ? copy_attributes(from, to, file->path, error) : result;
    if (result == OK && fsync(to) != 0) {
        result = failed(error, "syncing", file->path);
    }
    result = result == OK ? read_back(walk, to, file, error) : result;
    if (close(to) != 0 && result == OK) {
        result = failed(error, "closing", file->path);
    }
    if (result != OK) {
        (void)unlinkat(walk->to, name, 0);
    }
    return result;
}

static bool is_there(const struct walk *walk, const char *name, const struct stat *wanted)
{
    struct stat there;
    return fstatat(walk->to, name, &there, AT_SYMLINK_NOFOLLOW) == 0 && S_ISREG(there.st_mode) &&
           there.st_size == wanted->st_size;
}

/* Opened, so that what is copied is one file, whatever its name stands for later. */
MUST_USE static err copy_open(struct walk *walk, int from, const char *name,
                              struct file_tree_file *file, bool *out_new, struct error *error)
{
    struct stat found;
    if (fstat(from, &found) != 0) {
        return failed(error, "looking at", file->path);
    }
    *out_new = S_ISREG(found.st_mode) && !is_there(walk, name, &found);
    if (!*out_new) {
        return OK;
    }
    (void)unlinkat(walk->to, name, 0); /* an older one of another size */
    if (walk->tree->how == FILE_TREE_COPY) {
        return copy_bytes(walk, from, name, file, error);
    }
    file->bytes = found.st_size;
    if (linkat(walk->from, name, walk->to, name, 0) != 0) {
        *out_new = errno != ENOENT;
        return errno == ENOENT ? OK : failed(error, "linking", file->path);
    }
    return OK;
}

MUST_USE static err copy_file(struct walk *walk, const char *name, struct error *error)
{
    struct file_tree_file file = {.path = join(walk->names, walk->path, str_from(name))};
    bool is_new = false;
    if (file.path.data == NULL) {
        return error_memory(error);
    }
    int from = openat(walk->from, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    if (from < 0) {
        return errno == ENOENT ? OK : failed(error, "opening", file.path);
    }
    err result = copy_open(walk, from, name, &file, &is_new, error);
    (void)close(from);
    TRY(result);
    return is_new && walk->tree->told != NULL ? walk->tree->told(walk->tree->context, &file, error)
                                              : OK;
}

/* ---- one directory ---- */

MUST_USE static err push(struct walk *walk, str name, struct error *error)
{
    struct folder *folder = arena_alloc(walk->arena, sizeof(*folder));
    str path = join(walk->arena, walk->path, name);
    if (folder == NULL || path.data == NULL) {
        return error_memory(error);
    }
    *folder = (struct folder){.path = path, .next = walk->first};
    walk->first = folder;
    return OK;
}

static bool is_left_out(str name)
{
    return str_starts(name, STR(".")) && !str_ends(name, STR(".meta"));
}

MUST_USE static err take_name(struct walk *walk, const char *name, struct error *error)
{
    struct stat found;
    str text = str_from(name);
    if (is_left_out(text)) {
        return OK;
    }
    if (fstatat(walk->from, name, &found, AT_SYMLINK_NOFOLLOW) != 0) {
        return errno == ENOENT ? OK : failed(error, "looking at", text);
    }
    if (S_ISDIR(found.st_mode)) {
        return push(walk, text, error);
    }
    const struct file_tree *tree = walk->tree;
    bool wanted = (tree->only.size == 0 || str_equal(tree->only, text)) &&
                  (tree->except.size == 0 || !str_equal(tree->except, text));
    return wanted && S_ISREG(found.st_mode) ? copy_file(walk, name, error) : OK;
}

MUST_USE static err read_names(struct walk *walk, struct error *error)
{
    int again = openat(walk->from, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *directory = again < 0 ? NULL : fdopendir(again);
    if (directory == NULL) {
        err result = failed(error, "reading", walk->path);
        if (again >= 0) {
            (void)close(again);
        }
        return result;
    }
    err result = OK;
    errno = 0;
    for (struct dirent *entry = readdir(directory); entry != NULL && result == OK;
         entry = readdir(directory)) {
        result = take_name(walk, entry->d_name, error);
        errno = 0;
    }
    if (result == OK && errno != 0) {
        result = failed(error, "reading", walk->path);
    }
    (void)closedir(directory);
    return result;
}

/* Both sides opened; the target made. */
MUST_USE static err copy_folder(struct walk *walk, str path, struct error *error)
{
    arena_reset(walk->names);
    str from = str_format(walk->names, "%.*s/%.*s", STR_ARG(walk->tree->from), STR_ARG(path));
    str to = str_format(walk->names, "%.*s%s%.*s", STR_ARG(walk->tree->to),
                        path.size > 0 ? "/" : "", STR_ARG(path));
    if (from.data == NULL || to.data == NULL) {
        return error_memory(error);
    }
    walk->path = path;
    walk->from = open(from.data, O_PATH | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
    if (walk->from < 0) {
        return errno == ENOENT ? OK : failed(error, "opening", from);
    }
    err result = file_make_directory(to, error);
    walk->to = result == OK ? open(to.data, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW) : -1;
    if (result == OK && walk->to < 0) {
        result = failed(error, "opening", to);
    }
    result = result == OK ? read_names(walk, error) : result;
    if (result == OK && fsync(walk->to) != 0) {
        result = failed(error, "syncing", to);
    }
    if (walk->to >= 0) {
        (void)close(walk->to);
    }
    (void)close(walk->from);
    return result;
}

err file_tree_copy(const struct file_tree *tree, struct error *error)
{
    AUTO_ARENA struct arena *arena = arena_create(TREE_BYTES_MAX);
    AUTO_ARENA struct arena *names = arena_create(TREE_BYTES_MAX);
    struct walk walk = {.tree = tree, .arena = arena, .names = names};
    walk.piece = arena_alloc(arena, PIECE_BYTES);
    if (walk.piece == NULL) {
        return error_memory(error);
    }
    TRY(copy_folder(&walk, STR(""), error));
    while (walk.first != NULL) {
        struct folder *folder = walk.first;
        walk.first = folder->next;
        TRY(copy_folder(&walk, folder->path, error));
    }
    return OK;
}

err file_tree_hash(str path, struct sha256 *out_hash, i64 *out_bytes, struct error *error)
{
    AUTO_ARENA struct arena *arena = arena_create(MIB);
    struct walk walk = {.piece = arena_alloc(arena, PIECE_BYTES)};
    struct file_tree_file file = {.path = str_copy(arena, path)};
    if (walk.piece == NULL || file.path.data == NULL) {
        return error_memory(error);
    }
    int fd = open(file.path.data, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    if (fd < 0) {
        return failed(error, "opening", path);
    }
    err result = pass_bytes(&walk, fd, -1, &file, error);
    (void)close(fd);
    *out_hash = file.hash;
    *out_bytes = file.bytes;
    return result;
}

err file_tree_is_empty(str directory, bool *out_empty, struct error *error)
{
    AUTO_ARENA struct arena *arena = arena_create((size_t)16 * KIB);
    str path = str_copy(arena, directory);
    if (path.data == NULL) {
        return error_memory(error);
    }
    DIR *opened = opendir(path.data);
    if (opened == NULL) {
        *out_empty = true;
        return errno == ENOENT ? OK : failed(error, "opening", directory);
    }
    bool empty = true;
    for (struct dirent *entry = readdir(opened); entry != NULL && empty; entry = readdir(opened)) {
        str name = str_from(entry->d_name);
        empty = str_equal(name, STR(".")) || str_equal(name, STR(".."));
    }
    (void)closedir(opened);
    *out_empty = empty;
    return OK;
}
