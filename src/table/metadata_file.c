#include "table/metadata_file.h"

#include "base/id.h"
#include "base/log.h"
#include "format/compress.h"
#include "table/document.h"
#include "table/view.h"

enum { SCRATCH_BYTES_MAX = 3 * METADATA_FILE_BYTES_MAX, GZIP_HEADER = 10, GZIP_TRAILER = 8 };

#define METADATA_SUFFIX ".metadata.json"

/* ---- gzip (RFC 1952) ---- */

static u32 gzip_crc(str bytes)
{
    u32 table[256];
    for (u32 i = 0; i < 256; i++) {
        u32 value = i;
        for (int bit = 0; bit < 8; bit++) {
            value = (value >> 1) ^ (0xedb88320U & (0U - (value & 1U)));
        }
        table[i] = value;
    }
    u32 crc = 0xffffffffU;
    for (size_t i = 0; i < bytes.size; i++) {
        crc = (crc >> 8) ^ table[(crc ^ (u8)bytes.data[i]) & 0xffU];
    }
    return crc ^ 0xffffffffU;
}

static bool is_gzip(str bytes)
{
    return bytes.size >= 2 && (u8)bytes.data[0] == 0x1f && (u8)bytes.data[1] == 0x8b;
}

/* The size of the header with its optional parts; 0 when it is none. */
static size_t gzip_header_size(str bytes)
{
    enum { FLAG_CRC = 2, FLAG_EXTRA = 4, FLAG_NAME = 8, FLAG_COMMENT = 16 };
    if (bytes.size < GZIP_HEADER + GZIP_TRAILER || bytes.data[2] != 8) {
        return 0;
    }
    u8 flags = (u8)bytes.data[3];
    size_t at = GZIP_HEADER;
    if ((flags & FLAG_EXTRA) != 0) {
        at += 2 + (size_t)((u8)bytes.data[at] | (u8)bytes.data[at + 1] << 8);
    }
    for (u8 flag = FLAG_NAME; flag <= FLAG_COMMENT; flag = (u8)(flag << 1)) {
        if ((flags & flag) != 0) {
            i64 end = str_find_byte(str_slice(bytes, at, bytes.size), '\0');
            if (end < 0) {
                return 0;
            }
            at += (size_t)end + 1;
        }
    }
    at += (flags & FLAG_CRC) != 0 ? 2 : 0;
    return at + GZIP_TRAILER <= bytes.size ? at : 0;
}

MUST_USE static err gzip_read(struct arena *arena, str bytes, str *out_bytes, struct error *error)
{
    size_t header = gzip_header_size(bytes);
    if (header == 0) {
        return error_set(error, CORRUPT, ERROR_INTERNAL, "damaged gzip header");
    }
    size_t end = bytes.size - GZIP_TRAILER;
    u32 crc = num_load_u32(bytes.data + end);
    u32 size = num_load_u32(bytes.data + end + 4);
    if (size > METADATA_FILE_BYTES_MAX) {
        return error_set(error, LIMIT, ERROR_INTERNAL, "metadata of more than %d bytes",
                         METADATA_FILE_BYTES_MAX);
    }
    str plain = {0};
    TRY(compress_expand(arena, COMPRESS_DEFLATE, str_slice(bytes, header, end), size, &plain,
                        error));
    if (plain.size != size || gzip_crc(plain) != crc) {
        return error_set(error, CORRUPT, ERROR_INTERNAL, "damaged gzip data");
    }
    *out_bytes = plain;
    return OK;
}

MUST_USE static err gzip_write(struct arena *arena, str bytes, str *out_bytes, struct error *error)
{
    static const char header[GZIP_HEADER] = {0x1f, (char)0x8b, 8, 0, 0, 0, 0, 0, 0, (char)0xff};
    buf out = buf_create(arena, bytes.size / 4 + 64, METADATA_FILE_BYTES_MAX);
    buf_append_bytes(&out, header, sizeof(header));
    AUTO_COMPRESSOR struct compressor compressor = {0};
    TRY(compressor_open(COMPRESS_DEFLATE, 6, &compressor, error));
    TRY(compress_append(&compressor, &out, bytes, error));
    u8 trailer[GZIP_TRAILER];
    num_store_u32(trailer, gzip_crc(bytes));
    num_store_u32(trailer + 4, (u32)bytes.size);
    buf_append_bytes(&out, trailer, sizeof(trailer));
    if (!buf_ok(&out)) {
        return error_memory(error);
    }
    *out_bytes = buf_str(&out);
    return OK;
}

/* ---- reading ---- */

MUST_USE static err read_bytes(const struct location_set *locations, struct arena *arena, str uri,
                               str *out_bytes, struct error *error)
{
    struct error why = {0};
    str bytes = {0};
    err result = location_get(locations, arena, uri, &bytes, &why);
    if (result == NOT_FOUND) {
        return error_set(error, CORRUPT, ERROR_INTERNAL,
                         "Failed to open input stream for file: %.*s", STR_ARG(uri));
    }
    if (result == OK && is_gzip(bytes)) {
        result = gzip_read(arena, bytes, &bytes, &why);
    }
    if (result != OK) {
        return error_set(error, result, why.code, "Cannot read %.*s: %s", STR_ARG(uri),
                         why.message);
    }
    *out_bytes = bytes;
    return OK;
}

/* What stands in the file is at fault, not who asked for it. */
MUST_USE static err content_error(err result, str uri, const struct error *why, struct error *error)
{
    bool content = result == INVALID || result == CORRUPT;
    return error_set(error, content ? CORRUPT : result, content ? ERROR_INTERNAL : why->code,
                     "Cannot read %.*s: %s", STR_ARG(uri), why->message);
}

err metadata_file_read(const struct location_set *locations, str uri,
                       struct metadata **out_metadata, size_t *out_bytes, struct error *error)
{
    AUTO_ARENA struct arena *scratch = arena_create(SCRATCH_BYTES_MAX);
    struct error why = {0};
    str bytes = {0};
    TRY(read_bytes(locations, scratch, uri, &bytes, error));
    err result = metadata_parse(bytes, out_metadata, &why);
    if (result != OK) {
        return content_error(result, uri, &why, error);
    }
    if (out_bytes != NULL) {
        *out_bytes = bytes.size;
    }
    return OK;
}

err metadata_file_read_view(const struct location_set *locations, str uri, json_t **out_view,
                            struct error *error)
{
    AUTO_ARENA struct arena *scratch = arena_create(SCRATCH_BYTES_MAX);
    struct error why = {0};
    str bytes = {0};
    TRY(read_bytes(locations, scratch, uri, &bytes, error));
    err result = view_parse(bytes, out_view, &why);
    return result == OK ? OK : content_error(result, uri, &why, error);
}

/* ---- writing ---- */

str metadata_file_normal(struct arena *arena, str uri)
{
    while (uri.size > 1 && uri.data[uri.size - 1] == '/') {
        uri.size -= 1;
    }
    if (str_starts(uri, STR("file:/")) && !str_starts(uri, STR("file://"))) {
        return location_from_path(arena, str_slice(uri, sizeof("file:") - 1, uri.size));
    }
    return str_starts(uri, STR("/")) ? location_from_path(arena, uri) : uri;
}

/* The number that the file's name begins with, or -1. */
static i64 file_version(str uri)
{
    str name = str_slice(uri, (size_t)(str_find_last_byte(uri, '/') + 1), uri.size);
    i64 dash = str_find_byte(name, '-');
    i64 version = -1;
    if (dash <= 0 || !str_to_i64(str_slice(name, 0, (size_t)dash), &version) || version < 0) {
        return -1;
    }
    return version < INT32_MAX ? version : -1;
}

static str property_of(const json_t *document, const char *key)
{
    return document_text(json_object_get(document, "properties"), key);
}

static str location_of(struct arena *arena, const json_t *document)
{
    return metadata_file_normal(arena, document_text(document, "location"));
}

static bool wants_gzip(const json_t *document)
{
    str codec = property_of(document, "write.metadata.compression-codec");
    return str_equal_ignore_case(codec, STR("gzip"));
}

/* A path that a client chose keeps its scheme's spelling: clients compare it. */
static str metadata_directory(struct arena *arena, const json_t *document)
{
    str path = property_of(document, "write.metadata.path");
    while (path.size > 1 && path.data[path.size - 1] == '/') {
        path.size -= 1;
    }
    if (path.size > 0) {
        return str_starts(path, STR("file:/")) ? path : metadata_file_normal(arena, path);
    }
    str location = location_of(arena, document);
    return str_format(arena, "%.*s/metadata", STR_ARG(location));
}

err metadata_file_write(const struct location_set *locations, struct arena *arena,
                        const struct seam *seam, const json_t *document, str text, str previous_uri,
                        struct store_group *group, str *out_uri, struct error *error)
{
    if (text.size > METADATA_WRITTEN_BYTES_MAX) {
        return error_set(error, INVALID, ERROR_INVALID_REQUEST,
                         "the metadata would have more than %d bytes", METADATA_WRITTEN_BYTES_MAX);
    }
    AUTO_ARENA struct arena *scratch = arena_create(SCRATCH_BYTES_MAX);
    bool gzip = wants_gzip(document);
    if (gzip) {
        TRY(gzip_write(scratch, text, &text, error));
    }
    char uuid[ID_UUID_SIZE];
    str id = id_uuid_format(id_uuid_make(seam), uuid);
    str directory = metadata_directory(scratch, document);
    str uri = str_format(arena, "%.*s/%05d-%.*s%s" METADATA_SUFFIX, STR_ARG(directory),
                         (int)(file_version(previous_uri) + 1), STR_ARG(id), gzip ? ".gz" : "");
    if (directory.data == NULL || uri.data == NULL) {
        return error_memory(error);
    }
    TRY(location_group_put(locations, scratch, uri, group, &text, 1, error));
    *out_uri = uri;
    return OK;
}

/* A file below `directory` would be reachable. */
MUST_USE static err check_directory(const struct location_set *locations, str directory,
                                    struct error *error)
{
    AUTO_ARENA struct arena *scratch = arena_create(MIB);
    str probe = str_format(scratch, "%.*s/x", STR_ARG(metadata_file_normal(scratch, directory)));
    if (probe.data == NULL) {
        return error_memory(error);
    }
    struct store store = {0};
    str key = {0};
    return location_find(locations, scratch, probe, &store, &key, error);
}

err metadata_file_check(const struct location_set *locations, const json_t *document,
                        struct error *error)
{
    static const char *const directories[] = {"write.data.path", "write.metadata.path",
                                              "write.object-storage.path",
                                              "write.folder-storage.path"};
    TRY(check_directory(locations, document_text(document, "location"), error));
    for (size_t i = 0; i < ARRAY_COUNT(directories); i++) {
        str directory = property_of(document, directories[i]);
        if (directory.size > 0) {
            TRY(check_directory(locations, directory, error));
        }
    }
    return OK;
}

err metadata_file_point(const struct location_set *locations, const json_t *document, str uri,
                        struct error *error)
{
    AUTO_ARENA struct arena *scratch = arena_create(MIB);
    str name = str_slice(uri, (size_t)(str_find_last_byte(uri, '/') + 1), uri.size);
    if (str_ends(name, STR(METADATA_SUFFIX))) {
        name.size -= sizeof(METADATA_SUFFIX) - 1;
    }
    str location = location_of(scratch, document);
    str hint = str_format(scratch, "%.*s/metadata/version-hint.text", STR_ARG(location));
    if (hint.data == NULL) {
        return error_memory(error);
    }
    return location_put(locations, scratch, hint, &name, 1, error);
}

/* ---- clean-up ---- */

/* A log may name anything; only files where this table's metadata lies are its own to remove. */
static bool is_own_file(struct arena *arena, const struct metadata *metadata, str uri)
{
    str location = metadata_file_normal(arena, metadata_location(metadata));
    str normal = metadata_file_normal(arena, uri);
    str under = str_format(arena, "%.*s/metadata/", STR_ARG(location));
    str directory = metadata_directory(arena, metadata_json(metadata));
    str moved = str_format(arena, "%.*s/", STR_ARG(metadata_file_normal(arena, directory)));
    bool below = under.data != NULL && moved.data != NULL &&
                 (str_starts(normal, under) || str_starts(normal, moved));
    return below &&
           (str_ends(normal, STR(METADATA_SUFFIX)) || str_ends(normal, STR(METADATA_SUFFIX ".gz")));
}

void metadata_file_trim(const struct location_set *locations, const struct metadata *before,
                        const struct metadata *after, buf *kept)
{
    AUTO_ARENA struct arena *scratch = arena_create(16 * MIB);
    str *trimmed = NULL;
    size_t count = 0;
    struct error error = {0};
    err result = metadata_trimmed(scratch, before, after, &trimmed, &count, &error);
    for (size_t i = 0; i < count && result == OK; i++) {
        if (!is_own_file(scratch, after, trimmed[i])) {
            continue;
        }
        if (kept != NULL) {
            buf_append(kept, trimmed[i]);
            buf_append_byte(kept, '\n');
        } else {
            result = location_remove(locations, scratch, trimmed[i], &error);
        }
    }
    if (result != OK) {
        log_error("metadata_trim_failed", result, &error, metadata_location(after));
    }
}

err metadata_file_make_directories(const struct location_set *locations, str location,
                                   struct error *error)
{
    static const char *const names[] = {"metadata", "data"};
    AUTO_ARENA struct arena *scratch = arena_create(MIB);
    str normal = metadata_file_normal(scratch, location);
    /* A store knows objects only; one that was there for a moment leaves its directory. */
    for (size_t i = 0; i < ARRAY_COUNT(names) && str_starts(normal, STR("file://")); i++) {
        str object = str_format(scratch, "%.*s/%s/.directory", STR_ARG(normal), names[i]);
        if (object.data == NULL) {
            return error_memory(error);
        }
        TRY(location_put(locations, scratch, object, NULL, 0, error));
        TRY(location_remove(locations, scratch, object, error));
    }
    return OK;
}
