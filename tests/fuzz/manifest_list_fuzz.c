/* Any bytes as a manifest list: refused, or read; and what is read and complete is written and read
 * again the same. As a manifest they are counted or refused. */
#include "base/assert.h"
#include "fuzz.h"
#include "table/manifest.h"

enum { INPUT_MAX = 256 * KIB };

static void check_equal(const struct manifest_file *a, const struct manifest_file *b)
{
    assert(str_equal(a->path, b->path));
    assert(str_equal(a->partitions, b->partitions));
    assert(str_equal(a->key_metadata, b->key_metadata));
    assert(a->length == b->length);
    assert(a->spec_id == b->spec_id);
    assert(a->content == b->content);
    assert(a->sequence_number == b->sequence_number);
    assert(a->min_sequence_number == b->min_sequence_number);
    assert(a->added_snapshot_id == b->added_snapshot_id);
    assert(a->added_files == b->added_files);
    assert(a->existing_rows == b->existing_rows);
    assert(a->first_row_id == b->first_row_id);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size > INPUT_MAX) {
        return 0;
    }
    AUTO_ARENA struct arena *arena = arena_create(512 * MIB);
    struct manifest_list list = {0};
    struct manifest_list again = {0};
    struct manifest_file counted = {0};
    str bytes = {(const char *)data, size};
    str written = {NULL, 0};
    err count = manifest_count(arena, bytes, &counted, NULL);
    assert(count == OK || count == CORRUPT || count == LIMIT);
    if (manifest_list_read(arena, bytes, &list, NULL) != OK ||
        manifest_list_write(arena, 3, 1, false, 0, 1, 0, &list, &written, NULL) != OK) {
        return 0;
    }
    err result = manifest_list_read(arena, written, &again, NULL);
    assert(result == OK);
    assert(again.count == list.count);
    for (size_t i = 0; i < list.count; i++) {
        check_equal(&list.files[i], &again.files[i]);
    }
    return 0;
}
