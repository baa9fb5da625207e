/* Any bytes as a manifest that is to be merged: it stays as it is, or all its live entries stand in
 * the new one, which is a sound manifest and says so of itself. */
#include "base/assert.h"
#include "fuzz.h"
#include "table/merge.h"

#include <jansson.h>

enum { INPUT_MAX = 256 * KIB, COPIES = 3 };

#define TABLE                                                                                      \
    "{\"name\":\"t\",\"schema\":{\"type\":\"struct\",\"schema-id\":0,\"fields\":["                 \
    "{\"id\":1,\"name\":\"x\",\"required\":false,\"type\":\"long\"}]},"                            \
    "\"properties\":{\"format-version\":\"3\",\"commit.manifest.min-count-to-merge\":\"2\"}}"

static struct metadata *make_table(void)
{
    struct metadata *metadata = NULL;
    json_t *request = json_loads(TABLE, 0, NULL);
    err made = metadata_create(request, STR("file:///w/t"), seam_system(), &metadata, NULL);
    assert(made == OK);
    json_decref(request);
    return metadata;
}

/* The same manifest under several names. */
static struct manifest_list make_parent(struct arena *arena, const struct location_set *locations,
                                        str bytes)
{
    struct manifest_list list = {arena_array(arena, COPIES, sizeof(struct manifest_file)), COPIES};
    assert(list.files != NULL);
    for (size_t i = 0; i < COPIES; i++) {
        list.files[i] = (struct manifest_file){
            .path = str_format(arena, "file:///w/t/metadata/%zu.avro", i),
            .length = (i64)bytes.size,
            .sequence_number = 7,
            .min_sequence_number = 1,
            .added_snapshot_id = 70,
            .first_row_id = 1000,
        };
        err put = location_put(locations, arena, list.files[i].path, &bytes, 1, NULL);
        assert(put == OK);
    }
    return list;
}

static struct manifest_file count(struct arena *arena, str bytes)
{
    struct manifest_file counted = {0};
    err result = manifest_count(arena, bytes, &counted, NULL);
    assert(result == OK);
    return counted;
}

static void check(struct arena *arena, const struct merge *merge, str source)
{
    struct manifest_file one = count(arena, source);
    i64 files = 0;
    i64 rows = 0;
    assert(merge->replaced == COPIES);
    assert(merge->list.count == merge->created);
    for (size_t i = 0; i < merge->created; i++) {
        str bytes = {NULL, 0};
        const struct manifest_file *told = &merge->list.files[i];
        err got = location_get(merge->locations, arena, told->path, &bytes, NULL);
        assert(got == OK);
        struct manifest_file found = count(arena, bytes);
        assert(found.added_files == 0);
        assert(found.deleted_files == 0);
        assert(found.existing_files == told->existing_files);
        assert(found.existing_rows == told->existing_rows);
        assert(told->length == (i64)bytes.size);
        files += found.existing_files;
        rows += found.existing_rows;
    }
    assert(files == COPIES * ((i64)one.added_files + one.existing_files));
    assert(rows == COPIES * (one.added_rows + one.existing_rows));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size > INPUT_MAX) {
        return 0;
    }
    AUTO_ARENA struct arena *arena = arena_create((size_t)512 * MIB);
    AUTO_METADATA struct metadata *metadata = make_table();
    struct location item = {.prefix = STR("file:///w")};
    struct location_set locations = {&item, 1};
    struct schema schema = {0};
    err opened = store_open_mem(arena, (size_t)64 * MIB, &item.store, NULL);
    assert(opened == OK);
    opened = metadata_schema(arena, metadata, &schema, NULL);
    assert(opened == OK);
    str bytes = {(const char *)data, size};
    struct manifest_list parent = make_parent(arena, &locations, bytes);
    struct merge merge = {.arena = arena,
                          .locations = &locations,
                          .metadata = metadata,
                          .schema = &schema,
                          .snapshot_id = 71,
                          .sequence_number = 8,
                          .prefix = STR("file:///w/t/metadata/m")};
    err packed = merge_pack(&merge, &parent, NULL);
    assert(packed == OK || packed == LIMIT);
    if (packed == OK && merge.replaced > 0) {
        check(arena, &merge, bytes);
    }
    store_close(&item.store);
    return 0;
}
