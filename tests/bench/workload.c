#include "workload.h"

#include "base/assert.h"

#include <stdio.h>

enum { FIELDS_BYTES = 16 * KIB };

static const i64 FIRST_SECOND = 1790000000; /* in September 2026 */

/* splitmix64 */
static u64 draw(u64 *state)
{
    u64 mixed = (*state += 0x9E3779B97F4A7C15u);
    mixed = (mixed ^ (mixed >> 30)) * 0xBF58476D1CE4E5B9u;
    mixed = (mixed ^ (mixed >> 27)) * 0x94D049BB133111EBu;
    return mixed ^ (mixed >> 31);
}

static i64 value_below(struct workload *workload, i64 bound)
{
    return (i64)(draw(&workload->values) % (u64)bound);
}

static i64 value_of(struct workload *workload, const struct workload_column *column)
{
    return column->low + value_below(workload, column->high - column->low + 1);
}

/* ---- values ---- */

static void print_scaled(buf *out, i64 value, i64 scale, int digits)
{
    i64 size = value < 0 ? -value : value;
    buf_append_format(out, "%s%lld.%0*lld", value < 0 ? "-" : "", (long long)(size / scale), digits,
                      (long long)(size % scale));
}

static void print_number(struct workload *workload, const struct workload_column *column, buf *out)
{
    buf_append_i64(out, value_of(workload, column));
}

static void print_row(struct workload *workload, const struct workload_column *column, buf *out)
{
    buf_append_i64(out, column->low + workload->row);
}

static void print_tenths(struct workload *workload, const struct workload_column *column, buf *out)
{
    print_scaled(out, value_of(workload, column), 10, 1);
}

static void print_hundredths(struct workload *workload, const struct workload_column *column,
                             buf *out)
{
    print_scaled(out, value_of(workload, column), 100, 2);
}

static void print_millionths(struct workload *workload, const struct workload_column *column,
                             buf *out)
{
    print_scaled(out, value_of(workload, column), 1000000, 6);
}

static void print_flag(struct workload *workload, const struct workload_column *column, buf *out)
{
    buf_append(out, value_of(workload, column) > 0 ? STR("true") : STR("false"));
}

static void print_device(struct workload *workload, const struct workload_column *column, buf *out)
{
    buf_append_format(out, "\"device-%05lld\"", (long long)value_of(workload, column));
}

/* One row every `high` milliseconds or so. */
static void print_time(struct workload *workload, const struct workload_column *column, buf *out)
{
    i64 ms = workload->row * column->high + value_below(workload, 3 * column->high);
    i64 seconds = FIRST_SECOND % 86400 + ms / 1000;
    buf_append_format(out, "\"2026-09-%02lldT%02lld:%02lld:%02lld.%03lldZ\"",
                      (long long)(1 + seconds / 86400 % 30), (long long)(seconds / 3600 % 24),
                      (long long)(seconds / 60 % 60), (long long)(seconds % 60),
                      (long long)(ms % 1000));
}

static void print_uuid(struct workload *workload, const struct workload_column *column, buf *out)
{
    (void)column;
    u64 high = draw(&workload->values);
    u64 low = draw(&workload->values);
    buf_append_format(out, "\"%08llx-%04llx-4%03llx-%04llx-%012llx\"", (long long)(high >> 32),
                      (long long)(high >> 16 & 0xFFFF), (long long)(high & 0xFFF),
                      (long long)(low >> 48 & 0x3FFF) | 0x8000, (long long)(low & 0xFFFFFFFFFFFF));
}

static void print_hex(struct workload *workload, const struct workload_column *column, buf *out)
{
    (void)column;
    buf_append_format(out, "\"%016llx\"", (long long)draw(&workload->values));
}

static const char *const WORDS[] = {
    "order",  "paid",    "basket", "window", "river", "garden", "seven",  "orange", "mountain",
    "letter", "quickly", "under",  "bright", "stone", "yellow", "market", "silver", "thunder",
    "again",  "picture", "house",  "winter", "early", "bridge", "copper", "island", "morning",
};
static const char *const SPECIAL_WORDS[] = {
    "Z\xC3\xBCrich",   "\xE6\x9D\xB1\xE4\xBA\xAC",
    "caf\xC3\xA9",     "\xF0\x9F\x98\x80",
    "\\\"said\\\"",    "line\\nbreak",
    "tab\\tstop",      "C:\\\\data",
    "\\u00e9t\\u00e9", "\\ud83d\\ude80",
    "smile\\u263a",
};
static const char *const KINDS[] = {"view",   "click",  "search",   "add",    "remove", "checkout",
                                    "signup", "logout", "purchase", "refund", "share",  "rate"};
static const char *const CITIES[] = {
    "Berlin",           "Lagos",  "Lima",  "Osaka", "Oslo",      "Paris", "Pune", "Quito",
    "S\xC3\xA3o Paulo", "Sydney", "Tunis", "Turin", "Wellington"};
static const char *const AGENTS[] = {
    "Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0",
    "Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 Chrome/142.0",
    "Mozilla/5.0 (iPhone; CPU iPhone OS 19_1 like Mac OS X) Mobile/15E148",
    "okhttp/5.1.0",
    "curl/8.14.1",
};

static const char *pick(struct workload *workload, const char *const *from, size_t count)
{
    return from[value_below(workload, (i64)count)];
}

static void print_kind(struct workload *workload, const struct workload_column *column, buf *out)
{
    (void)column;
    buf_append_format(out, "\"%s\"", pick(workload, KINDS, ARRAY_COUNT(KINDS)));
}

static void print_agent(struct workload *workload, const struct workload_column *column, buf *out)
{
    (void)column;
    buf_append_format(out, "\"%s\"", pick(workload, AGENTS, ARRAY_COUNT(AGENTS)));
}

static void print_url(struct workload *workload, const struct workload_column *column, buf *out)
{
    if (value_below(workload, 100) < column->low) {
        buf_append(out, STR("null"));
        return;
    }
    const char *first = pick(workload, WORDS, ARRAY_COUNT(WORDS));
    const char *second = pick(workload, WORDS, ARRAY_COUNT(WORDS));
    buf_append_format(out, "\"https://shop.example/%s/%s?item=%lld\"", first, second,
                      (long long)value_below(workload, column->high));
}

static void print_address(struct workload *workload, const struct workload_column *column, buf *out)
{
    u64 bits = draw(&workload->values);
    buf_append_format(out, "\"10.%llu.%llu.%llu\"", (unsigned long long)(bits & 0xFF),
                      (unsigned long long)(bits >> 8 & 0xFF),
                      (unsigned long long)(bits >> 16) % (unsigned long long)column->high);
}

static void print_country(struct workload *workload, const struct workload_column *column, buf *out)
{
    i64 code = value_of(workload, column);
    buf_append_format(out, "\"%c%c\"", (char)('A' + code % 26), (char)('A' + code * 7 / 26 % 26));
}

static void print_amount(struct workload *workload, const struct workload_column *column, buf *out)
{
    if (value_below(workload, 100) < 20) {
        buf_append(out, STR("null"));
        return;
    }
    buf_append_byte(out, '"');
    print_hundredths(workload, column, out);
    buf_append_byte(out, '"');
}

static void print_degrees(struct workload *workload, i64 most, buf *out)
{
    if (workload->set == WORKLOAD_HOSTILE && value_below(workload, 50) == 0) {
        buf_append(out, STR("1e-320"));
        return;
    }
    print_scaled(out, value_below(workload, 2 * most * 10000) - most * 10000, 10000, 4);
}

static void print_place(struct workload *workload, const struct workload_column *column, buf *out)
{
    (void)column;
    buf_append(out, STR("{\"lat\":"));
    print_degrees(workload, 90, out);
    buf_append(out, STR(",\"lon\":"));
    print_degrees(workload, 180, out);
    buf_append_format(out, ",\"city\":\"%s\"}", pick(workload, CITIES, ARRAY_COUNT(CITIES)));
}

static void print_tags(struct workload *workload, const struct workload_column *column, buf *out)
{
    i64 count = value_of(workload, column);
    buf_append_byte(out, '[');
    for (i64 i = 0; i < count; i++) {
        buf_append_format(out, "%s\"%s\"", i > 0 ? "," : "",
                          pick(workload, WORDS, ARRAY_COUNT(WORDS)));
    }
    buf_append_byte(out, ']');
}

static void print_message(struct workload *workload, const struct workload_column *column, buf *out)
{
    i64 special = value_below(workload, 100) < 19 ? value_below(workload, column->high) : -1;
    buf_append_byte(out, '"');
    for (i64 i = 0; i < column->high; i++) {
        const char *word = i == special ? pick(workload, SPECIAL_WORDS, ARRAY_COUNT(SPECIAL_WORDS))
                                        : pick(workload, WORDS, ARRAY_COUNT(WORDS));
        buf_append_format(out, "%s%s", i > 0 ? " " : "", word);
    }
    buf_append_byte(out, '"');
}

/* ---- the sets ---- */

static const struct workload_column IOT[] = {
    {"device", "string required", print_device, 0, 49999},
    {"ts", "timestamptz", print_time, 0, 20},
    {"seq", "long", print_row, 1000000, 0},
    {"temp", "double", print_hundredths, -2000, 4000},
    {"hum", "double", print_tenths, 200, 999},
    {"volt", "double", print_hundredths, 300, 420},
    {"ok", "boolean", print_flag, -1, 12},
    {"code", "int", print_number, 0, 299},
};
static const struct workload_column EVENT[] = {
    {"id", "string required", print_uuid, 0, 0},
    {"ts", "timestamptz", print_time, 0, 5},
    {"user_id", "long", print_number, 1, 2000000},
    {"session", "string", print_hex, 0, 0},
    {"kind", "string", print_kind, 0, 0},
    {"url", "string", print_url, 0, 1000000},
    {"referrer", "string", print_url, 40, 1000},
    {"agent", "string", print_agent, 0, 0},
    {"ip", "string", print_address, 0, 250},
    {"country", "string", print_country, 0, 59},
    {"amount", "decimal(12,2)", print_amount, 100, 500000},
    {"quantity", "int", print_number, 1, 40},
    {"place", "struct<lat: double, lon: double, city: string>", print_place, 0, 0},
    {"tags", "list<string>", print_tags, 0, 4},
    {"message", "string", print_message, 0, 7},
};

/* Four numbers of ten are integers, the others have two or six places. */
static void wide_columns(struct workload *workload)
{
    static const struct workload_column SHAPES[] = {
        {"", "double", print_hundredths, -99999, 999999},
        {"", "long", print_number, 0, 9000000000},
        {"", "double", print_millionths, 0, 9999999},
        {"", "int", print_number, -100000, 100000},
        {"", "double", print_millionths, -999999999, 999999999},
        {"", "long", print_number, 1700000000000, 1800000000000},
        {"", "double", print_hundredths, 0, 9999999},
        {"", "int", print_number, 0, 999},
        {"", "double", print_millionths, -9999999, 9999999},
        {"", "double", print_tenths, 0, 99999},
    };
    workload->column_count = WORKLOAD_COLUMNS_MAX;
    workload->columns[0] = (struct workload_column){"id", "long required", print_row, 1, 0};
    for (size_t i = 1; i < WORKLOAD_COLUMNS_MAX; i++) {
        struct workload_column *column = &workload->columns[i];
        *column = SHAPES[(i - 1) % ARRAY_COUNT(SHAPES)];
        snprintf(column->name, sizeof(column->name), "m%02zu", i);
    }
}

void workload_seed(struct workload *workload, u64 seed)
{
    workload->values = seed;
    workload->shapes = seed + 1;
    workload->faults = seed + 2;
}

bool workload_init(struct workload *workload, struct arena *arena, str set)
{
    static const char *const NAMES[] = {"iot", "event", "wide", "hostile"};
    *workload = (struct workload){.fields = buf_create(arena, FIELDS_BYTES, FIELDS_BYTES)};
    workload_seed(workload, 0);
    size_t index = 0;
    while (index < ARRAY_COUNT(NAMES) && !str_equal(set, str_from(NAMES[index]))) {
        index++;
    }
    workload->set = (enum workload_set)index;
    switch (workload->set) {
    case WORKLOAD_IOT:
        workload->column_count = ARRAY_COUNT(IOT);
        memcpy(workload->columns, IOT, sizeof(IOT));
        return true;
    case WORKLOAD_EVENT:
    case WORKLOAD_HOSTILE:
        workload->column_count = ARRAY_COUNT(EVENT);
        memcpy(workload->columns, EVENT, sizeof(EVENT));
        if (workload->set == WORKLOAD_HOSTILE) {
            workload->columns[2].low = INT64_MAX - 5000000000000000000;
            workload->columns[2].high = INT64_MAX - 1;
        }
        return true;
    case WORKLOAD_WIDE:
        wide_columns(workload);
        return true;
    }
    return false;
}

void workload_print_columns(const struct workload *workload, const char *after, buf *out)
{
    for (size_t i = 0; i < workload->column_count; i++) {
        buf_append_format(out, "%s%s: %s", i > 0 ? after : "", workload->columns[i].name,
                          workload->columns[i].type);
    }
}

/* ---- a row ---- */

enum fault {
    FAULT_UNKNOWN,
    FAULT_TWICE,
    FAULT_MISSING,
    FAULT_NO_TIME,
    FAULT_RANGE,
    FAULT_SURROGATE,
    FAULT_NONE,
};

static enum fault draw_fault(struct workload *workload)
{
    bool bad = (i32)(draw(&workload->faults) % 100) < workload->bad_percent;
    u64 kind = draw(&workload->faults) % FAULT_NONE;
    return bad ? (enum fault)kind : FAULT_NONE;
}

static void blanks(struct workload *workload, buf *out)
{
    static const char *const SPACES[] = {"", "", "", " ", "  ", "\t"};
    if (workload->set == WORKLOAD_HOSTILE && !workload->plain) {
        buf_append(out, str_from(SPACES[draw(&workload->shapes) % ARRAY_COUNT(SPACES)]));
    }
}

static void print_field(struct workload *workload, const char *name, str value, buf *out)
{
    if (out->data[out->size - 1] != '{') {
        buf_append_byte(out, ',');
    }
    blanks(workload, out);
    buf_append_format(out, "\"%s\"", name);
    blanks(workload, out);
    buf_append_byte(out, ':');
    blanks(workload, out);
    buf_append(out, value);
    blanks(workload, out);
}

static void draw_order(struct workload *workload, size_t order[WORKLOAD_COLUMNS_MAX])
{
    for (size_t i = 0; i < workload->column_count; i++) {
        order[i] = i;
    }
    if (workload->set != WORKLOAD_HOSTILE || workload->plain) {
        return;
    }
    for (size_t i = workload->column_count - 1; i > 0; i--) {
        size_t other = (size_t)(draw(&workload->shapes) % (i + 1));
        size_t index = order[i];
        order[i] = order[other];
        order[other] = index;
    }
}

static bool left_out(struct workload *workload, size_t column)
{
    return workload->set == WORKLOAD_HOSTILE && !workload->plain &&
           str_equal(workload->field[column], STR("null")) && draw(&workload->shapes) % 2 == 0;
}

static void draw_fields(struct workload *workload, enum fault fault)
{
    buf_truncate(&workload->fields, 0);
    for (size_t i = 0; i < workload->column_count; i++) {
        const struct workload_column *column = &workload->columns[i];
        size_t start = workload->fields.size;
        column->print(workload, column, &workload->fields);
        workload->field[i] = str_slice(buf_str(&workload->fields), start, workload->fields.size);
    }
    assert(buf_ok(&workload->fields));
    if (fault == FAULT_NO_TIME) {
        workload->field[1] = STR("\"yesterday\"");
    } else if (fault == FAULT_RANGE) {
        workload->field[2] = STR("12345678901234567890");
    } else if (fault == FAULT_SURROGATE) {
        workload->field[0] = STR("\"half \\ud800\"");
    }
}

bool workload_row(struct workload *workload, buf *out)
{
    enum fault fault = draw_fault(workload);
    size_t order[WORKLOAD_COLUMNS_MAX];
    draw_fields(workload, fault);
    draw_order(workload, order);
    buf_append_byte(out, '{');
    for (size_t i = 0; i < workload->column_count; i++) {
        size_t column = order[i];
        if (left_out(workload, column) || (fault == FAULT_MISSING && column == 0)) {
            continue;
        }
        print_field(workload, workload->columns[column].name, workload->field[column], out);
    }
    if (fault == FAULT_UNKNOWN) {
        print_field(workload, "surplus", STR("[1,{\"a\":2}]"), out);
    } else if (fault == FAULT_TWICE) {
        print_field(workload, workload->columns[0].name, workload->field[0], out);
    }
    buf_append_byte(out, '}');
    workload->row++;
    return fault == FAULT_NONE;
}
