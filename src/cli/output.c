#include "cli/output.h"

#include "base/assert.h"
#include "base/buf.h"

#include <stdio.h>

enum { CELL_BYTES_MAX = 64 * 1024, LABEL_WIDTH = 18 };

static str dump(struct arena *arena, const json_t *json, size_t flags)
{
    size_t size = json_dumpb(json, NULL, 0, flags | JSON_ENCODE_ANY);
    char *text = size > 0 ? arena_alloc(arena, size + 1) : NULL;
    if (text == NULL) {
        return (str){0};
    }
    size_t written = json_dumpb(json, text, size, flags | JSON_ENCODE_ANY);
    assert(written == size);
    return (str){text, size};
}

str output_dump(struct cli *cli, const json_t *json, size_t flags)
{
    return dump(cli->arena, json, flags);
}

bool output_json(struct cli *cli, const json_t *answer)
{
    if (!cli_given(cli, "json")) {
        return false;
    }
    str text = output_dump(cli, answer, JSON_COMPACT);
    printf("%.*s\n", STR_ARG(text));
    return true;
}

void output_print(str text)
{
    for (size_t at = 0; at < text.size; at++) {
        unsigned char c = (unsigned char)text.data[at];
        (void)putchar((c < 0x20 && c != '\n' && c != '\t') || c == 0x7f ? '?' : c);
    }
}

/* ---- values ---- */

static const json_t *member_at(const json_t *object, const char *path)
{
    char name[64];
    str rest = str_from(path);
    str part = {0};
    while (object != NULL && str_next(&rest, '.', &part)) {
        assert(part.size < sizeof(name));
        memcpy(name, part.data, part.size);
        name[part.size] = 0;
        object = json_object_get(object, name);
    }
    return object;
}

static str bytes_text(struct arena *arena, i64 bytes)
{
    static const char *const units[] = {"B", "KiB", "MiB", "GiB", "TiB", "PiB"};
    double value = (double)bytes;
    size_t unit = 0;
    while (value >= 1024 && unit + 1 < ARRAY_COUNT(units)) {
        value /= 1024;
        unit++;
    }
    return unit == 0 ? str_format(arena, "%lld B", (long long)bytes)
                     : str_format(arena, "%.1f %s", value, units[unit]);
}

/* The elements of an array of texts, joined; anything else as JSON. */
static str composed_text(struct arena *arena, const json_t *value)
{
    buf out = buf_create(arena, 64, CELL_BYTES_MAX);
    bool texts = json_is_array(value);
    for (size_t index = 0; texts && index < json_array_size(value); index++) {
        texts = json_is_string(json_array_get(value, index));
    }
    if (json_is_object(value) && json_object_size(value) == 0) {
        return (str){0};
    }
    if (!texts) {
        return dump(arena, value, JSON_COMPACT);
    }
    for (size_t index = 0; index < json_array_size(value); index++) {
        buf_append(&out, index > 0 ? STR(", ") : STR(""));
        buf_append(&out, str_from(json_string_value(json_array_get(value, index))));
    }
    return json_array_size(value) == 0 ? (str){0} : buf_str(&out);
}

static str value_text(struct arena *arena, const json_t *value, enum output_kind kind)
{
    switch (json_typeof(value)) {
    case JSON_STRING:
        return str_copy(arena, (str){json_string_value(value), json_string_length(value)});
    case JSON_INTEGER:
        return kind == OUTPUT_BYTES
                   ? bytes_text(arena, (i64)json_integer_value(value))
                   : str_format(arena, "%lld", (long long)json_integer_value(value));
    case JSON_REAL:
        return str_format(arena, "%g", json_real_value(value));
    case JSON_TRUE:
        return STR("yes");
    case JSON_FALSE:
        return STR("no");
    case JSON_NULL:
        return (str){0};
    case JSON_ARRAY:
    case JSON_OBJECT:
        return composed_text(arena, value);
    }
    return (str){0};
}

str output_text(struct cli *cli, const json_t *object, const char *path, enum output_kind kind)
{
    const json_t *value = member_at(object, path);
    return value == NULL ? (str){0} : value_text(cli->arena, value, kind);
}

/* ---- lists ---- */

/* Characters, near enough: continuation bytes do not count. */
static size_t text_width(str text)
{
    size_t width = 0;
    for (size_t at = 0; at < text.size; at++) {
        width += ((unsigned char)text.data[at] & 0xc0) != 0x80 ? 1 : 0;
    }
    return width;
}

static void print_padding(size_t width)
{
    for (size_t at = 0; at < width; at++) {
        (void)putchar(' ');
    }
}

static void print_cell(str text, size_t width, enum output_kind kind, bool last)
{
    size_t padding = width - text_width(text);
    if (kind != OUTPUT_TEXT) {
        print_padding(padding);
    }
    output_print(text);
    if (kind == OUTPUT_TEXT && !last) {
        print_padding(padding);
    }
    if (last) {
        (void)putchar('\n');
    } else {
        printf("  ");
    }
}

/* What is longer is for --json. */
enum { CELL_SHOWN_MAX = 240 };

static str cell_text(struct cli *cli, const json_t *element, const struct output_column *column)
{
    str text = output_text(cli, element, column->path, column->kind);
    if (text.size <= CELL_SHOWN_MAX) {
        return text.data == NULL ? STR("-") : text;
    }
    size_t cut = CELL_SHOWN_MAX;
    while (cut > 0 && ((unsigned char)text.data[cut] & 0xc0) == 0x80) {
        cut--; /* not inside a character */
    }
    return str_format(cli->arena, "%.*s…", (int)cut, text.data);
}

static void print_rows(struct cli *cli, const json_t *list, const struct output_column *columns,
                       size_t count)
{
    size_t widths[OUTPUT_COLUMNS_MAX];
    for (size_t column = 0; column < count; column++) {
        widths[column] = text_width(str_from(columns[column].title));
        for (size_t row = 0; row < json_array_size(list); row++) {
            size_t width = text_width(cell_text(cli, json_array_get(list, row), &columns[column]));
            widths[column] = width > widths[column] ? width : widths[column];
        }
    }
    for (size_t column = 0; column < count; column++) {
        print_cell(str_from(columns[column].title), widths[column], columns[column].kind,
                   column + 1 == count);
    }
    for (size_t row = 0; row < json_array_size(list); row++) {
        for (size_t column = 0; column < count; column++) {
            print_cell(cell_text(cli, json_array_get(list, row), &columns[column]), widths[column],
                       columns[column].kind, column + 1 == count);
        }
    }
}

int output_list(struct cli *cli, json_t *answer, const char *list,
                const struct output_column *columns, size_t count)
{
    assert(count <= OUTPUT_COLUMNS_MAX);
    if (!output_json(cli, answer)) {
        const json_t *elements = json_object_get(answer, list);
        if (json_array_size(elements) == 0) {
            cli_note("no %s", list);
        } else {
            print_rows(cli, elements, columns, count);
        }
        const char *next = json_string_value(json_object_get(answer, "next_cursor"));
        if (next != NULL) {
            cli_note("there are more: --cursor %s", next);
        }
    }
    json_decref(answer);
    return CLI_OK;
}

int output_object(struct cli *cli, json_t *answer, const struct output_column *columns,
                  size_t count)
{
    if (!output_json(cli, answer)) {
        for (size_t index = 0; index < count; index++) {
            str text = output_text(cli, answer, columns[index].path, columns[index].kind);
            if (text.size > 0) {
                printf("%-*s ", LABEL_WIDTH, columns[index].title);
                output_print(text);
                (void)putchar('\n');
            }
        }
    }
    json_decref(answer);
    return CLI_OK;
}
