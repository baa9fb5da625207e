/* commit_time DIR ROUNDS SNAPSHOTS IDS [SNAPSHOTS IDS]: how long commits take beside the disk.
 *
 * Makes one or two tables with so many snapshots, each naming so many batches, in an embedded
 * catalog in DIR, through the functions that a roll calls. Then, so many times: four durable files
 * (write, fsync, rename, fsync of the directory), and a commit of one small data file to each
 * table: base loaded, data file, manifest, list and metadata written, pointer moved. Prints one
 * line of JSON a round, microseconds, and at the end where the tables' metadata lies and how many
 * rows they must have. */
#include "format/parquet/parquet.h"
#include "io/db.h"
#include "sink/batch.h"
#include "sink/plan.h"
#include "table/catalog_local.h"
#include "table/commit.h"
#include "work.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

enum { ROWS = 8, TABLES_MAX = 2, FILE_BYTES_MAX = 64 * KIB, FLOOR_BYTES = 4096 };

static const str SINK = STR_INIT("snk_0123456789ab");

struct place {
    const char *directory;
    struct arena *arena;
    struct arena *scratch; /* of one commit */
    struct location location;
    struct location_set locations;
    struct db db;
    struct catalog catalog;
    struct schema schema;
    buf file; /* the data file that each commit adds again */
    struct parquet_file_stats stats;
    i64 files; /* names given */
};

struct history {
    struct table_name name;
    i64 ids;
    i64 commits;
    str ids_text;
};

static void must(err result, const struct error *error)
{
    if (result != OK) {
        work_fail(error->message);
    }
}

/* ---- the place ---- */

static err make_tables(struct db_tx *tx, void *context, struct error *error)
{
    (void)context;
    static const char *const TABLES[] = {
        "CREATE TABLE catalog_namespace (warehouse TEXT NOT NULL, name TEXT NOT NULL, "
        "properties TEXT NOT NULL, PRIMARY KEY (warehouse, name))",
        "CREATE TABLE catalog_table (warehouse TEXT NOT NULL, namespace TEXT NOT NULL, "
        "name TEXT NOT NULL, kind BIGINT NOT NULL, uuid TEXT NOT NULL, "
        "metadata_location TEXT NOT NULL, PRIMARY KEY (warehouse, namespace, name))",
        "CREATE TABLE catalog_receipt (warehouse TEXT NOT NULL, id TEXT NOT NULL, "
        "request BYTEA NOT NULL, status BIGINT NOT NULL, body TEXT NOT NULL, at BIGINT NOT NULL, "
        "PRIMARY KEY (warehouse, id))",
    };
    for (size_t i = 0; i < ARRAY_COUNT(TABLES); i++) {
        TRY(db_exec(tx, TABLES[i], NULL, 0, NULL, error));
    }
    return OK;
}

static err keep_bytes(void *context, str bytes, struct error *error)
{
    buf_append((buf *)context, bytes);
    return buf_ok((buf *)context) ? OK : error_memory(error);
}

static void make_file(struct place *place)
{
    struct workload workload;
    struct decode_settings settings = {.unknown = DECODE_UNKNOWN_REJECT};
    struct parquet_options options = parquet_options_default();
    struct decoder *decoder = NULL;
    struct parquet_writer *writer = NULL;
    struct error error = {0};
    size_t count = 0;
    workload_init(&workload, place->arena, STR("iot"));
    str lines = work_rows(&workload, place->arena, ROWS, "", "\n", "");
    work_schema(&workload, place->arena, &place->schema);
    place->file = buf_create(place->arena, FILE_BYTES_MAX, FILE_BYTES_MAX);
    must(decoder_open(place->arena, &place->schema, &settings, &decoder, &error), &error);
    work_decode(decoder, lines, ROWS, NULL);
    must(parquet_open(place->arena, place->schema.root.fields, place->schema.root.field_count,
                      &options, STR("{}"), keep_bytes, &place->file, &writer, &error),
         &error);
    must(parquet_row_group(writer, decoder_columns(decoder, &count), &error), &error);
    must(parquet_finish(writer, &place->stats, &error), &error);
}

static void place_open(struct place *place)
{
    struct error error = {0};
    str tables = str_format(place->arena, "%s/tables", place->directory);
    str database = str_format(place->arena, "%s/catalog.sqlite", place->directory);
    if (mkdir(tables.data, 0700) != 0) {
        work_fail("the directory is not new");
    }
    must(db_open_sqlite(place->arena, database, seam_system(), &place->db, &error), &error);
    must(db_transact(&place->db, make_tables, NULL, &error), &error);
    must(store_open_dir(place->arena, tables, &place->location.store, &error), &error);
    place->location.prefix = location_from_path(place->arena, tables);
    place->locations = (struct location_set){&place->location, 1};
    const struct catalog_local_options options = {.db = &place->db,
                                                  .seam = seam_system(),
                                                  .warehouse = STR("bench"),
                                                  .tables_uri = place->location.prefix,
                                                  .locations = &place->locations};
    must(catalog_local_open(place->arena, &options, &place->catalog, &error), &error);
    must(catalog_create_namespace(&place->catalog, STR("bench"), &error), &error);
    make_file(place);
}

static void create(struct place *place, struct table_name name)
{
    struct error error = {0};
    AUTO_TABLE struct table table = {0};
    json_t *request = json_pack("{s:s%, s:o, s:{s:s, s:s}}", "name", name.name.data, name.name.size,
                                "schema", schema_to_json(&place->schema), "properties",
                                "write.metadata.delete-after-commit.enabled", "true",
                                "write.metadata.previous-versions-max", "5");
    must(catalog_create(&place->catalog, place->arena, name, request, &table, &error), &error);
    json_decref(request);
}

/* ---- what is timed ---- */

static i64 four_files(const struct place *place)
{
    static const char block[FLOOR_BYTES] = {1};
    char temporary[512];
    char path[512];
    int folder = open(place->directory, O_RDONLY | O_DIRECTORY);
    snprintf(temporary, sizeof(temporary), "%s/floor.tmp", place->directory);
    i64 start = seam_monotonic_us(seam_system());
    for (int i = 0; i < 4; i++) {
        int file = open(temporary, O_WRONLY | O_CREAT | O_TRUNC, 0600);
        snprintf(path, sizeof(path), "%s/floor.%lld.%d", place->directory, (long long)start, i);
        if (file < 0 || write(file, block, sizeof(block)) != (ssize_t)sizeof(block) ||
            fsync(file) != 0 || close(file) != 0 || rename(temporary, path) != 0 ||
            fsync(folder) != 0) {
            work_fail("a durable file");
        }
    }
    i64 took = seam_monotonic_us(seam_system()) - start;
    close(folder);
    return took;
}

/* As a roll does (sink/roll_compute.c): the batches' ids, or when they are too long the name of the
 * object that has them. */
static struct commit_entry *summarise(struct arena *arena, const struct history *history,
                                      size_t *out_count)
{
    const struct commit_entry entries[] = {
        {STR("lakehousebox.sink.id"), SINK},
        {history->ids_text.data != NULL ? STR("lakehousebox.sink.batches")
                                        : STR("lakehousebox.sink.batches_ref"),
         history->ids_text.data != NULL
             ? history->ids_text
             : batch_plan_key(arena, SINK, history->commits, STR("0123456789abcdef"))},
        {STR("lakehousebox.sink.batches_count"),
         str_format(arena, "%lld", (long long)history->ids)},
        {STR("lakehousebox.sink.batches_sha256"),
         STR("9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08")},
        {STR("lakehousebox.sink.rows"), STR("8")},
        {STR("lakehousebox.sink.rejected_rows"), STR("0")},
        {STR("lakehousebox.sink.rolled_at"), time_format_in(arena, seam_now(seam_system()))},
        {STR("lakehousebox.sink.roll"),
         str_format(arena, "%lld-0123456789abcdef", (long long)history->commits)},
    };
    struct commit_entry *summary = arena_array(arena, ARRAY_COUNT(entries), sizeof(*summary));
    memcpy(summary, entries, sizeof(entries));
    *out_count = ARRAY_COUNT(entries);
    return summary;
}

static struct append make_append(struct place *place, const struct history *history,
                                 const struct table *base, struct data_file *file)
{
    struct arena *arena = place->scratch;
    struct append append = commit_begin(seam_system());
    *file = (struct data_file){.stats = place->stats};
    file->path = str_format(arena, "%.*s/data/%05lld.parquet",
                            STR_ARG(metadata_location(base->metadata)), (long long)place->files++);
    append.files = file;
    append.file_count = 1;
    append.summary = summarise(arena, history, &append.summary_count);
    append.properties = arena_array(arena, 1, sizeof(*append.properties));
    append.properties[0] = (struct commit_entry){
        STR(METADATA_ROLL_PROPERTY), str_format(arena, "%lld", (long long)history->commits)};
    append.property_count = 1;
    return append;
}

static i64 commit_one(struct place *place, struct history *history)
{
    struct error error = {0};
    struct table base = {0};
    AUTO_TABLE struct table after = {0};
    struct data_file file;
    json_t *request = NULL;
    struct catalog_staged staged = {0};
    arena_reset(place->scratch);
    struct store_group group = {.arena = place->scratch};
    i64 start = seam_monotonic_us(seam_system());
    must(catalog_load(&place->catalog, place->scratch, history->name, &base, &error), &error);
    struct append append = make_append(place, history, &base, &file);
    str bytes = buf_str(&place->file);
    append.group = &group;
    must(
        location_group_put(&place->locations, place->scratch, file.path, &group, &bytes, 1, &error),
        &error);
    must(commit_append(place->scratch, &place->locations, &base, seam_system(), &append, &request,
                       &error),
         &error);
    catalog_stage(&place->catalog, place->scratch, history->name, request, &group, &staged);
    must(store_group_end(&group, &error), &error);
    must(catalog_commit_staged(&place->catalog, place->scratch, history->name, request, &staged,
                               &after, &error),
         &error);
    i64 took = seam_monotonic_us(seam_system()) - start;
    json_decref(request);
    table_close(&base);
    history->commits++;
    return took;
}

/* ---- all ---- */

/* The ids of one roll's batches; data NULL: more than a summary takes. */
static str join_ids(struct arena *arena, i64 count)
{
    struct ledger_batch *batches = arena_array(arena, (size_t)count, sizeof(*batches));
    for (i64 i = 0; i < count; i++) {
        batches[i].batch_id = str_format(arena, "device-%08lld", (long long)i);
    }
    return plan_join_ids(arena, batches, (size_t)count);
}

static void make_history(struct place *place, struct history *history, size_t index, i64 snapshots)
{
    history->name = (struct table_name){STR("bench"), str_format(place->arena, "t%zu", index)};
    history->ids_text = join_ids(place->arena, history->ids);
    create(place, history->name);
    while (history->commits < snapshots) {
        commit_one(place, history);
    }
}

static void tell_end(struct place *place, const struct history *histories, size_t count)
{
    struct error error = {0};
    printf("{\"tables\":[");
    for (size_t i = 0; i < count; i++) {
        AUTO_TABLE struct table table = {0};
        must(catalog_load(&place->catalog, place->arena, histories[i].name, &table, &error),
             &error);
        printf("%s{\"metadata\":\"%.*s\",\"rows\":%lld}", i > 0 ? "," : "",
               STR_ARG(table.metadata_location), (long long)(histories[i].commits * ROWS));
    }
    printf("]}\n");
}

int main(int argc, char **argv)
{
    if (argc != 5 && argc != 7) {
        work_fail("usage: DIR ROUNDS SNAPSHOTS IDS [SNAPSHOTS IDS]");
    }
    AUTO_ARENA struct arena *arena = arena_create(WORK_ARENA_BYTES);
    AUTO_ARENA struct arena *scratch = arena_create(WORK_ARENA_BYTES);
    struct place place = {.directory = argv[1], .arena = arena, .scratch = scratch};
    struct history histories[TABLES_MAX] = {0};
    size_t count = (size_t)(argc - 3) / 2;
    place_open(&place);
    for (size_t i = 0; i < count; i++) {
        histories[i].ids = strtoll(argv[4 + 2 * i], NULL, 10);
        make_history(&place, &histories[i], i, strtoll(argv[3 + 2 * i], NULL, 10));
    }
    for (i64 round = strtoll(argv[2], NULL, 10); round > 0; round--) {
        i64 floor_us = four_files(&place);
        i64 first_us = commit_one(&place, &histories[0]);
        i64 second_us = count > 1 ? commit_one(&place, &histories[1]) : 0;
        printf("{\"floor\":%lld,\"first\":%lld,\"second\":%lld}\n", (long long)floor_us,
               (long long)first_us, (long long)second_us);
    }
    tell_end(&place, histories, count);
    catalog_local_close(&place.catalog);
    store_close(&place.location.store);
    db_close(&place.db);
    return 0;
}
