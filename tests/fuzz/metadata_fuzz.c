/* Three lines: a metadata document, a commit's updates, a CreateTableRequest. What is taken prints
 * to bytes that are taken again and are the same document; whatever updates did to it, or a request
 * made, is a document that is taken too; schemas and specs read or fail, and never crash. */
#include "base/assert.h"
#include "fuzz.h"
#include "table/metadata.h"

enum { INPUT_MAX = 64 * KIB };

static instant fixed_now(void *self)
{
    (void)self;
    return 1790000000000000;
}

static void fixed_random(void *self, void *out_bytes, size_t size)
{
    (void)self;
    memset(out_bytes, 7, size);
}

static void check_again(struct arena *arena, const struct metadata *metadata)
{
    AUTO_METADATA struct metadata *again = NULL;
    str bytes = {NULL, 0};
    err printed = metadata_print(arena, metadata, &bytes, NULL);
    assert(printed == OK);
    err parsed = metadata_parse(bytes, &again, NULL);
    assert(parsed == OK);
    str second = {NULL, 0};
    err reprinted = metadata_print(arena, again, &second, NULL);
    assert(reprinted == OK);
    assert(str_equal(bytes, second));
}

static void look_at(struct arena *arena, const struct metadata *metadata)
{
    struct schema schema = {0};
    struct partition_spec spec = {0};
    i64 id = 0;
    if (metadata_main(metadata, &id)) {
        assert(metadata_snapshot(metadata, id) != NULL);
    }
    (void)metadata_last_updated(metadata);
    if (metadata_schema(arena, metadata, &schema, NULL) == OK) {
        json_t *document = schema_to_json(&schema);
        struct schema again = {0};
        err result = schema_from_json(arena, document, &again, NULL);
        assert(result == OK);
        assert(schema_highest_id(&again.root) == schema_highest_id(&schema.root));
        json_decref(document);
    }
    if (metadata_spec(arena, metadata, &spec, NULL) == OK) {
        err checked = partition_check(&spec, &schema.root, NULL);
        assert(checked == OK || checked == INVALID || checked == LIMIT);
    }
}

static void try_updates(struct arena *arena, const struct metadata *metadata, str text)
{
    AUTO_METADATA struct metadata *copy = NULL;
    json_t *updates = json_loadb(text.data, text.size, JSON_ALLOW_NUL, NULL);
    if (updates == NULL) {
        return;
    }
    err copied = metadata_copy(metadata, &copy, NULL);
    assert(copied == OK);
    err checked = metadata_check(metadata, updates, NULL);
    assert(checked == OK || checked == CONFLICT || checked == INVALID);
    (void)metadata_has_applied(metadata, updates);
    str before = {NULL, 0};
    str after = {NULL, 0};
    err printed = metadata_print(arena, metadata, &before, NULL);
    if (metadata_apply(copy, updates, 1790000000000000, STR("m"), NULL) == OK) {
        str *gone = NULL;
        size_t count = 0;
        assert(metadata_last_updated(copy) >= metadata_last_updated(metadata));
        err trimmed = metadata_trimmed(arena, metadata, copy, &gone, &count, NULL);
        assert(trimmed == OK);
        look_at(arena, copy);
        check_again(arena, copy);
    }
    /* The copy shares items with the original, which stays as it was. */
    if (printed == OK && metadata_print(arena, metadata, &after, NULL) == OK) {
        assert(str_equal(before, after));
    }
    json_decref(updates);
}

static void try_request(struct arena *arena, str text)
{
    struct seam seam = {.now = fixed_now, .random = fixed_random};
    AUTO_METADATA struct metadata *metadata = NULL;
    json_t *request = json_loadb(text.data, text.size, JSON_ALLOW_NUL, NULL);
    if (request != NULL &&
        metadata_create(request, STR("file:///w/t"), &seam, &metadata, NULL) == OK) {
        look_at(arena, metadata);
        check_again(arena, metadata);
    }
    json_decref(request);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size == 0 || size > INPUT_MAX) {
        return 0;
    }
    AUTO_ARENA struct arena *arena = arena_create(64 * MIB);
    AUTO_METADATA struct metadata *metadata = NULL;
    str rest = {(const char *)data, size};
    str document = {NULL, 0};
    str updates = {NULL, 0};
    (void)str_next(&rest, '\n', &document);
    (void)str_next(&rest, '\n', &updates);
    if (metadata_parse(document, &metadata, NULL) == OK) {
        look_at(arena, metadata);
        check_again(arena, metadata);
        if (updates.data != NULL) {
            try_updates(arena, metadata, updates);
        }
    }
    if (rest.data != NULL) {
        try_request(arena, rest);
    }
    return 0;
}
