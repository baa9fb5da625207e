/* decode_case: cases of the reference model through the product's own intake and decoder.
 *
 * decode_case < cases      one case a line, as `python3 -m reference.cli random` prints them (in
 * tests/) decode_case FILE
 *
 * Prints for each case the lines that the model's `run` prints, and then a line "--". The body
 * goes in in pieces whose size depends on the case's seed: pieces must not matter. */
#include "base/base64.h"
#include "base/decimal.h"
#include "base/id.h"
#include "sink/decode.h"
#include "sink/intake_body.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>

enum { ARENA_MAX = 256 * MIB, OUT_MAX = 128 * MIB };

struct sample {
    struct arena *arena;
    json_t *json;
    str body;
    i64 seed;
    struct reject_batch batch;
    struct schema schema;
    struct decode_settings settings;
};

static _Noreturn void fail(const char *what)
{
    fprintf(stderr, "decode_case: %s\n", what);
    exit(2);
}

/* ---- a case ---- */

static str sample_text(const struct sample *sample, const char *key)
{
    const json_t *value = json_object_get(sample->json, key);
    if (!json_is_string(value)) {
        fail(key);
    }
    return (str){json_string_value(value), json_string_length(value)};
}

static str sample_hex(const struct sample *sample, const char *key)
{
    str hex = sample_text(sample, key);
    buf out = buf_create(sample->arena, hex.size / 2, SIZE_MAX / 2);
    for (size_t i = 0; i + 1 < hex.size; i += 2) {
        char pair[3] = {hex.data[i], hex.data[i + 1], 0};
        buf_append_byte(&out, (u8)strtoul(pair, NULL, 16));
    }
    return buf_str(&out);
}

static void sample_settings(struct sample *sample)
{
    str unknown = sample_text(sample, "unknown_fields");
    if (str_equal(unknown, STR("ignore"))) {
        sample->settings.unknown = DECODE_UNKNOWN_IGNORE;
    } else if (str_starts(unknown, STR("capture:"))) {
        sample->settings.unknown = DECODE_UNKNOWN_CAPTURE;
        sample->settings.capture_column = str_slice(unknown, 8, unknown.size);
    } else if (!str_equal(unknown, STR("reject"))) {
        fail("unknown_fields");
    }
    const json_t *key = json_object_get(sample->json, "key");
    size_t count = json_array_size(key);
    str *columns = arena_array(sample->arena, count, sizeof(*columns));
    for (size_t i = 0; i < count; i++) {
        const json_t *name = json_array_get(key, i);
        columns[i] = (str){json_string_value(name), json_string_length(name)};
    }
    sample->settings.key_columns = columns;
    sample->settings.key_count = count;
}

static struct sample sample_read(struct arena *arena, json_t *json)
{
    struct sample sample = {.arena = arena, .json = json};
    sample.body = sample_hex(&sample, "body_hex");
    sample.seed = json_integer_value(json_object_get(json, "seed"));
    sample.batch = (struct reject_batch){
        .batch_id = sample_text(&sample, "batch_id"),
        .received_at = json_integer_value(json_object_get(json, "received_us")),
        .schema_id = -1,
        .mapping_version = -1};
    struct error error = {0};
    if (schema_from_json(arena, json_object_get(json, "schema"), &sample.schema, &error) != OK) {
        fail(error.message);
    }
    sample_settings(&sample);
    return sample;
}

/* ---- the intake's line ---- */

static void print_refusal(buf *out, const struct error *error)
{
    buf_append_format(out, "{\"error\":{\"code\":\"%s\",\"status\":%d",
                      error_code_text(error->code), error_code_http_status(error->code));
    if (error->fields[0] != 0) {
        buf_append_format(out, ",%s", error->fields);
    }
    buf_append(out, STR("}}\n"));
}

static void append_hash(buf *out, const char *name, struct sha256 hash)
{
    buf_append_format(out, ",\"%s\":\"", name);
    base64_hex(out, (str){(const char *)hash.bytes, sizeof(hash.bytes)});
    buf_append_byte(out, '"');
}

/* Elements are not kept by the intake: the splitter is asked once more, in one piece. */
static void append_elements(buf *out, const struct intake_body *intake, str body)
{
    struct json_array array;
    json_array_init(&array, intake->limits.rows_max);
    size_t at = 0;
    struct json_array_element element;
    size_t refused = 0;
    buf_append(out, STR(",\"elements\":["));
    for (i64 row = 0; json_array_feed(&array, body, &at, &element) == JSON_ARRAY_ELEMENT; row++) {
        const struct intake_refused *next = refused < intake->refused_count
                                                ? &intake->refused[refused]
                                                : NULL;
        buf_append_format(out, "%s[%llu,%llu,", row > 0 ? "," : "",
                          (unsigned long long)element.start, (unsigned long long)element.end);
        if (next != NULL && next->row == row) {
            enum reject_reason reason = next->kind != JSON_KIND_OBJECT ? REJECT_NOT_AN_OBJECT
                                        : next->bytes.size > 4 * MIB   ? REJECT_ROW_TOO_LARGE
                                        : next->depth > 64             ? REJECT_TOO_DEEP
                                                                       : REJECT_INVALID_UTF8;
            buf_append_json_string(out, reject_reason_text(reason));
            refused++;
        } else {
            buf_append(out, STR("null"));
        }
        buf_append_byte(out, ']');
    }
    buf_append_byte(out, ']');
}

static void append_rejects(buf *out, const struct sample *sample, const struct intake_body *intake)
{
    buf lines = buf_create(sample->arena, KIB, OUT_MAX);
    intake_body_print_rejects(intake, &sample->batch, &lines);
    str rest = buf_str(&lines);
    str line;
    const char *before = "";
    buf_append(out, STR(",\"rejects\":["));
    while (str_next(&rest, '\n', &line) && line.size > 0) {
        buf_append_format(out, "%s", before);
        buf_append(out, line);
        before = ",";
    }
    buf_append(out, STR("]}\n"));
}

static void print_intake(buf *out, const struct sample *sample, const struct intake_body *intake)
{
    str stored = intake_body_stored(intake);
    buf_append_format(out, "{\"accepted\":%lld,\"rejected\":%zu,\"reasons\":",
                      (long long)intake->accepted, intake->refused_count);
    intake_body_print_reasons(intake, out);
    if (intake->refused_count > INTAKE_REASONS_SHOWN) {
        buf_append(out, STR(",\"reasons_truncated\":true"));
    }
    buf_append_format(out, ",\"bytes\":%zu,\"state\":\"%s\"", stored.size,
                      intake->rows == 0      ? "empty"
                      : intake->accepted > 0 ? "pending"
                                             : "rejected");
    append_hash(out, "body_sha256", intake_body_hash(intake));
    append_hash(out, "stored_sha256", intake_body_stored_hash(intake));
    append_elements(out, intake, sample->body);
    buf_append(out, STR(",\"stored_hex\":\""));
    base64_hex(out, stored);
    buf_append_byte(out, '"');
    append_rejects(out, sample, intake);
}

/* False: the whole body was refused. */
static bool take_body(const struct sample *sample, struct intake_body *intake, buf *out)
{
    struct intake_limits limits = intake_limits_default();
    struct error error = {0};
    size_t step = sample->seed % 5 == 0 ? SIZE_MAX / 2 : (size_t)(sample->seed % 61) + 1;
    intake_body_begin(intake, sample->arena, &limits, -1);
    err result = OK;
    for (size_t at = 0; result == OK && at < sample->body.size; at += step) {
        result = intake_body_add(intake, str_slice(sample->body, at, at + step), &error);
    }
    if (result == OK) {
        result = intake_body_end(intake, &error);
    }
    if (result != OK) {
        print_refusal(out, &error);
        return false;
    }
    print_intake(out, sample, intake);
    return true;
}

/* ---- values in their canonical form ---- */

static void print_value(buf *out, const struct column *column, i64 index);

static void print_fields(buf *out, const struct column *columns, size_t count, i64 index)
{
    buf_append_byte(out, '{');
    for (size_t i = 0; i < count; i++) {
        buf_append_format(out, "%s", i > 0 ? "," : "");
        buf_append_json_string(out, columns[i].field->name);
        buf_append_byte(out, ':');
        print_value(out, &columns[i], index);
    }
    buf_append_byte(out, '}');
}

static void print_many(buf *out, const struct column *column, i64 index)
{
    buf_append_byte(out, '[');
    for (i64 i = column->offsets[index]; i < column->offsets[index + 1]; i++) {
        buf_append_format(out, "%s", i > column->offsets[index] ? "," : "");
        if (column->child_count == 1) {
            print_value(out, &column->children[0], i);
            continue;
        }
        buf_append_byte(out, '[');
        print_value(out, &column->children[0], i);
        buf_append_byte(out, ',');
        print_value(out, &column->children[1], i);
        buf_append_byte(out, ']');
    }
    buf_append_byte(out, ']');
}

static void print_bits(buf *out, const u8 *data, size_t size)
{
    for (size_t i = size; i > 0; i--) {
        buf_append_format(out, "%02x", data[i - 1]);
    }
}

static void print_leaf(buf *out, const struct type *type, const u8 *data, size_t size)
{
    char text[48];
    i128 decimal = 0;
    i64 wide = 0;
    i32 narrow = 0;
    struct uuid uuid;
    switch (type->kind) {
    case TYPE_BOOLEAN:
        buf_append(out, data[0] != 0 ? STR("true") : STR("false"));
        return;
    case TYPE_INT:
    case TYPE_DATE:
        memcpy(&narrow, data, sizeof(narrow));
        buf_append_i64(out, narrow);
        return;
    case TYPE_LONG:
    case TYPE_TIME:
    case TYPE_TIMESTAMP:
    case TYPE_TIMESTAMPTZ:
    case TYPE_TIMESTAMP_NS:
    case TYPE_TIMESTAMPTZ_NS:
        memcpy(&wide, data, sizeof(wide));
        buf_append_i64(out, wide);
        return;
    case TYPE_FLOAT:
    case TYPE_DOUBLE:
        print_bits(out, data, size);
        return;
    case TYPE_DECIMAL:
        memcpy(&decimal, data, sizeof(decimal));
        buf_append_bytes(out, text, decimal_format(decimal, type->scale, text));
        return;
    case TYPE_UUID:
        memcpy(uuid.bytes, data, sizeof(uuid.bytes));
        buf_append(out, id_uuid_format(uuid, text));
        return;
    case TYPE_FIXED:
    case TYPE_BINARY:
        base64_hex(out, (str){(const char *)data, size});
        return;
    case TYPE_STRING:
    case TYPE_UNKNOWN:
    case TYPE_STRUCT:
    case TYPE_LIST:
    case TYPE_MAP:
    case TYPE_VARIANT:
    case TYPE_GEOMETRY:
    case TYPE_GEOGRAPHY:
        break;
    }
    fail("a value of a type that has none");
}

static void print_scalar(buf *out, const struct column *column, i64 index)
{
    const struct type *type = &column->field->type;
    size_t width = column_width(type);
    size_t start = (size_t)index * width;
    size_t size = width;
    if (width == 0) {
        start = (size_t)column->offsets[index];
        size = (size_t)column->offsets[index + 1] - start;
    }
    if (type->kind == TYPE_STRING) {
        const char *data = (const char *)column->data;
        buf_append_json_string(out, size > 0 ? (str){data + start, size} : STR(""));
        return;
    }
    buf_append_byte(out, '"');
    print_leaf(out, type, size > 0 ? column->data + start : NULL, size);
    buf_append_byte(out, '"');
}

/* Its two parts, as hex. */
static void print_variant(buf *out, const struct column *column, i64 index)
{
    buf_append_byte(out, '[');
    print_scalar(out, &column->children[0], index);
    buf_append_byte(out, ',');
    print_scalar(out, &column->children[1], index);
    buf_append_byte(out, ']');
}

static void print_value(buf *out, const struct column *column, i64 index)
{
    if (column->valid[index] == 0) {
        buf_append(out, STR("null"));
    } else if (column->field->type.kind == TYPE_VARIANT) {
        print_variant(out, column, index);
    } else if (column->field->type.kind == TYPE_STRUCT) {
        print_fields(out, column->children, column->child_count, index);
    } else if (type_is_nested(&column->field->type)) {
        print_many(out, column, index);
    } else {
        print_scalar(out, column, index);
    }
}

/* ---- the rows' lines ---- */

static void print_reject(buf *out, const struct sample *sample, const struct decode_result *result,
                         i64 row, str line)
{
    struct reject_batch batch = sample->batch;
    batch.schema_id = 1;
    buf_append_format(out, "{\"row\":%lld,\"reject\":", (long long)row);
    reject_record(out, &batch,
                  &(struct reject_row){.row = row,
                                       .hits = result->hits,
                                       .hit_count = result->hit_count,
                                       .did_you_mean = result->did_you_mean,
                                       .data = line});
    buf_truncate(out, out->size - 1); /* the record's own LF */
    buf_append(out, STR("}\n"));
}

static void print_row(buf *out, const struct sample *sample, struct decoder *decoder, i64 row,
                      str line)
{
    struct decode_result result = {0};
    struct error error = {0};
    size_t count = 0;
    struct column *columns = decoder_columns(decoder, &count);
    i64 before = columns[0].count;
    if (decode_line(decoder, line, sample->batch.received_at, &result, &error) != OK) {
        fail(error.message);
    }
    for (size_t i = 0; i < count; i++) {
        if (columns[i].count != before + (result.verdict == DECODE_ROW)) {
            fail("columns out of step");
        }
    }
    switch (result.verdict) {
    case DECODE_ROW:
        buf_append_format(out, "{\"row\":%lld,\"ok\":", (long long)row);
        print_fields(out, columns, count, before);
        buf_append(out, STR("}\n"));
        return;
    case DECODE_REJECT:
        print_reject(out, sample, &result, row, line);
        return;
    case DECODE_EMPTY:
        buf_append_format(out, "{\"row\":%lld,\"empty\":true}\n", (long long)row);
        return;
    case DECODE_UNREADABLE:
        buf_append_format(out, "{\"row\":%lld,\"unreadable\":true}\n", (long long)row);
        return;
    }
}

static void print_rows(buf *out, const struct sample *sample, str stored)
{
    struct decoder *decoder = NULL;
    struct error error = {0};
    if (decoder_open(sample->arena, &sample->schema, &sample->settings, &decoder, &error) != OK) {
        fail(error.message);
    }
    i64 row = 0;
    for (size_t start = 0; start < stored.size; row++) {
        i64 found = str_find_byte(str_slice(stored, start, stored.size), '\n');
        size_t end = found < 0 ? stored.size : start + (size_t)found;
        print_row(out, sample, decoder, row, str_slice(stored, start, end));
        start = end + 1;
        if (end + 1 == stored.size) {
            /* An empty last line. */
            print_row(out, sample, decoder, row + 1, STR(""));
        }
    }
}

static void run(struct arena *arena, json_t *json)
{
    struct sample sample = sample_read(arena, json);
    buf out = buf_create(arena, 64 * KIB, OUT_MAX);
    struct intake_body intake;
    if (take_body(&sample, &intake, &out)) {
        print_rows(&out, &sample, intake_body_stored(&intake));
    }
    buf_append(&out, STR("--\n"));
    if (!buf_ok(&out)) {
        fail("out of memory");
    }
    fwrite(out.data, 1, out.size, stdout);
}

int main(int argc, char **argv)
{
    FILE *input = argc > 1 ? fopen(argv[1], "rb") : stdin;
    if (input == NULL) {
        fail("cannot open the file");
    }
    char *line = NULL;
    size_t room = 0;
    ssize_t size = 0;
    AUTO_ARENA struct arena *arena = arena_create(ARENA_MAX);
    while ((size = getline(&line, &room, input)) > 0) {
        json_error_t error;
        json_t *json = json_loadb(line, (size_t)size, JSON_ALLOW_NUL, &error);
        if (json == NULL) {
            fail(error.text);
        }
        run(arena, json);
        json_decref(json);
        arena_reset(arena);
    }
    free(line);
    if (input != stdin) {
        fclose(input);
    }
    return fflush(stdout) == 0 ? 0 : 2;
}
