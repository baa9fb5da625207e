#include "table/merge.h"

#include "base/assert.h"
#include "format/avro.h"
#include "table/document.h"
#include "table/manifest_schema.h"
#include "table/manifest_writer.h"

enum {
    MERGE_COUNT = 100,            /* commit.manifest.min-count-to-merge */
    MERGE_TARGET_BYTES = 8 * MIB, /* commit.manifest.target-size-bytes */
    MERGE_TARGET_BYTES_MAX = 32 * MIB,
    MERGE_READ_BYTES_MAX = 96 * MIB, /* one manifest, and one of its entries in parts */
    MERGE_BIN_BYTES_MAX = 512 * MIB,
    MERGE_ENTRIES_BYTES_MAX = 96 * MIB, /* of one bin */
    COLUMN_BLOCK_SIZE = 105,            /* of version 1, not written any more */
    COLUMN_FIRST_ROW_ID = 142,
};

/* The manifests that become one. */
struct bin {
    struct arena *arena;
    struct manifest_writer writer;
    struct manifest_bound *bounds; /* a copy of the writer's, from before the last manifest */
    i64 length;                    /* of what was taken, as files */
    i64 min_sequence_number;
    size_t first; /* place of its first manifest in `taken` */
};

/* The work of one merge_pack. */
struct packing {
    struct merge *merge;
    const struct manifest_list *parent;
    struct arena *scratch;
    struct partition_spec spec;
    i64 target;
    size_t *taken; /* places in the parent, of all bins that were written and of the open one */
    size_t taken_count;
    struct manifest_file *made;
    bool *gone; /* of the parent's, by place */
    struct bin bin;
    const struct manifest_file *source; /* being read */
    i64 next_row_id;                    /* of the source's next file without one; -1: it has none */
};

/* ---- what is due ---- */

static bool is_enabled(const struct metadata *metadata)
{
    return !str_equal_ignore_case(metadata_property(metadata, "commit.manifest-merge.enabled"),
                                  STR("false"));
}

/* Two at least: one manifest is packed already. */
static i64 least_count(const struct metadata *metadata)
{
    return num_max_i64(
        metadata_property_i64(metadata, "commit.manifest.min-count-to-merge", MERGE_COUNT), 2);
}

bool merge_may_be_due(const struct metadata *metadata, const json_t *snapshot)
{
    const json_t *summary = json_object_get(snapshot, "summary");
    i64 created = 0;
    i64 kept = 0;
    i64 count = 0;
    if (!is_enabled(metadata)) {
        return false;
    }
    bool told = str_to_i64(document_text(summary, "manifests-created"), &created) &&
                str_to_i64(document_text(summary, "manifests-kept"), &kept);
    bool few = told && num_add_i64(created, kept, &count) && count < least_count(metadata);
    return !few;
}

/* Two small ones fit into one; a larger one is not written again and again. Of encrypted ones we
 * have no key. */
static bool is_small(const struct packing *packing, const struct manifest_file *file)
{
    return file->content == 0 && file->length <= packing->target / 2 &&
           file->key_metadata.data == NULL;
}

/* The first spec that has enough of them. */
static bool find_spec(const struct packing *packing, i32 *out_spec_id)
{
    const struct metadata *metadata = packing->merge->metadata;
    const json_t *specs = json_object_get(metadata_json(metadata), "partition-specs");
    for (size_t i = 0; i < json_array_size(specs); i++) {
        i64 id = document_i64_or(json_array_get(specs, i), "spec-id", -1);
        i64 count = 0;
        for (size_t j = 0; j < packing->parent->count; j++) {
            const struct manifest_file *file = &packing->parent->files[j];
            count += file->spec_id == id && is_small(packing, file) ? 1 : 0;
        }
        if (count >= least_count(metadata)) {
            *out_spec_id = (i32)id;
            return true;
        }
    }
    return false;
}

/* ---- one entry ---- */

MUST_USE static err refuse(const struct packing *packing, const char *why, struct error *error)
{
    return error_set(error, CORRUPT, ERROR_INTERNAL, "manifest %.*s %s",
                     STR_ARG(packing->source->path), why);
}

static bool is_there(const struct avro_value *value)
{
    return value != NULL && value->kind != AVRO_VALUE_NULL;
}

/* The number, or `otherwise` when it is null or not there. */
MUST_USE static err number_of(const struct packing *packing, const struct avro_value *record,
                              i32 id, str name, i64 otherwise, i64 *out_number, struct error *error)
{
    const struct avro_value *value = avro_field_of(record, id, name);
    if (is_there(value) && (value->kind != AVRO_VALUE_LONG || value->number < 0)) {
        return refuse(packing, "has an entry with a number that is none", error);
    }
    *out_number = is_there(value) ? value->number : otherwise;
    return OK;
}

static bool put_scalar(buf *out, const struct avro_value *value, const char *type)
{
    bool bytes = strcmp(type, "string") == 0 || strcmp(type, "bytes") == 0;
    if (value->kind != (bytes ? AVRO_VALUE_BYTES : AVRO_VALUE_LONG)) {
        return false;
    }
    if (bytes) {
        avro_put_bytes(out, value->bytes);
    } else {
        avro_put_long(out, value->number);
    }
    return true;
}

/* A list of numbers, or a map as a list of pairs. */
static bool put_items(buf *out, const struct avro_value *value,
                      const struct manifest_column *column)
{
    bool fits = value->kind == AVRO_VALUE_ARRAY;
    if (fits && value->count > 0) {
        avro_put_long(out, (i64)value->count);
    }
    for (size_t i = 0; fits && i < value->count; i++) {
        const struct avro_value *item = &value->items[i];
        if (column->kind == COLUMN_ARRAY) {
            fits = put_scalar(out, item, column->type);
        } else {
            fits = item->kind == AVRO_VALUE_RECORD && item->count == 2 &&
                   put_scalar(out, &item->items[0], "int") &&
                   put_scalar(out, &item->items[1], column->type);
        }
    }
    avro_put_long(out, 0);
    return fits;
}

MUST_USE static err put_partition(struct packing *packing, const struct avro_value *record,
                                  struct error *error)
{
    const struct partition_spec *spec = &packing->spec;
    struct partition_value *values = arena_array(packing->scratch, spec->count, sizeof(*values));
    size_t known = 0;
    size_t there = 0;
    if (values == NULL) {
        return error_memory(error);
    }
    for (size_t i = 0; i < spec->count; i++) {
        bool changed = false;
        const struct partition_field *field = &spec->fields[i];
        str name = manifest_avro_name(packing->scratch, field->name, &changed);
        const struct avro_value *value = avro_field_of(record, field->field_id, name);
        values[i].is_null = !is_there(value);
        if (!values[i].is_null && value->kind != AVRO_VALUE_LONG) {
            return refuse(packing, "has a partition of another type", error);
        }
        values[i].number = values[i].is_null ? 0 : value->number;
        known += values[i].is_null ? 0 : 1;
    }
    for (size_t i = 0; i < record->count; i++) {
        there += is_there(&record->items[i]) ? 1 : 0;
    }
    if (known != there) {
        return refuse(packing, "has a partition of another spec", error);
    }
    return manifest_put_partition(&packing->bin.writer, values, error);
}

/* A column of the data file. */
MUST_USE static err put_column(struct packing *packing, const struct manifest_column *column,
                               const struct avro_value *value, struct error *error)
{
    buf *out = &packing->bin.writer.entries;
    bool fits = true;
    if (!is_there(value)) {
        if (!column->optional && column->kind != COLUMN_PLAIN) {
            return refuse(packing, "has an entry without its partition", error);
        }
        avro_put_long(out, 0); /* null; or data, of a file from before there were deletes */
        return column->optional || strcmp(column->name, "content") == 0
                   ? OK
                   : refuse(packing, "has an entry without what each has", error);
    }
    if (column->optional) {
        avro_put_branch(out, 1);
    }
    switch (column->kind) {
    case COLUMN_PLAIN:
        fits = put_scalar(out, value, column->type);
        break;
    case COLUMN_MAP:
    case COLUMN_ARRAY:
        fits = put_items(out, value, column);
        break;
    case COLUMN_PARTITION:
        return value->kind == AVRO_VALUE_RECORD
                   ? put_partition(packing, value, error)
                   : refuse(packing, "has an entry without its partition", error);
    case COLUMN_SUMMARY:
        fits = false;
        break;
    }
    return fits ? OK : refuse(packing, "has an entry of other types", error);
}

/* All that the file's record says, with `row_id` (-1: none) as its first row's. Fails when that is
 * more than we can write. */
MUST_USE static err put_file(struct packing *packing, const struct avro_value *file, i64 row_id,
                             struct error *error)
{
    const struct avro_value row = {.kind = row_id >= 0 ? AVRO_VALUE_LONG : AVRO_VALUE_NULL,
                                   .number = row_id};
    i32 version = packing->bin.writer.format_version;
    size_t count = 0;
    size_t known = 0;
    size_t there = 0;
    const struct manifest_column *columns = manifest_file_columns(&count);
    for (size_t i = 0; i < count; i++) {
        const struct avro_value *value = avro_field_of(file, columns[i].id,
                                                       str_from(columns[i].name));
        if (columns[i].since > version) {
            continue;
        }
        known += is_there(value) ? 1 : 0;
        value = columns[i].id == COLUMN_FIRST_ROW_ID ? &row : value;
        TRY(put_column(packing, &columns[i], value, error));
    }
    for (size_t i = 0; i < file->count; i++) {
        bool old = file->fields[i].field_id == COLUMN_BLOCK_SIZE;
        there += is_there(&file->items[i]) && !old ? 1 : 0;
    }
    return known == there ? OK : refuse(packing, "has entries with more than we know", error);
}

/* The sequence number that an entry has or inherits. */
MUST_USE static err sequence_of(const struct packing *packing, const struct avro_value *entry,
                                i64 status, i32 id, str name, i64 *out_number, struct error *error)
{
    i64 inherited = packing->source->sequence_number;
    TRY(number_of(packing, entry, id, name, -1, out_number, error));
    if (*out_number < 0 && status != MANIFEST_ADDED && inherited != 0) {
        return refuse(packing, "has an old entry without its sequence number", error);
    }
    *out_number = *out_number < 0 ? inherited : *out_number;
    return OK;
}

/* The first row's id: the file's own, else the next from the manifest's on; deleted files take
 * none. */
MUST_USE static err row_id_of(struct packing *packing, const struct avro_value *file, i64 status,
                              i64 rows, i64 *out_row_id, struct error *error)
{
    i64 own = -1;
    TRY(number_of(packing, file, COLUMN_FIRST_ROW_ID, STR("first_row_id"), -1, &own, error));
    *out_row_id = packing->next_row_id < 0 ? -1 : own >= 0 ? own : packing->next_row_id;
    bool takes = packing->next_row_id >= 0 && own < 0 && status != MANIFEST_DELETED;
    if (takes && !num_add_i64(packing->next_row_id, rows, &packing->next_row_id)) {
        return refuse(packing, "has too many rows", error);
    }
    return OK;
}

MUST_USE static err put_live(struct packing *packing, const struct avro_value *entry,
                             const struct avro_value *file, i64 status, i64 row_id,
                             struct error *error)
{
    struct bin *bin = &packing->bin;
    i64 numbers[3] = {0};
    TRY(number_of(packing, entry, 1, STR("snapshot_id"), packing->source->added_snapshot_id,
                  &numbers[0], error));
    TRY(sequence_of(packing, entry, status, 3, STR("sequence_number"), &numbers[1], error));
    TRY(sequence_of(packing, entry, status, 4, STR("file_sequence_number"), &numbers[2], error));
    avro_put_long(&bin->writer.entries, MANIFEST_EXISTING);
    for (size_t i = 0; i < ARRAY_COUNT(numbers); i++) {
        avro_put_branch(&bin->writer.entries, 1);
        avro_put_long(&bin->writer.entries, numbers[i]);
    }
    bin->min_sequence_number = num_min_i64(bin->min_sequence_number, numbers[1]);
    return put_file(packing, file, row_id, error);
}

MUST_USE static err take_entry(void *context, const struct avro_value *entry, struct error *error)
{
    struct packing *packing = context;
    const struct avro_value *file = avro_field_of(entry, 2, STR("data_file"));
    i64 status = 0;
    i64 rows = 0;
    i64 content = 0;
    i64 row_id = 0;
    if (file == NULL || file->kind != AVRO_VALUE_RECORD) {
        return refuse(packing, "has an entry without its file", error);
    }
    TRY(number_of(packing, entry, 0, STR("status"), -1, &status, error));
    TRY(number_of(packing, file, 103, STR("record_count"), -1, &rows, error));
    TRY(number_of(packing, file, 134, STR("content"), 0, &content, error));
    if (status < MANIFEST_EXISTING || status > MANIFEST_DELETED || rows < 0 || content != 0) {
        return refuse(packing, "has an entry that is no data file's", error);
    }
    TRY(row_id_of(packing, file, status, rows, &row_id, error));
    if (status == MANIFEST_DELETED) {
        return OK;
    }
    TRY(put_live(packing, entry, file, status, row_id, error));
    return manifest_tally_add(&packing->bin.writer.tally, MANIFEST_EXISTING, rows, error);
}

/* ---- one manifest ---- */

MUST_USE static err read_source(struct packing *packing, struct error *error)
{
    str bytes = {NULL, 0};
    err got = location_get(packing->merge->locations, packing->scratch, packing->source->path,
                           &bytes, error);
    if (got == NOT_FOUND) {
        return refuse(packing, "is gone", error);
    }
    if (got != OK) {
        return got;
    }
    packing->next_row_id = packing->source->first_row_id;
    TRY(avro_each(packing->scratch, bytes, take_entry, packing, error));
    return packing->bin.writer.entries.size <= MERGE_ENTRIES_BYTES_MAX ? OK : error_memory(error);
}

/* Adds the live entries of the manifest to the bin, all of them or none. One that holds what we
 * cannot write is no failure: it stays as it is. */
MUST_USE static err take_manifest(struct packing *packing, size_t place, struct error *error)
{
    struct bin *bin = &packing->bin;
    struct manifest_tally tally = bin->writer.tally;
    size_t size = bin->writer.entries.size;
    i64 least = bin->min_sequence_number;
    size_t bounds_size = packing->spec.count * sizeof(*bin->bounds);
    struct error told = {0};
    if (bounds_size > 0) {
        memcpy(bin->bounds, bin->writer.bounds, bounds_size);
    }
    packing->source = &packing->parent->files[place];
    err read = read_source(packing, &told);
    arena_reset(packing->scratch);
    if (read == OK) {
        packing->taken[packing->taken_count++] = place;
        bin->length += packing->source->length;
        return OK;
    }
    if (read != CORRUPT && read != LIMIT && read != INVALID) {
        return error_set(error, read, told.code, "%s", told.message);
    }
    buf_truncate(&bin->writer.entries, size);
    bin->writer.tally = tally;
    bin->min_sequence_number = least;
    if (bounds_size > 0) {
        memcpy(bin->writer.bounds, bin->bounds, bounds_size);
    }
    return OK;
}

/* ---- one bin ---- */

MUST_USE static err open_bin(struct packing *packing, struct error *error)
{
    struct merge *merge = packing->merge;
    struct bin *bin = &packing->bin;
    arena_reset(bin->arena);
    *bin = (struct bin){
        .arena = bin->arena, .min_sequence_number = INT64_MAX, .first = packing->taken_count};
    bin->bounds = arena_array(bin->arena, packing->spec.count, sizeof(*bin->bounds));
    if (bin->bounds == NULL) {
        return error_memory(error);
    }
    return manifest_writer_open(bin->arena, merge->metadata, merge->schema, &packing->spec,
                                merge->snapshot_id, 64 * KIB, &bin->writer, error);
}

MUST_USE static err write_bin(struct packing *packing, struct error *error)
{
    struct merge *merge = packing->merge;
    struct bin *bin = &packing->bin;
    struct manifest_file file = {0};
    str bytes = {NULL, 0};
    str path = str_format(merge->arena, "%.*s%zu.avro", STR_ARG(merge->prefix), merge->created);
    if (path.data == NULL) {
        return error_memory(error);
    }
    TRY(manifest_writer_end(&bin->writer, path, &bytes, &file, error));
    TRY(location_group_put(merge->locations, bin->arena, path, merge->group, &bytes, 1, error));
    file.partitions = str_copy(merge->arena, file.partitions);
    if (file.partitions.data == NULL) {
        return error_memory(error);
    }
    file.sequence_number = merge->sequence_number;
    file.min_sequence_number = bin->min_sequence_number;
    packing->made[merge->created++] = file;
    merge->entries += file.existing_files;
    return OK;
}

/* One manifest alone stays as it is. Where no file is left there is nothing to write. */
MUST_USE static err close_bin(struct packing *packing, struct error *error)
{
    const struct bin *bin = &packing->bin;
    size_t count = packing->taken_count - bin->first;
    if (count < 2) {
        packing->taken_count = bin->first;
        return OK;
    }
    if (bin->writer.tally.files[MANIFEST_EXISTING] > 0) {
        TRY(write_bin(packing, error));
    }
    for (size_t i = bin->first; i < packing->taken_count; i++) {
        packing->gone[packing->taken[i]] = true;
    }
    packing->merge->replaced += count;
    return OK;
}

MUST_USE static err fill_bins(struct packing *packing, struct error *error)
{
    TRY(open_bin(packing, error));
    size_t looked = 0;
    for (size_t i = 0; i < packing->parent->count && looked < MERGE_MANIFESTS_MAX; i++) {
        const struct manifest_file *file = &packing->parent->files[i];
        if (file->spec_id != packing->spec.id || !is_small(packing, file)) {
            continue;
        }
        looked++;
        if (packing->bin.length + file->length > packing->target) {
            TRY(close_bin(packing, error));
            TRY(open_bin(packing, error));
        }
        TRY(take_manifest(packing, i, error));
    }
    return close_bin(packing, error);
}

/* ---- all ---- */

MUST_USE static err make_list(struct packing *packing, struct error *error)
{
    struct merge *merge = packing->merge;
    size_t count = merge->created + packing->parent->count - merge->replaced;
    struct manifest_file *files = arena_array(merge->arena, count, sizeof(*files));
    if (files == NULL) {
        return error_memory(error);
    }
    size_t at = merge->created;
    if (at > 0) {
        memcpy(files, packing->made, at * sizeof(*files));
    }
    for (size_t i = 0; i < packing->parent->count; i++) {
        if (!packing->gone[i]) {
            files[at++] = packing->parent->files[i];
        }
    }
    assert(at == count);
    merge->list = (struct manifest_list){files, count};
    return OK;
}

MUST_USE static err pack_spec(struct packing *packing, i32 spec_id, struct error *error)
{
    struct merge *merge = packing->merge;
    size_t count = packing->parent->count;
    TRY(metadata_spec_by_id(merge->arena, merge->metadata, spec_id, &packing->spec, error));
    packing->taken = arena_array(merge->arena, count, sizeof(*packing->taken));
    packing->made = arena_array(merge->arena, count, sizeof(*packing->made));
    packing->gone = arena_array(merge->arena, count, sizeof(*packing->gone));
    if (packing->taken == NULL || packing->made == NULL || packing->gone == NULL) {
        return error_memory(error);
    }
    TRY(fill_bins(packing, error));
    return make_list(packing, error);
}

err merge_pack(struct merge *merge, const struct manifest_list *parent, struct error *error)
{
    assert(merge->created == 0);
    assert(merge->replaced == 0);
    AUTO_ARENA struct arena *scratch = arena_create(MERGE_READ_BYTES_MAX);
    AUTO_ARENA struct arena *bin = arena_create(MERGE_BIN_BYTES_MAX);
    struct packing packing = {
        .merge = merge,
        .parent = parent,
        .scratch = scratch,
        .bin = {.arena = bin},
        .target = num_min_i64(metadata_property_i64(merge->metadata,
                                                    "commit.manifest.target-size-bytes",
                                                    MERGE_TARGET_BYTES),
                              MERGE_TARGET_BYTES_MAX),
    };
    i32 spec_id = 0;
    return find_spec(&packing, &spec_id) ? pack_spec(&packing, spec_id, error) : OK;
}
