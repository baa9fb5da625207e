/* A table's documents are made, printed, read, checked and changed, and its manifests written and
 * read, with each allocation failing once: it is told as a limit, and leaves nothing behind. */
#include "table_fixture.h"

#include "table/manifest.h"

#define CREATE                                                                                     \
    "{'name':'t','schema':{'type':'struct','fields':["                                             \
    "{'id':1,'name':'x','required':true,'type':'long'},"                                           \
    "{'id':2,'name':'at','required':false,'type':'timestamptz'},"                                  \
    "{'id':3,'name':'tags','required':false,'type':{'type':'list','element-id':4,"                 \
    "'element':'string','element-required':false}}]},"                                             \
    "'partition-spec':{'spec-id':0,'fields':[{'source-id':2,'field-id':1000,'name':'day',"         \
    "'transform':'day'}]},'properties':{'a':'b'}}"
#define UPDATES                                                                                    \
    "[{'action':'set-properties','updates':{'c':'d'}},"                                            \
    "{'action':'remove-properties','removals':['a']},"                                             \
    "{'action':'add-schema','schema':{'type':'struct','fields':["                                  \
    "{'id':1,'name':'x','required':true,'type':'long'},"                                           \
    "{'id':2,'name':'at','required':false,'type':'timestamptz'},"                                  \
    "{'id':5,'name':'more','required':false,'type':'int'}]}},"                                     \
    "{'action':'set-current-schema','schema-id':-1},"                                              \
    "{'action':'add-snapshot','snapshot':{'snapshot-id':1,'sequence-number':1,"                    \
    "'timestamp-ms':1790000000001,'manifest-list':'list1','summary':{'operation':'append'},"       \
    "'schema-id':1}},"                                                                             \
    "{'action':'set-snapshot-ref','ref-name':'main','type':'branch','snapshot-id':1},"             \
    "{'action':'add-snapshot','snapshot':{'snapshot-id':2,'parent-snapshot-id':1,"                 \
    "'sequence-number':2,'timestamp-ms':1790000000002,'manifest-list':'list2',"                    \
    "'summary':{'operation':'append'},'schema-id':1}},"                                            \
    "{'action':'set-snapshot-ref','ref-name':'main','type':'branch','snapshot-id':2},"             \
    "{'action':'remove-snapshots','snapshot-ids':[1]}]"
#define REQUIREMENTS                                                                               \
    "[{'type':'assert-ref-snapshot-id','ref':'main','snapshot-id':null},"                          \
    "{'type':'assert-current-schema-id','current-schema-id':0}]"

/* What is sent; made once, so that only the tested code allocates. */
static json_t *create;
static json_t *updates;
static json_t *requirements;

/* ---- metadata ---- */

MUST_USE static err change(struct arena *arena, struct metadata *metadata, str *out_bytes,
                           struct error *error)
{
    AUTO_METADATA struct metadata *before = NULL;
    str *trimmed = NULL;
    size_t trimmed_count = 0;
    TRY(metadata_check(metadata, requirements, error));
    TRY(metadata_copy(metadata, &before, error));
    TRY(metadata_apply(metadata, updates, FIXTURE_NOW, STR("file:///w/t/metadata/m0.json"), error));
    TRY(metadata_trimmed(arena, before, metadata, &trimmed, &trimmed_count, error));
    return metadata_print(arena, metadata, out_bytes, error);
}

MUST_USE static err documents(struct arena *arena, str *out_bytes, struct error *error)
{
    u8 next = 0;
    struct seam seam = fixture_seam(&next);
    AUTO_METADATA struct metadata *made = NULL;
    AUTO_METADATA struct metadata *read = NULL;
    struct schema schema = {0};
    struct partition_spec spec = {0};
    str bytes = {0};
    TRY(metadata_create(create, STR("file:///w/t"), &seam, &made, error));
    TRY(metadata_print(arena, made, &bytes, error));
    TRY(metadata_parse(bytes, &read, error));
    TRY(metadata_schema(arena, read, &schema, error));
    TRY(metadata_spec(arena, read, &spec, error));
    assert_int_equal(schema.root.field_count, 3);
    assert_int_equal(spec.id, 0);
    return change(arena, read, out_bytes, error);
}

/* ---- manifests ---- */

static struct metadata *table; /* of the manifests */

MUST_USE static err manifests(struct arena *arena, str *out_bytes, struct error *error)
{
    static struct parquet_column_stats columns[] = {
        {1, 80, 10, 0, -1, STR_INIT("\1\0\0\0\0\0\0\0"), STR_INIT("\11\0\0\0\0\0\0\0")}};
    static const struct partition_value day = {.number = 20718};
    const struct data_file file = {.path = STR("file:///w/t/data/1.parquet"),
                                   .stats = {.rows = 10,
                                             .file_bytes = 1234,
                                             .columns = columns,
                                             .column_count = ARRAY_COUNT(columns)},
                                   .partition = &day};
    struct schema schema = {0};
    struct partition_spec spec = {0};
    struct manifest_file entry = {0};
    struct manifest_list read = {0};
    str bytes = {0};
    TRY(metadata_schema(arena, table, &schema, error));
    TRY(metadata_spec(arena, table, &spec, error));
    TRY(manifest_write(arena, table, &schema, &spec, 77, &file, 1,
                       STR("file:///w/t/metadata/m.avro"), &bytes, &entry, error));
    entry.sequence_number = 5;
    entry.min_sequence_number = 5;
    struct manifest_list list = {&entry, 1};
    TRY(manifest_list_write(arena, 2, 5, true, 4, 9, -1, &list, out_bytes, error));
    TRY(manifest_list_read(arena, *out_bytes, &read, error));
    assert_int_equal(read.count, 1);
    assert_int_equal(read.files[0].added_rows, 10);
    return OK;
}

/* ---- the loop ---- */

typedef err (*task)(struct arena *arena, str *out_bytes, struct error *error);

/* What comes out after a failure elsewhere is what comes out without one. */
static void every_allocation(task work)
{
    AUTO_ARENA struct arena *keep = arena_create(4 * MIB);
    str wanted = {0};
    struct error why = {0};
    if (work(keep, &wanted, &why) != OK) {
        fail_msg("%s", why.message);
    }
    bool met = true;
    for (i64 n = 1; met; n++) {
        AUTO_ARENA struct arena *arena = arena_create(4 * MIB);
        struct error told = {0};
        str bytes = {0};
        arena_fail_allocation_at(n);
        err result = work(arena, &bytes, &told);
        met = arena_growths() >= n;
        arena_fail_growth_at(0);
        if (result == OK) {
            assert_true(str_equal(bytes, wanted));
        } else {
            assert_true(met);
            assert_int_equal(result, LIMIT);
            assert_true(told.code != ERROR_NONE && told.message[0] != '\0');
        }
        assert_true(n < 10000);
    }
}

static void a_document_past_its_memory_is_a_limit(void **state)
{
    (void)state;
    every_allocation(documents);
}

static void a_manifest_past_its_memory_is_a_limit(void **state)
{
    (void)state;
    every_allocation(manifests);
}

static int set_up(void **state)
{
    (void)state;
    u8 next = 0;
    struct seam seam = fixture_seam(&next);
    create = fixture_json(CREATE);
    updates = fixture_json(UPDATES);
    requirements = fixture_json(REQUIREMENTS);
    return metadata_create(create, STR("file:///w/t"), &seam, &table, NULL) == OK ? 0 : -1;
}

static int tear_down(void **state)
{
    (void)state;
    json_decref(create);
    json_decref(updates);
    json_decref(requirements);
    metadata_close(table);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_document_past_its_memory_is_a_limit),
        cmocka_unit_test(a_manifest_past_its_memory_is_a_limit),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
