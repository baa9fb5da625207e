#include "table/write.h"

#include "table_fixture.h"

static const char COLUMNS[] =
    "{'type':'struct','schema-id':0,'fields':["
    "{'id':1,'name':'a','required':false,'type':'long'},"
    "{'id':2,'name':'b','required':false,'type':{'type':'struct','fields':["
    "{'id':5,'name':'c','required':false,'type':'string'},"
    "{'id':6,'name':'d','required':false,'type':'string'}]}},"
    "{'id':3,'name':'e','required':false,'type':{'type':'list','element-id':7,"
    "'element-required':false,'element':'string'}},"
    "{'id':4,'name':'x.y','required':false,'type':'string'}]}";

/* A table with these properties, `'key':'value',…`. */
static struct metadata *table_with(struct arena *arena, const char *properties)
{
    str text = str_format(
        arena,
        "{'format-version':2,'table-uuid':'0c1f9f7e-1c9d-4b0e-8a0e-9f6f3a1d2b3c',"
        "'location':'file:///w/ns/t','last-sequence-number':0,'last-updated-ms':1700000000123,"
        "'last-column-id':7,'current-schema-id':0,'schemas':[%s],'default-spec-id':0,"
        "'partition-specs':[{'spec-id':0,'fields':[]}],'last-partition-id':999,"
        "'default-sort-order-id':0,'sort-orders':[{'order-id':0,'fields':[]}],"
        "'properties':{%s},'snapshots':[]}",
        COLUMNS, properties);
    AUTO_JSON json_t *document = fixture_json(text.data);
    struct metadata *metadata = NULL;
    assert_int_equal(metadata_from_json(document, &metadata, NULL), OK);
    return metadata;
}

static struct parquet_options options_with(struct arena *arena, const char *properties)
{
    AUTO_METADATA struct metadata *metadata = table_with(arena, properties);
    struct schema schema = {0};
    struct parquet_options options = {0};
    assert_int_equal(metadata_schema(arena, metadata, &schema, NULL), OK);
    assert_int_equal(write_parquet_options(arena, metadata, &schema, &options, NULL), OK);
    assert_int_equal(options.column_count, 5);
    static const i32 ids[] = {1, 5, 6, 7, 4};
    for (size_t i = 0; i < ARRAY_COUNT(ids); i++) {
        assert_int_equal(options.columns[i].field_id, ids[i]);
    }
    return options;
}

static void nothing_said_is_the_default(void **state)
{
    (void)state;
    AUTO_ARENA struct arena *arena = arena_create(4 * MIB);
    struct parquet_options options = options_with(arena, "");
    const struct parquet_options wanted = parquet_options_default();
    assert_int_equal(options.codec, COMPRESS_ZSTD);
    assert_int_equal(options.compress_level, wanted.compress_level);
    assert_int_equal(options.row_group_bytes_max, wanted.row_group_bytes_max);
    assert_int_equal(options.page_rows_max, 20000);
    for (size_t i = 0; i < options.column_count; i++) {
        assert_int_equal(options.columns[i].metrics, PARQUET_METRICS_BOUNDS);
        assert_int_equal(options.columns[i].bound_units_max, 16);
        assert_false(options.columns[i].bloom);
    }
}

struct codec_case {
    const char *properties;
    enum compress_codec codec;
    i32 level;
};

static void codecs_and_levels(void **state)
{
    (void)state;
    static const struct codec_case cases[] = {
        {"'write.parquet.compression-codec':'UNCOMPRESSED'", COMPRESS_NONE, 1},
        {"'write.parquet.compression-codec':'snappy'", COMPRESS_SNAPPY, 1},
        {"'write.parquet.compression-codec':'gzip'", COMPRESS_GZIP, 6},
        {"'write.parquet.compression-codec':'gzip','write.parquet.compression-level':'0'",
         COMPRESS_GZIP, 0},
        {"'write.parquet.compression-codec':'gzip','write.parquet.compression-level':'22'",
         COMPRESS_GZIP, 9},
        {"'write.parquet.compression-codec':'zstd','write.parquet.compression-level':'7'",
         COMPRESS_ZSTD, 7},
        {"'write.parquet.compression-level':'0'", COMPRESS_ZSTD, 1},
        {"'write.parquet.compression-level':'99'", COMPRESS_ZSTD, 19},
        {"'write.parquet.compression-level':'x'", COMPRESS_ZSTD, 1},
        {"'write.parquet.compression-codec':'lz4'", COMPRESS_ZSTD, 1},
    };
    for (size_t i = 0; i < ARRAY_COUNT(cases); i++) {
        AUTO_ARENA struct arena *arena = arena_create(4 * MIB);
        struct parquet_options options = options_with(arena, cases[i].properties);
        assert_int_equal(options.codec, cases[i].codec);
        assert_int_equal(options.compress_level, cases[i].level);
    }
}

static void encodings_are_compatible_unless_compact_is_said(void **state)
{
    (void)state;
    static const struct {
        const char *properties;
        enum parquet_encodings encodings;
    } cases[] = {
        {"", PARQUET_ENCODINGS_COMPATIBLE},
        {"'write.parquet.encodings':'compatible'", PARQUET_ENCODINGS_COMPATIBLE},
        {"'write.parquet.encodings':'compact'", PARQUET_ENCODINGS_COMPACT},
        {"'write.parquet.encodings':'COMPACT'", PARQUET_ENCODINGS_COMPACT},
        {"'write.parquet.encodings':'compact '", PARQUET_ENCODINGS_COMPATIBLE},
        {"'write.parquet.encodings':'delta'", PARQUET_ENCODINGS_COMPATIBLE},
        {"'write.parquet.encodings':''", PARQUET_ENCODINGS_COMPATIBLE},
        {"'write.parquet.encoding':'compact'", PARQUET_ENCODINGS_COMPATIBLE},
    };
    for (size_t i = 0; i < ARRAY_COUNT(cases); i++) {
        AUTO_ARENA struct arena *arena = arena_create(4 * MIB);
        struct parquet_options options = options_with(arena, cases[i].properties);
        assert_int_equal(options.encodings, cases[i].encodings);
    }
}

static void sizes_are_kept_within_memory(void **state)
{
    (void)state;
    AUTO_ARENA struct arena *arena = arena_create(4 * MIB);
    struct parquet_options options = options_with(
        arena, "'write.parquet.row-group-size-bytes':'134217728',"
               "'write.parquet.page-size-bytes':'65536','write.parquet.page-row-limit':'100',"
               "'write.parquet.dict-size-bytes':'0','write.parquet.bloom-filter-max-bytes':'64'");
    assert_int_equal(options.row_group_bytes_max, 64 * MIB);
    assert_int_equal(options.page_bytes_max, 65536);
    assert_int_equal(options.page_rows_max, 100);
    assert_int_equal(options.dictionary_bytes_max, MIB);
    assert_int_equal(options.bloom_bytes_max, 64);
}

static void columns_have_metrics_by_their_full_names(void **state)
{
    (void)state;
    AUTO_ARENA struct arena *arena = arena_create(4 * MIB);
    struct parquet_options options = options_with(
        arena, "'write.metadata.metrics.default':'counts',"
               "'write.metadata.metrics.column.a':'NONE',"
               "'write.metadata.metrics.column.b.c':'truncate(4)',"
               "'write.metadata.metrics.column.b.d':'truncate(0)',"
               "'write.metadata.metrics.column.e.element':'none',"
               "'write.metadata.metrics.column.x.y':'full'");
    assert_int_equal(options.columns[0].metrics, PARQUET_METRICS_NONE);
    assert_int_equal(options.columns[1].metrics, PARQUET_METRICS_BOUNDS);
    assert_int_equal(options.columns[1].bound_units_max, 4);
    assert_int_equal(options.columns[2].metrics, PARQUET_METRICS_COUNTS);
    assert_int_equal(options.columns[3].metrics, PARQUET_METRICS_NONE);
    assert_int_equal(options.columns[4].metrics, PARQUET_METRICS_BOUNDS);
    assert_int_equal(options.columns[4].bound_units_max, PARQUET_BOUND_WHOLE);
}

static void without_a_default_so_many_columns_have_metrics_the_upper_ones_first(void **state)
{
    (void)state;
    AUTO_ARENA struct arena *arena = arena_create(4 * MIB);
    struct parquet_options options = options_with(
        arena, "'write.metadata.metrics.max-inferred-column-defaults':'2'");
    assert_int_equal(options.columns[0].metrics, PARQUET_METRICS_BOUNDS);
    assert_int_equal(options.columns[1].metrics, PARQUET_METRICS_NONE);
    assert_int_equal(options.columns[2].metrics, PARQUET_METRICS_NONE);
    assert_int_equal(options.columns[4].metrics, PARQUET_METRICS_BOUNDS);
    options = options_with(arena, "'write.metadata.metrics.max-inferred-column-defaults':'2',"
                                  "'write.metadata.metrics.default':'truncate(16)'");
    assert_int_equal(options.columns[1].metrics, PARQUET_METRICS_BOUNDS);
}

static void bloom_filters_are_on_request(void **state)
{
    (void)state;
    AUTO_ARENA struct arena *arena = arena_create(4 * MIB);
    struct parquet_options options = options_with(
        arena, "'write.parquet.bloom-filter-enabled.column.a':'true',"
               "'write.parquet.bloom-filter-enabled.column.b.d':'TRUE',"
               "'write.parquet.bloom-filter-enabled.column.x.y':'false',"
               "'write.parquet.bloom-filter-fpp.column.b.d':'0.2',"
               "'write.parquet.bloom-filter-fpp.column.a':'1.5'");
    assert_true(options.columns[0].bloom);
    assert_true(options.columns[0].bloom_fpp > 0.0099 && options.columns[0].bloom_fpp < 0.0101);
    assert_true(options.columns[2].bloom);
    assert_true(options.columns[2].bloom_fpp > 0.199 && options.columns[2].bloom_fpp < 0.201);
    assert_false(options.columns[1].bloom);
    assert_false(options.columns[4].bloom);
}

struct uri_case {
    const char *properties;
    const char *uri;
};

/* The hashes are those that PyIceberg's ObjectStoreLocationProvider makes of the same names. */
static void data_files_lie_where_the_table_says(void **state)
{
    (void)state;
    static const struct uri_case cases[] = {
        {"", "file:///w/ns/t/data/p=1/f.parquet"},
        {"'write.data.path':'file:///d/'", "file:///d/p=1/f.parquet"},
        {"'write.data.path':'/d/'", "file:///d/p=1/f.parquet"},
        {"'write.object-storage.enabled':'true'",
         "file:///w/ns/t/data/1110/1100/1010/10111110/p=1/f.parquet"},
        {"'write.object-storage.enabled':'true','write.data.path':'file:///d'",
         "file:///d/1110/1100/1010/10111110/ns/t/p=1/f.parquet"},
        {"'write.object-storage.enabled':'true','write.object-storage.partitioned-paths':'false'",
         "file:///w/ns/t/data/0111/1111/1110/11001100/f.parquet"},
    };
    for (size_t i = 0; i < ARRAY_COUNT(cases); i++) {
        AUTO_ARENA struct arena *arena = arena_create(4 * MIB);
        AUTO_METADATA struct metadata *metadata = table_with(arena, cases[i].properties);
        str uri = write_data_uri(arena, metadata, STR("p=1"), STR("f.parquet"));
        assert_string_equal(uri.data, cases[i].uri);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nothing_said_is_the_default),
        cmocka_unit_test(codecs_and_levels),
        cmocka_unit_test(encodings_are_compatible_unless_compact_is_said),
        cmocka_unit_test(sizes_are_kept_within_memory),
        cmocka_unit_test(columns_have_metrics_by_their_full_names),
        cmocka_unit_test(without_a_default_so_many_columns_have_metrics_the_upper_ones_first),
        cmocka_unit_test(bloom_filters_are_on_request),
        cmocka_unit_test(data_files_lie_where_the_table_says),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
