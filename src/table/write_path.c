/* Where data files lie: "Object store file layout" of the reference library's AWS page. */
#include "table/write.h"

#include "table/location.h"

enum { HASH_BITS = 20, HASH_FOLDERS = 3, HASH_FOLDER_BITS = 4 };

str write_folder(struct arena *arena, const struct metadata *metadata, const char *property,
                 const char *folder)
{
    str path = metadata_property(metadata, property);
    while (path.size > 1 && path.data[path.size - 1] == '/') {
        path.size--;
    }
    if (path.size > 0) {
        bool bare = str_starts(path, STR("/")); /* files are named by whole URIs */
        return bare ? location_from_path(arena, path) : str_copy(arena, path);
    }
    return str_format(arena, "%.*s/%s", STR_ARG(metadata_location(metadata)), folder);
}

static bool write_property_is(const struct metadata *metadata, const char *key, str wanted)
{
    return str_equal_ignore_case(metadata_property(metadata, key), wanted);
}

static u32 rotate_left(u32 value, i32 bits)
{
    return value << bits | value >> (32 - bits);
}

static u32 murmur_mix(u32 word)
{
    return rotate_left(word * 0xcc9e2d51U, 15) * 0x1b873593U;
}

/* MurmurHash3, x86, 32 bits, seed 0. */
static u32 murmur_hash(str text)
{
    u32 hash = 0;
    size_t at = 0;
    for (; text.size - at >= sizeof(u32); at += sizeof(u32)) {
        hash = rotate_left(hash ^ murmur_mix(num_load_u32(text.data + at)), 13) * 5 + 0xe6546b64U;
    }
    if (at < text.size) {
        u32 tail = 0;
        memcpy(&tail, text.data + at, text.size - at);
        hash ^= murmur_mix(tail);
    }
    hash ^= (u32)text.size;
    hash = (hash ^ hash >> 16) * 0x85ebca6bU;
    hash = (hash ^ hash >> 13) * 0xc2b2ae35U;
    return hash ^ hash >> 16;
}

/* `0101/1100/0011/01101110`: names that share no prefix, which object stores spread over servers.
 */
static str hash_folders(struct arena *arena, str name)
{
    buf out = buf_create(arena, HASH_BITS + HASH_FOLDERS, HASH_BITS + HASH_FOLDERS);
    u32 hash = murmur_hash(name);
    for (i32 i = 0; i < HASH_BITS; i++) {
        if (i > 0 && i % HASH_FOLDER_BITS == 0 && i <= HASH_FOLDERS * HASH_FOLDER_BITS) {
            buf_append_byte(&out, '/');
        }
        buf_append_byte(&out, (u8)('0' + (hash >> (HASH_BITS - 1 - i) & 1)));
    }
    return buf_ok(&out) ? buf_str(&out) : (str){NULL, 0};
}

/* The last two parts of the table's location, for a path that tables may share. */
static str shared_context(const struct metadata *metadata, str folder)
{
    str location = metadata_location(metadata);
    if (str_starts(folder, location)) {
        return STR("");
    }
    i64 table = str_find_last_byte(location, '/');
    i64 space = table <= 0 ? -1 : str_find_last_byte(str_slice(location, 0, (size_t)table), '/');
    return str_slice(location, (size_t)(space + 1), location.size);
}

static str join_path(struct arena *arena, str left, str right)
{
    return str_format(arena, "%.*s%s%.*s", STR_ARG(left),
                      left.size > 0 && right.size > 0 ? "/" : "", STR_ARG(right));
}

str write_data_uri(struct arena *arena, const struct metadata *metadata, str partition, str name)
{
    str folder = write_folder(arena, metadata, "write.data.path", "data");
    bool hashed = write_property_is(metadata, "write.object-storage.enabled", STR("true"));
    if (hashed &&
        write_property_is(metadata, "write.object-storage.partitioned-paths", STR("false"))) {
        partition = STR("");
    }
    str path = join_path(arena, partition, name);
    if (hashed) {
        str hash = hash_folders(arena, path);
        str context = shared_context(metadata, folder);
        folder = join_path(arena, join_path(arena, folder, hash), context);
    }
    return folder.data == NULL || path.data == NULL ? (str){NULL, 0}
                                                    : join_path(arena, folder, path);
}
