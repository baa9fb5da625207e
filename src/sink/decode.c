#include "sink/decode.h"

#include "base/assert.h"
#include "base/utf8.h"
#include "format/json_scan.h"
#include "sink/decode/names.h"
#include "sink/decode/straight.h"
#include "sink/decode/values.h"

struct decoder {
    struct arena *arena;
    struct field root_field; /* the columns as one struct */
    struct decode_plan root;
    struct column *columns;
    i64 row_count;
    enum decode_unknown unknown;
    bool is_keyed;
    struct decode_tree tree;
    struct decode_hits hits;
    struct variant_builder variant;
    /* The straight way; NULL: none. */
    straight_function *straight_row;
    straight_members_function *straight_members;
    struct straight straight;
    u32 ingest; /* the index of the column, or DECODE_NONE */
    u32 capture;
    u32 declined;      /* rows in a row that were not taken straight */
    str readable;      /* where lines are read in place, if there is */
    const char *limit; /* a line feed at their end or behind it; NULL: nowhere */
    buf copy;          /* of others */
};

enum { DECLINED_MAX = 32 };

/* ---- open ---- */

static err decoder_set_ingest(struct decoder *decoder, struct error *error)
{
    const struct type *type = &decoder->root_field.type;
    const struct field *field = type_field(type, STR(DECODE_INGEST_COLUMN));
    if (field == NULL) {
        return OK;
    }
    if (field->type.kind != TYPE_TIMESTAMPTZ) {
        return error_set(error, INVALID, ERROR_RESERVED_COLUMN_CONFLICT,
                         "the column %s is no timestamptz", DECODE_INGEST_COLUMN);
    }
    decoder->ingest = (u32)(field - type->fields);
    decoder->root.children[decoder->ingest].role = DECODE_INGEST;
    return OK;
}

static err decoder_set_capture(struct decoder *decoder, const struct decode_settings *settings,
                               struct error *error)
{
    if (settings->unknown != DECODE_UNKNOWN_CAPTURE) {
        return OK;
    }
    const struct type *type = &decoder->root_field.type;
    const struct field *field = type_field(type, settings->capture_column);
    if (field == NULL || !decode_may_capture(&field->type)) {
        return error_set(error, INVALID, ERROR_INVALID_REQUEST,
                         "unknown_fields: %.*s is no string or variant column",
                         STR_ARG(settings->capture_column));
    }
    decoder->capture = (u32)(field - type->fields);
    decoder->root.children[decoder->capture].role = DECODE_CAPTURE;
    return OK;
}

static err decoder_set_keys(struct decoder *decoder, const struct decode_settings *settings,
                            struct error *error)
{
    const struct type *type = &decoder->root_field.type;
    decoder->is_keyed = settings->key_count > 0;
    for (size_t i = 0; i < settings->key_count; i++) {
        const struct field *field = type_field(type, settings->key_columns[i]);
        struct decode_plan *plan = field != NULL ? &decoder->root.children[field - type->fields]
                                                 : NULL;
        if (plan == NULL || plan->role == DECODE_INGEST || plan->role == DECODE_CAPTURE) {
            return error_set(error, INVALID, ERROR_KEY_COLUMN_UNSUPPORTED,
                             "%.*s cannot be a key column", STR_ARG(settings->key_columns[i]));
        }
        plan->role = DECODE_KEY;
    }
    return OK;
}

static err decoder_make_columns(struct decoder *decoder, struct error *error)
{
    const struct type *type = &decoder->root_field.type;
    decoder->columns = arena_array(decoder->arena, type->field_count, sizeof(struct column));
    if (decoder->columns == NULL) {
        return error_memory(error);
    }
    for (size_t i = 0; i < type->field_count; i++) {
        if (!column_init(&decoder->columns[i], decoder->arena, &type->fields[i])) {
            return error_memory(error);
        }
    }
    return OK;
}

/* ---- the straight way ---- */

static bool machine_is_wide(void)
{
#if defined(__x86_64__)
    return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("bmi2");
#else
    return false;
#endif
}

bool decoder_choose_way(struct decoder *decoder, enum decode_way way)
{
    decoder->straight_row = NULL;
    decoder->straight_members = NULL;
    if (way == DECODE_WAY_WIDE && !machine_is_wide()) {
        return false;
    }
#if defined(__x86_64__)
    if (way == DECODE_WAY_WIDE) {
        decoder->straight_row = straight_row_wide;
        decoder->straight_members = straight_members_wide;
    }
#endif
    if (way == DECODE_WAY_PORTABLE) {
        decoder->straight_row = straight_row_portable;
        decoder->straight_members = straight_members_portable;
    }
    return true;
}

static err decoder_make_straight(struct decoder *decoder, struct error *error)
{
    /* A row of the greatest size that a body can have, and more. */
    enum { COPY_BYTES_MAX = 128 * MIB };
    decoder->copy = buf_create(decoder->arena, KIB, COPY_BYTES_MAX);
    decoder->straight.scratch = buf_create(decoder->arena, KIB, COPY_BYTES_MAX);
    if (!decode_step_make_root(decoder->arena, &decoder->root, decoder->columns,
                               &decoder->straight.root)) {
        return error_memory(error);
    }
    (void)decoder_choose_way(decoder, machine_is_wide() ? DECODE_WAY_WIDE : DECODE_WAY_PORTABLE);
    return OK;
}

void decoder_reads(struct decoder *decoder, str bytes)
{
    if (bytes.data == decoder->readable.data && bytes.size == decoder->readable.size) {
        return;
    }
    i64 last = -1;
    if (bytes.size > JSON_SCAN_SLACK) {
        str with_slack = str_slice(bytes, 0, bytes.size - JSON_SCAN_SLACK + 1);
        last = str_find_last_byte(with_slack, '\n');
    }
    decoder->readable = bytes;
    decoder->limit = last >= 0 ? bytes.data + last : NULL;
}

err decoder_open(struct arena *arena, const struct schema *schema,
                 const struct decode_settings *settings, struct decoder **out_decoder,
                 struct error *error)
{
    assert(schema->root.kind == TYPE_STRUCT);
    struct decoder *decoder = arena_alloc(arena, sizeof(*decoder));
    if (decoder == NULL || !decode_hits_init(&decoder->hits, arena) ||
        !variant_builder_init(&decoder->variant, arena)) {
        return error_memory(error);
    }
    decoder->arena = arena;
    decoder->ingest = decoder->capture = DECODE_NONE;
    decoder->unknown = settings->unknown;
    decoder->root_field = (struct field){.required = true, .type = schema->root};
    TRY(decode_plan_make(arena, &decoder->root_field, &decoder->root, error));
    TRY(decoder_set_ingest(decoder, error));
    TRY(decoder_set_capture(decoder, settings, error));
    TRY(decoder_set_keys(decoder, settings, error));
    TRY(decoder_make_columns(decoder, error));
    TRY(decoder_make_straight(decoder, error));
    decode_tree_init(&decoder->tree, arena, &decoder->root);
    *out_decoder = decoder;
    return OK;
}

struct column *decoder_columns(struct decoder *decoder, size_t *out_count)
{
    *out_count = decoder->root.child_count;
    return decoder->columns;
}

static void decoder_truncate(struct decoder *decoder, i64 row_count)
{
    for (size_t i = 0; i < decoder->root.child_count; i++) {
        column_truncate(&decoder->columns[i], row_count);
    }
    decoder->row_count = row_count;
}

void decoder_clear(struct decoder *decoder)
{
    decoder_truncate(decoder, 0);
}

/* ---- one row ---- */

static struct decode_at column_at(const struct decoder *decoder, size_t index, u64 object,
                                  const struct decode_trail *trail)
{
    const struct decode_plan *root = &decoder->root;
    u32 node = root->seen[index] == object ? root->member[index] : DECODE_NONE;
    return (struct decode_at){.node = node, .within = 0, .trail = trail};
}

static bool is_null(const struct decode_tree *tree, struct decode_at at)
{
    return at.node == DECODE_NONE || decode_tree_kind(tree, at.node) == JSON_KIND_NULL;
}

/* Null keys are told before any other column. */
static void check_keys(struct decoder *decoder, u64 object)
{
    for (size_t i = 0; i < decoder->root.child_count; i++) {
        struct decode_trail trail = {.name = decoder->root.children[i].field->name};
        struct decode_at at = column_at(decoder, i, object, &trail);
        if (decoder->root.children[i].role == DECODE_KEY && is_null(&decoder->tree, at)) {
            decode_hit(&decoder->hits, &decoder->tree, REJECT_KEY_NULL, at,
                       at.node == DECODE_NONE ? STR("absent") : STR("null"));
        }
    }
}

static bool append_captured_text(struct decoder *decoder, struct column *column)
{
    buf *scratch = &decoder->tree.text;
    size_t start = scratch->size;
    size_t count = 0;
    decode_capture(&decoder->hits, &decoder->tree, scratch, &count);
    assert(buf_ok(scratch));
    str text = str_slice(buf_str(scratch), start, scratch->size);
    bool is_empty = count == 0 && !column->field->required;
    bool appended = is_empty ? column_append_null(column) : column_append_bytes(column, text);
    buf_truncate(scratch, start);
    return appended;
}

static bool append_captured(struct decoder *decoder, struct decode_row *row, size_t index)
{
    struct column *column = &decoder->columns[index];
    bool is_text = column->field->type.kind == TYPE_STRING;
    bool appended = is_text
                        ? append_captured_text(decoder, column)
                        : decode_variant_capture(&decoder->variant, &decoder->hits, &decoder->tree,
                                                 &decoder->root.children[index], column);
    row->out_of_memory = row->out_of_memory || !appended;
    return appended && !decode_hits_full(&decoder->hits);
}

static bool append_column(struct decoder *decoder, struct decode_row *row, size_t index, u64 object,
                          instant ingest_ts)
{
    struct decode_plan *plan = &decoder->root.children[index];
    struct column *column = &decoder->columns[index];
    if (column->count > decoder->row_count) {
        return true; /* taken already */
    }
    struct decode_trail trail = {.name = plan->field->name};
    struct decode_at at = column_at(decoder, index, object, &trail);
    bool appended = true;
    switch (plan->role) {
    case DECODE_INGEST:
        appended = column_append_fixed(column, &ingest_ts);
        break;
    case DECODE_CAPTURE:
        return append_captured(decoder, row, index);
    case DECODE_KEY:
        if (!is_null(&decoder->tree, at)) {
            return decode_member(row, plan, column, at);
        }
        appended = column_append_null(column);
        break;
    case DECODE_ORDINARY:
        return decode_member(row, plan, column, at);
    }
    row->out_of_memory = row->out_of_memory || !appended;
    return appended;
}

/* Finds hits or appends the row. False: memory is out. */
static bool decode_row(struct decoder *decoder, instant ingest_ts)
{
    struct decode_row row = {
        .arena = decoder->arena,
        .tree = &decoder->tree,
        .hits = &decoder->hits,
        .variant = &decoder->variant,
    };
    decode_check_names(&decoder->hits, &decoder->tree, decoder->unknown);
    u64 object = decode_tree_members(&decoder->tree, &decoder->root, 0);
    if (decoder->is_keyed) {
        check_keys(decoder, object);
    }
    bool going = !decode_hits_full(&decoder->hits);
    for (size_t i = 0; going && i < decoder->root.child_count; i++) {
        going = append_column(decoder, &row, i, object, ingest_ts);
    }
    if (row.out_of_memory || decoder->hits.count > 0) {
        decoder_truncate(decoder, decoder->row_count);
    } else {
        decoder->row_count++;
    }
    return !row.out_of_memory;
}

/* Whether the line that begins at `at` is read in place. */
static bool is_in_place(const struct decoder *decoder, const char *at)
{
    return decoder->limit != NULL && at >= decoder->readable.data && at <= decoder->limit;
}

/* A copy with line feeds in JSON_SCAN_SLACK bytes behind it. NULL: memory is out. */
static const char *copy_with_slack(struct decoder *decoder, str line)
{
    buf_truncate(&decoder->copy, 0);
    char *copy = buf_reserve(&decoder->copy, line.size + JSON_SCAN_SLACK);
    if (copy == NULL) {
        decoder->straight_row = NULL;
        return NULL;
    }
    memcpy(copy, line.data, line.size);
    memset(copy + line.size, '\n', JSON_SCAN_SLACK);
    return copy;
}

static bool append_own(struct decoder *decoder, instant ingest_ts)
{
    struct column *columns = decoder->columns;
    return (decoder->ingest == DECODE_NONE ||
            column_append_fixed(&columns[decoder->ingest], &ingest_ts)) &&
           (decoder->capture == DECODE_NONE || (!columns[decoder->capture].field->required &&
                                                column_append_null(&columns[decoder->capture])));
}

/* Where rows seem to be of a kind that is never taken straight, only some are tried. */
static bool tries_straight(struct decoder *decoder)
{
    bool tries = decoder->straight_row != NULL &&
                 (decoder->declined < DECLINED_MAX || decoder->declined % DECLINED_MAX == 0);
    decoder->declined += tries ? 0 : 1;
    return tries;
}

/* What the columns have got of values that are not whole goes; whole ones stay. */
static void drop_parts(struct decoder *decoder)
{
    for (size_t i = 0; i < decoder->root.child_count; i++) {
        struct column *column = &decoder->columns[i];
        if (column->child_count > 0 && column->count == decoder->row_count) {
            column_truncate(column, decoder->row_count);
        }
    }
}

/* The line feed behind the line that begins at `at`, whose row was appended; `end` NULL: whichever
 * comes first. NULL: it was not, but members may have been, which the tree is told of. */
static const char *take_straight(struct decoder *decoder, const char *at, const char *limit,
                                 const char *end, instant ingest_ts)
{
    decoder->straight.limit = (const u8 *)limit;
    const char *found = (const char *)decoder->straight_row(&decoder->straight, (const u8 *)at,
                                                            decoder->row_count);
    if (found == NULL && decoder->straight.taken > 0) {
        decoder->declined++;
        drop_parts(decoder);
        return NULL;
    }
    if (found != NULL && (end == NULL || found == end) && append_own(decoder, ingest_ts)) {
        decoder->declined = 0;
        decoder->row_count++;
        return found;
    }
    decoder->declined++;
    decoder_truncate(decoder, decoder->row_count);
    return NULL;
}

static void give_verdict(enum decode_verdict verdict, struct decode_result *out_result)
{
    out_result->verdict = verdict;
    out_result->hit_count = 0;
    out_result->did_you_mean = (str){NULL, 0};
}

static enum decode_tree_result read_tree(struct decoder *decoder, str line, const char *limit)
{
    struct decode_tree *tree = &decoder->tree;
    tree->take = limit != NULL ? decoder->straight_members : NULL;
    tree->straight = &decoder->straight;
    tree->straight->limit = (const u8 *)limit;
    tree->straight->foretold = NULL;
    tree->row = decoder->row_count;
    enum decode_tree_result read = utf8_valid(line) ? decode_tree_read(tree, line)
                                                    : DECODE_TREE_NOT_JSON;
    tree->straight->taken = 0; /* of this line alone */
    if (read != DECODE_TREE_OK) {
        decoder_truncate(decoder, decoder->row_count);
    }
    return read;
}

/* By the tree; `limit` as in struct straight, NULL: there is none. */
static err judge_line(struct decoder *decoder, str line, const char *limit, instant ingest_ts,
                      struct decode_result *out_result, struct error *error)
{
    decode_hits_clear(&decoder->hits);
    enum decode_tree_result read = read_tree(decoder, line, limit);
    if (read == DECODE_TREE_LIMIT) {
        return error_memory(error);
    }
    if (read == DECODE_TREE_NOT_JSON || decode_tree_kind(&decoder->tree, 0) != JSON_KIND_OBJECT) {
        give_verdict(DECODE_UNREADABLE, out_result);
        return OK;
    }
    if (!decode_row(decoder, ingest_ts)) {
        return error_memory(error);
    }
    give_verdict(decoder->hits.count > 0 ? DECODE_REJECT : DECODE_ROW, out_result);
    out_result->hit_count = decoder->hits.count;
    out_result->did_you_mean = decoder->hits.did_you_mean;
    memcpy(out_result->hits, decoder->hits.hits, decoder->hits.count * sizeof(struct reject_hit));
    return OK;
}

err decode_line(struct decoder *decoder, str line, instant ingest_ts,
                struct decode_result *out_result, struct error *error)
{
    if (line.size == 0) {
        give_verdict(DECODE_EMPTY, out_result);
        return OK;
    }
    const char *copy = decoder->straight_row != NULL ? copy_with_slack(decoder, line) : NULL;
    if (copy == NULL) {
        return judge_line(decoder, line, NULL, ingest_ts, out_result, error);
    }
    const char *end = copy + line.size;
    if (tries_straight(decoder) && take_straight(decoder, copy, end, end, ingest_ts) != NULL) {
        give_verdict(DECODE_ROW, out_result);
        return OK;
    }
    return judge_line(decoder, (str){copy, line.size}, end, ingest_ts, out_result, error);
}

/* Past `line`, which `lines` begins with. */
static void pass_line(str *lines, str line)
{
    bool more = line.size < lines->size;
    *lines = more ? str_slice(*lines, line.size + 1, lines->size) : (str){NULL, 0};
}

static str first_line(str lines)
{
    const char *end = lines.size == 0 ? NULL : memchr(lines.data, '\n', lines.size);
    return (str){lines.data, end == NULL ? lines.size : (size_t)(end - lines.data)};
}

err decode_next(struct decoder *decoder, str *lines, instant ingest_ts, str *out_line,
                struct decode_result *out_result, struct error *error)
{
    const char *at = lines->data;
    bool in_place = is_in_place(decoder, at);
    if (in_place && *at != '\n' && tries_straight(decoder)) {
        const char *end = take_straight(decoder, at, decoder->limit, NULL, ingest_ts);
        if (end != NULL) {
            *out_line = (str){at, (size_t)(end - at)};
            pass_line(lines, *out_line);
            give_verdict(DECODE_ROW, out_result);
            return OK;
        }
    }
    *out_line = first_line(*lines);
    pass_line(lines, *out_line);
    return in_place && out_line->size > 0
               ? judge_line(decoder, *out_line, decoder->limit, ingest_ts, out_result, error)
               : decode_line(decoder, *out_line, ingest_ts, out_result, error);
}
