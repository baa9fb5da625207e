/* table_case: makes a table in a directory, step by step, and prints its last metadata file's
 * path.
 *
 *     table_case DIRECTORY VERSION STEPS [PARTITION...]
 *
 * STEPS is a word a step: `append` adds ten rows (one file for each partition), `retry` does the
 * same but loses its first try to a fence, `fence` commits nothing, `upgrade` goes to version 3,
 * `respec` partitions by the year of the day from now on. Row n has id n, ts = (n - 12) *
 * 2700000000001 microseconds, `day é 1%` its day, name "row n"; ts and the day are null where n
 * % 7 = 3. Nothing is random but uuids and snapshot ids. */
#include "base/buf.h"
#include "base/time.h"
#include "io/file.h"
#include "table/commit.h"
#include "table/write.h"

#include <stdio.h>
#include <stdlib.h>

enum { ROWS = 10, GROUPS_MAX = ROWS, PARTITIONS_MAX = 8 };

struct maker {
    struct arena *arena;
    const struct seam *seam;
    struct location item;
    struct location_set locations;
    struct table table;
    i64 next_row;
    i32 version_number;
};

/* Rows of one partition of one append. */
struct group {
    str path;
    struct partition_value *tuple;
    struct column *columns;
    buf file;
};

static void must(err result, const struct error *error)
{
    if (result != OK) {
        fprintf(stderr, "table_case: %s: %s\n", err_text(result), error->message);
        exit(2);
    }
}

static void check(bool ok)
{
    if (!ok) {
        fprintf(stderr, "table_case: out of memory\n");
        exit(2);
    }
}

static const char SCHEMA[] =
    "struct<id: long required, ts: timestamptz, \"day é 1%\": date, name: string>";

static json_t *create_request(struct maker *maker, const char *version, char **partitions,
                              int partition_count)
{
    struct schema schema = {0};
    struct error error = {0};
    i32 last_id = 0;
    must(schema_parse_type(maker->arena, str_from(SCHEMA), &schema.root, NULL, &error), &error);
    schema_assign_ids(&schema.root, &last_id);
    json_t *fields = json_array();
    for (int i = 0; i < partition_count; i++) {
        json_t *field = NULL;
        must(partition_parse_text(str_from(partitions[i]), &schema.root, 1000 + i, &field, &error),
             &error);
        json_array_append_new(fields, field);
    }
    return json_pack("{s:o,s:{s:i,s:o},s:{s:s}}", "schema", schema_to_json(&schema),
                     "partition-spec", "spec-id", 0, "fields", fields, "properties",
                     "format-version", version);
}

static void write_metadata(struct maker *maker)
{
    struct error error = {0};
    str bytes = {NULL, 0};
    char uuid[ID_UUID_SIZE];
    str location = metadata_location(maker->table.metadata);
    str name = id_uuid_format(id_uuid_make(maker->seam), uuid);
    maker->table.metadata_location = str_format(
        maker->arena, "%.*s/metadata/%05d-%.*s.metadata.json", STR_ARG(location),
        maker->version_number++, STR_ARG(name));
    must(metadata_print(maker->arena, maker->table.metadata, &bytes, &error), &error);
    must(location_put(&maker->locations, maker->arena, maker->table.metadata_location, &bytes, 1,
                      &error),
         &error);
}

static void apply(struct maker *maker, const json_t *requirements, const json_t *updates)
{
    struct error error = {0};
    must(metadata_check(maker->table.metadata, requirements, &error), &error);
    must(metadata_apply(maker->table.metadata, updates, seam_now(maker->seam),
                        maker->table.metadata_location, &error),
         &error);
    write_metadata(maker);
}

static void land(struct maker *maker, const json_t *request)
{
    apply(maker, json_object_get(request, "requirements"), json_object_get(request, "updates"));
}

/* ---- rows and files ---- */

static struct group *group_of(struct maker *maker, struct group *groups, size_t *count,
                              const struct schema *schema, str path,
                              const struct partition_value *tuple, size_t fields)
{
    for (size_t i = 0; i < *count; i++) {
        if (str_equal(groups[i].path, path)) {
            return &groups[i];
        }
    }
    check(*count < GROUPS_MAX);
    struct group *group = &groups[(*count)++];
    group->path = path;
    group->tuple = arena_array(maker->arena, fields, sizeof(*tuple));
    group->columns = arena_array(maker->arena, schema->root.field_count, sizeof(struct column));
    group->file = buf_create(maker->arena, 4 * KIB, 16 * MIB);
    check(group->tuple != NULL && group->columns != NULL);
    memcpy(group->tuple, tuple, fields * sizeof(*tuple));
    for (size_t i = 0; i < schema->root.field_count; i++) {
        check(column_init(&group->columns[i], maker->arena, &schema->root.fields[i]));
    }
    return group;
}

static void append_row(struct maker *maker, struct column *columns, i64 n)
{
    i64 ts = (n - 12) * 2700000000001;
    i64 days = ts / TIME_DAY_US - (ts % TIME_DAY_US < 0 ? 1 : 0);
    i32 d = (i32)days;
    bool is_null = n % 7 == 3;
    check(column_append_fixed(&columns[0], &n));
    check(is_null ? column_append_null(&columns[1]) : column_append_fixed(&columns[1], &ts));
    check(is_null ? column_append_null(&columns[2]) : column_append_fixed(&columns[2], &d));
    check(column_append_bytes(&columns[3], str_format(maker->arena, "row %lld", (long long)n)));
}

/* The partition tuple of the one row in `columns`. */
static void tuple_of(const struct partition_spec *spec, const struct column *columns,
                     struct partition_value *tuple)
{
    for (size_t i = 0; i < spec->count; i++) {
        const struct column *column = &columns[spec->fields[i].source_id - 1];
        tuple[i] = partition_apply(&spec->fields[i], column, 0);
    }
}

static err take_bytes(void *context, str bytes, struct error *error)
{
    buf *out = context;
    buf_append(out, bytes);
    return buf_ok(out) ? OK : error_memory(error);
}

static void write_file(struct maker *maker, const struct schema *schema, struct group *group,
                       struct data_file *out_file)
{
    struct error error = {0};
    struct parquet_writer *writer = NULL;
    struct parquet_options options = parquet_options_default();
    json_t *document = schema_to_json(schema);
    char *schema_text = json_dumps(document, JSON_COMPACT);
    must(parquet_open(maker->arena, schema->root.fields, schema->root.field_count, &options,
                      str_from(schema_text), take_bytes, &group->file, &writer, &error),
         &error);
    must(parquet_row_group(writer, group->columns, &error), &error);
    must(parquet_finish(writer, &out_file->stats, &error), &error);
    json_decref(document);
    free(schema_text);
    str bytes = buf_str(&group->file);
    must(location_put(&maker->locations, maker->arena, out_file->path, &bytes, 1, &error), &error);
}

static size_t group_rows(struct maker *maker, const struct schema *schema,
                         const struct partition_spec *spec, struct group *groups)
{
    size_t count = 0;
    for (i64 n = maker->next_row; n < maker->next_row + ROWS; n++) {
        struct column one[4];
        struct partition_value tuple[PARTITIONS_MAX];
        check(schema->root.field_count == ARRAY_COUNT(one) && spec->count <= PARTITIONS_MAX);
        for (size_t i = 0; i < ARRAY_COUNT(one); i++) {
            check(column_init(&one[i], maker->arena, &schema->root.fields[i]));
        }
        append_row(maker, one, n);
        tuple_of(spec, one, tuple);
        str path = partition_path(maker->arena, spec, tuple);
        struct group *group = group_of(maker, groups, &count, schema, path, tuple, spec->count);
        append_row(maker, group->columns, n);
    }
    maker->next_row += ROWS;
    return count;
}

static struct append append_rows(struct maker *maker)
{
    struct schema schema = {0};
    struct partition_spec spec = {0};
    struct error error = {0};
    struct append append = commit_begin(maker->seam);
    struct group *groups = arena_array(maker->arena, GROUPS_MAX, sizeof(*groups));
    append.files = arena_array(maker->arena, GROUPS_MAX, sizeof(*append.files));
    check(groups != NULL && append.files != NULL);
    must(metadata_schema(maker->arena, maker->table.metadata, &schema, &error), &error);
    must(metadata_spec(maker->arena, maker->table.metadata, &spec, &error), &error);
    append.file_count = group_rows(maker, &schema, &spec, groups);
    str folder = write_folder(maker->arena, maker->table.metadata, "write.data.path", "data");
    for (size_t i = 0; i < append.file_count; i++) {
        append.files[i] = (struct data_file){
            .path = str_format(maker->arena, "%.*s/%.*s%s%lld-%zu.parquet", STR_ARG(folder),
                               STR_ARG(groups[i].path), groups[i].path.size > 0 ? "/" : "",
                               (long long)append.snapshot_id, i),
            .spec_id = spec.id,
            .partition = groups[i].tuple};
        write_file(maker, &schema, &groups[i], &append.files[i]);
    }
    return append;
}

/* ---- steps ---- */

static void commit(struct maker *maker, struct append *append, bool loses_first)
{
    struct error error = {0};
    json_t *request = NULL;
    must(commit_append(maker->arena, &maker->locations, &maker->table, maker->seam, append,
                       &request, &error),
         &error);
    if (loses_first) {
        struct append fence = commit_begin(maker->seam);
        commit(maker, &fence, false);
        json_decref(request);
        request = NULL;
        must(commit_append(maker->arena, &maker->locations, &maker->table, maker->seam, append,
                           &request, &error),
             &error);
    }
    land(maker, request);
    json_decref(request);
}

static void update(struct maker *maker, const char *updates)
{
    json_t *list = json_loads(updates, 0, NULL);
    check(list != NULL);
    apply(maker, NULL, list);
    json_decref(list);
}

static void run_step(struct maker *maker, str step)
{
    if (str_equal(step, STR("append")) || str_equal(step, STR("retry"))) {
        struct append append = append_rows(maker);
        commit(maker, &append, str_equal(step, STR("retry")));
    } else if (str_equal(step, STR("fence"))) {
        struct append fence = commit_begin(maker->seam);
        commit(maker, &fence, false);
    } else if (str_equal(step, STR("upgrade"))) {
        update(maker, "[{\"action\":\"upgrade-format-version\",\"format-version\":3}]");
    } else if (str_equal(step, STR("respec"))) {
        update(maker, "[{\"action\":\"add-spec\",\"spec\":{\"fields\":[{\"source-id\":3,"
                      "\"name\":\"d_year\",\"transform\":\"year\"}]}},"
                      "{\"action\":\"set-default-spec\",\"spec-id\":-1}]");
    } else {
        fprintf(stderr, "table_case: no step %.*s\n", STR_ARG(step));
        exit(2);
    }
}

static void open_maker(struct maker *maker, const char *directory)
{
    struct error error = {0};
    str path = {NULL, 0};
    must(file_absolute(maker->arena, str_from(directory), &path, &error), &error);
    must(store_open_dir(maker->arena, path, &maker->item.store, &error), &error);
    maker->item.prefix = location_from_path(maker->arena, path);
    maker->locations = (struct location_set){&maker->item, 1};
}

int main(int count, char **arguments)
{
    if (count < 4 || count - 4 > PARTITIONS_MAX) {
        fprintf(stderr, "usage: table_case DIRECTORY VERSION STEPS [PARTITION...]\n");
        return 2;
    }
    AUTO_ARENA struct arena *arena = arena_create(256 * MIB);
    struct maker maker = {.arena = arena, .seam = seam_system()};
    struct error error = {0};
    open_maker(&maker, arguments[1]);
    json_t *request = create_request(&maker, arguments[2], arguments + 4, count - 4);
    str location = str_format(arena, "%.*s/t", STR_ARG(maker.item.prefix));
    must(metadata_create(request, location, maker.seam, &maker.table.metadata, &error), &error);
    json_decref(request);
    write_metadata(&maker);
    str steps = str_from(arguments[3]);
    str step = {NULL, 0};
    while (str_next(&steps, ' ', &step)) {
        if (step.size > 0) {
            run_step(&maker, step);
        }
    }
    printf("%.*s\n", STR_ARG(maker.table.metadata_location));
    table_close(&maker.table);
    store_close(&maker.item.store);
    return 0;
}
