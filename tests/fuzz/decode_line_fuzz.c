/* The decoder on any line, over a schema with every type: a verdict, columns in step, the same
 * verdict again, and a reject record that is one line of JSON; and the same columns, byte for byte,
 * whichever way a row takes. The first byte of the input picks the settings. */
#include "base/assert.h"
#include "base/utf8.h"
#include "format/json.h"
#include "fuzz.h"
#include "sink/decode.h"

static const char *const column_types[][2] = {
    {"b", "boolean"},
    {"i", "int"},
    {"l", "long required"},
    {"f", "float"},
    {"d", "double"},
    {"m", "decimal(9,2)"},
    {"n", "decimal(38,38)"},
    {"D", "date"},
    {"t", "time"},
    {"T", "timestamp"},
    {"z", "timestamptz"},
    {"N", "timestamp_ns"},
    {"Z", "timestamptz_ns"},
    {"s", "string"},
    {"u", "uuid"},
    {"x", "fixed[4]"},
    {"y", "binary"},
    {"?", "unknown"},
    {"S", "struct<a: int required, b: struct<c: list<string required>>>"},
    {"L", "list<list<double> required>"},
    {"M", "map<string, struct<a: int>>"},
    {"P", "map<long, list<int> required>"},
    {"Q", "map<struct<a: int, b: double>, map<date, boolean>>"},
    {"V", "variant"},
    {"W", "map<variant, list<variant required>>"},
    {"rest", "string"},
    {"more", "variant"},
    {"__ingest_ts", "timestamptz"},
};

static struct schema make_schema(struct arena *arena)
{
    size_t count = ARRAY_COUNT(column_types);
    struct field *fields = arena_array(arena, count, sizeof(*fields));
    i32 last_id = 0;
    for (size_t i = 0; i < count; i++) {
        fields[i].name = str_from(column_types[i][0]);
        err parsed = schema_parse_type(arena, str_from(column_types[i][1]), &fields[i].type,
                                       &fields[i].required, NULL);
        assert(parsed == OK);
        if (i == 1) {
            fields[i].write_default = STR("7");
        }
    }
    struct schema schema = {.root = {.kind = TYPE_STRUCT, .fields = fields, .field_count = count}};
    schema_assign_ids(&schema.root, &last_id);
    return schema;
}

static void check_record(struct arena *arena, const struct decode_result *result, str line)
{
    struct reject_batch batch = {.batch_id = STR("fuzz"), .mapping_version = -1};
    buf out = buf_create(arena, 4 * KIB, 8 * MIB);
    reject_record(&out, &batch,
                  &(struct reject_row){.hits = result->hits,
                                       .hit_count = result->hit_count,
                                       .did_you_mean = result->did_you_mean,
                                       .data = line});
    assert(buf_ok(&out));
    str record = str_slice(buf_str(&out), 0, out.size - 1);
    assert(str_find_byte(record, '\n') < 0);
    assert(utf8_valid(record));
    struct json_reader reader;
    json_reader_init(&reader, record);
    enum json_token token = json_next(&reader);
    assert(token == JSON_TOKEN_OBJECT);
    while (token != JSON_TOKEN_END) {
        token = json_next(&reader);
        /* The element may be as deep as any value, and is one level deeper here. */
        assert(token != JSON_TOKEN_INVALID || reader.level == JSON_DEPTH_MAX);
        if (token == JSON_TOKEN_INVALID) {
            return;
        }
    }
}

static void check_in_step(struct decoder *decoder, i64 rows)
{
    size_t count = 0;
    const struct column *columns = decoder_columns(decoder, &count);
    for (size_t i = 0; i < count; i++) {
        assert(columns[i].count == rows);
    }
}

static void check_same(const struct column *a, const struct column *b)
{
    size_t values = (size_t)a->count;
    assert(a->count == b->count && a->null_count == b->null_count);
    assert(a->data_size == b->data_size && a->child_count == b->child_count);
    assert(values == 0 || memcmp(a->valid, b->valid, values) == 0);
    assert(a->data_size == 0 || memcmp(a->data, b->data, (size_t)a->data_size) == 0);
    assert(values == 0 || (a->offsets == NULL) == (b->offsets == NULL));
    if (values > 0 && a->offsets != NULL) {
        assert(memcmp(a->offsets, b->offsets, (values + 1) * sizeof(i64)) == 0);
    }
    for (size_t i = 0; i < a->child_count; i++) {
        check_same(&a->children[i], &b->children[i]);
    }
}

static struct decoder *open_decoder(struct arena *arena, const struct schema *schema,
                                    const struct decode_settings *settings)
{
    struct decoder *decoder = NULL;
    err opened = decoder_open(arena, schema, settings, &decoder, NULL);
    assert(opened == OK);
    return decoder;
}

/* The line once more, and in place among others, by a way that is named. */
static void check_way(struct arena *arena, struct decoder *expected, struct decoder *decoder,
                      str line, enum decode_verdict verdict)
{
    buf lines = buf_create(arena, 2 * line.size + 256, 2 * line.size + 256);
    buf_append(&lines, line);
    buf_append_byte(&lines, '\n');
    size_t second = lines.size;
    buf_append(&lines, line);
    for (size_t i = 0; i < 100; i++) {
        buf_append_byte(&lines, '\n');
    }
    decoder_reads(decoder, buf_str(&lines));
    bool is_one = line.size == 0 || memchr(line.data, '\n', line.size) == NULL;
    for (size_t i = 0; i < 2; i++) {
        struct decode_result result = {0};
        str rest = str_slice(buf_str(&lines), i == 0 ? 0 : second, lines.size);
        str found = str_slice(rest, 0, line.size);
        err decoded = is_one ? decode_next(decoder, &rest, 1, &found, &result, NULL)
                             : decode_line(decoder, found, 1, &result, NULL);
        assert(decoded == OK);
        assert(result.verdict == verdict);
        assert(found.size == line.size);
    }
    size_t count = 0;
    const struct column *columns = decoder_columns(decoder, &count);
    const struct column *wanted = decoder_columns(expected, &count);
    for (size_t i = 0; i < count; i++) {
        check_same(&wanted[i], &columns[i]);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size < 1) {
        return 0;
    }
    static const str keys[] = {STR_INIT("l"), STR_INIT("s")};
    AUTO_ARENA struct arena *arena = arena_create(256 * MIB);
    struct schema schema = make_schema(arena);
    struct decode_settings settings = {.unknown = (enum decode_unknown)(data[0] % 3),
                                       .capture_column = data[0] % 5 == 0 ? STR("more")
                                                                          : STR("rest"),
                                       .key_columns = keys,
                                       .key_count = data[0] % 2 == 0 ? 2 : 0};
    struct decoder *decoder = open_decoder(arena, &schema, &settings);
    (void)decoder_choose_way(decoder, DECODE_WAY_TREE);
    str line = {(const char *)data + 1, size - 1};
    struct decode_result first = {0};
    struct decode_result again = {0};
    err decoded = decode_line(decoder, line, 1, &first, NULL);
    assert(decoded == OK);
    i64 rows = first.verdict == DECODE_ROW ? 1 : 0;
    check_in_step(decoder, rows);
    assert((first.verdict == DECODE_REJECT) == (first.hit_count > 0));
    if (first.verdict == DECODE_REJECT) {
        check_record(arena, &first, line);
    }
    decoded = decode_line(decoder, line, 1, &again, NULL);
    assert(decoded == OK);
    assert(again.verdict == first.verdict);
    assert(again.hit_count == first.hit_count);
    check_in_step(decoder, 2 * rows);
    struct decoder *portable = open_decoder(arena, &schema, &settings);
    struct decoder *wide = open_decoder(arena, &schema, &settings);
    (void)decoder_choose_way(portable, DECODE_WAY_PORTABLE);
    (void)decoder_choose_way(wide, DECODE_WAY_WIDE);
    check_way(arena, decoder, portable, line, first.verdict);
    check_way(arena, decoder, wide, line, first.verdict);
    decoder_clear(decoder);
    check_in_step(decoder, 0);
    return 0;
}
