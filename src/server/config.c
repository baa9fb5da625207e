#include "server/config.h"

#include "base/assert.h"
#include "io/file.h"

#include <ini.h>
#include <unistd.h>

enum kind { TEXT, NUMBER, BYTES };

struct setting {
    const char *section;
    const char *key;
    enum kind kind;
    const char *value;
    i64 least;
    i64 most;
    const char *meaning;
};

static const struct setting SETTINGS[CONFIG_KEY_COUNT] = {
#define X(name, section, key, kind, value, least, most, meaning)                                   \
    {section, key, kind, value, least, most, meaning},
#include "server/config_keys.def"
#undef X
};

#define CATALOG_SECTION "catalog "
#define LOCATIONS_KEY   "allowed_locations"

struct loading {
    struct arena *arena;
    struct config *config;
    str from; /* what is being read, for messages */
    err result;
    struct error *error;
};

/* ---- the nearest known name ---- */

enum { NAME_MAX = 64 };

/* Edit distance; names longer than NAME_MAX are far from everything. */
static size_t distance(str a, str b)
{
    size_t row[NAME_MAX + 1];
    if (a.size > NAME_MAX || b.size > NAME_MAX) {
        return SIZE_MAX;
    }
    for (size_t j = 0; j <= b.size; j++) {
        row[j] = j;
    }
    for (size_t i = 1; i <= a.size; i++) {
        size_t diagonal = row[0];
        row[0] = i;
        for (size_t j = 1; j <= b.size; j++) {
            size_t above = row[j];
            size_t change = diagonal + (a.data[i - 1] == b.data[j - 1] ? 0 : 1);
            size_t best = above < row[j - 1] ? above + 1 : row[j - 1] + 1;
            row[j] = change < best ? change : best;
            diagonal = above;
        }
    }
    return row[b.size];
}

static const char *nearest_section(str name)
{
    const char *nearest = "server";
    size_t least = SIZE_MAX;
    for (size_t i = 0; i < CONFIG_KEY_COUNT; i++) {
        size_t far = distance(name, str_from(SETTINGS[i].section));
        if (far < least) {
            least = far;
            nearest = SETTINGS[i].section;
        }
    }
    return nearest;
}

static const char *nearest_key(str section, str name)
{
    const char *nearest = NULL;
    size_t least = SIZE_MAX;
    for (size_t i = 0; i < CONFIG_KEY_COUNT; i++) {
        size_t far = distance(name, str_from(SETTINGS[i].key));
        bool here = str_equal(section, str_from(SETTINGS[i].section));
        if (here && (nearest == NULL || far < least)) {
            least = far;
            nearest = SETTINGS[i].key;
        }
    }
    return nearest;
}

static bool section_known(str section)
{
    for (size_t i = 0; i < CONFIG_KEY_COUNT; i++) {
        if (str_equal(section, str_from(SETTINGS[i].section))) {
            return true;
        }
    }
    return false;
}

/* CONFIG_KEY_COUNT: not known. */
static enum config_key key_find(str section, str key)
{
    size_t i = 0;
    while (i < CONFIG_KEY_COUNT && !(str_equal(section, str_from(SETTINGS[i].section)) &&
                                     str_equal(key, str_from(SETTINGS[i].key)))) {
        i++;
    }
    return (enum config_key)i;
}

/* ---- values ---- */

/* A number with KiB, MiB, GiB or TiB behind it, or without. */
static bool bytes_parse(str text, i64 *out_value)
{
    static const struct {
        str unit;
        i64 bytes;
    } units[] = {{STR_INIT("KiB"), (i64)1 << 10},
                 {STR_INIT("MiB"), (i64)1 << 20},
                 {STR_INIT("GiB"), (i64)1 << 30},
                 {STR_INIT("TiB"), (i64)1 << 40}};
    i64 number = 0;
    for (size_t i = 0; i < ARRAY_COUNT(units); i++) {
        if (str_ends(text, units[i].unit)) {
            str digits = str_trim(str_slice(text, 0, text.size - units[i].unit.size));
            return str_to_i64(digits, &number) && num_mul_i64(number, units[i].bytes, out_value);
        }
    }
    return str_to_i64(text, out_value);
}

MUST_USE static err value_set(struct loading *loading, enum config_key key, str text)
{
    const struct setting *setting = &SETTINGS[key];
    i64 number = 0;
    bool fits = setting->kind == TEXT ||
                (setting->kind == NUMBER ? str_to_i64(text, &number) : bytes_parse(text, &number));
    if (!fits) {
        return error_set(loading->error, INVALID, ERROR_INVALID_CONFIG,
                         "%.*s: [%s] %s = %.*s: a %s is wanted", STR_ARG(loading->from),
                         setting->section, setting->key, STR_ARG(str_slice(text, 0, 100)),
                         setting->kind == NUMBER ? "number" : "size such as 64MiB");
    }
    if (setting->kind != TEXT && (number < setting->least || number > setting->most)) {
        return error_set(loading->error, INVALID, ERROR_INVALID_CONFIG,
                         "%.*s: [%s] %s = %.*s: it must be %lld to %lld", STR_ARG(loading->from),
                         setting->section, setting->key, STR_ARG(str_slice(text, 0, 100)),
                         (long long)setting->least, (long long)setting->most);
    }
    str copy = str_copy(loading->arena, text);
    if (copy.data == NULL) {
        return error_memory(loading->error);
    }
    loading->config->texts[key] = copy;
    loading->config->numbers[key] = number;
    loading->config->given[key] = true;
    return OK;
}

MUST_USE static err unknown(struct loading *loading, str section, str key)
{
    err result = OK;
    if (section.size == 0) {
        result = error_set(loading->error, INVALID, ERROR_INVALID_CONFIG,
                           "%.*s: %.*s stands before any [section]", STR_ARG(loading->from),
                           STR_ARG(str_slice(key, 0, 100)));
        error_hint(loading->error, "the first line is [server], [log] or the like");
        return result;
    }
    if (!section_known(section)) {
        result = error_set(loading->error, INVALID, ERROR_INVALID_CONFIG,
                           "%.*s: there is no section [%.*s]", STR_ARG(loading->from),
                           STR_ARG(str_slice(section, 0, 100)));
        error_hint(loading->error, "did you mean [%s]?", nearest_section(section));
        return result;
    }
    result = error_set(loading->error, INVALID, ERROR_INVALID_CONFIG,
                       "%.*s: there is no %.*s in [%.*s]", STR_ARG(loading->from),
                       STR_ARG(str_slice(key, 0, 100)), STR_ARG(section));
    error_hint(loading->error, "did you mean %s?", nearest_key(section, key));
    return result;
}

/* `allowed_locations` of a [catalog NAME]: URIs with commas between. */
MUST_USE static err locations_add(struct loading *loading, str section, str key, str text)
{
    if (!str_equal(key, STR(LOCATIONS_KEY))) {
        err result = error_set(loading->error, INVALID, ERROR_INVALID_CONFIG,
                               "%.*s: there is no %.*s in [%.*s]", STR_ARG(loading->from),
                               STR_ARG(str_slice(key, 0, 100)), STR_ARG(section));
        error_hint(loading->error, "did you mean " LOCATIONS_KEY "?");
        return result;
    }
    struct config *config = loading->config;
    str part = {0};
    while (str_next(&text, ',', &part)) {
        if (config->location_count == CONFIG_LOCATIONS_MAX) {
            return error_set(loading->error, INVALID, ERROR_INVALID_CONFIG,
                             "%.*s: more than %d allowed locations", STR_ARG(loading->from),
                             CONFIG_LOCATIONS_MAX);
        }
        str copy = str_copy(loading->arena, str_trim(part));
        if (copy.data == NULL) {
            return error_memory(loading->error);
        }
        config->locations[config->location_count] = copy;
        config->location_count += copy.size > 0 ? 1 : 0;
    }
    return OK;
}

MUST_USE static err member_set(struct loading *loading, str section, str key, str value)
{
    if (str_starts(section, STR(CATALOG_SECTION))) {
        return locations_add(loading, section, key, value);
    }
    enum config_key found = key_find(section, key);
    return found == CONFIG_KEY_COUNT ? unknown(loading, section, key)
                                     : value_set(loading, found, value);
}

/* ---- the file ---- */

/* Nobody can say which of two values was meant. An indented line continues the one before. */
MUST_USE static err file_member_set(struct loading *loading, str section, str key, str value)
{
    enum config_key found = key_find(section, key);
    if (found == CONFIG_KEY_COUNT || !loading->config->given[found]) {
        return member_set(loading, section, key, value);
    }
    err result = error_set(loading->error, INVALID, ERROR_INVALID_CONFIG,
                           "%.*s: %.*s in [%.*s] is given twice", STR_ARG(loading->from),
                           STR_ARG(key), STR_ARG(section));
    error_hint(loading->error,
               "keep one; a line that begins with a blank continues the one before");
    return result;
}

static int file_member(void *context, const char *section, const char *name, const char *value)
{
    struct loading *loading = context;
    if (loading->result == OK) {
        loading->result = file_member_set(loading, str_from(section), str_from(name),
                                          str_from(value != NULL ? value : ""));
    }
    return loading->result == OK ? 1 : 0;
}

MUST_USE static err file_load(struct loading *loading, str path)
{
    str text = {0};
    TRY(file_read(loading->arena, path, CONFIG_FILE_BYTES_MAX, &text, loading->error));
    loading->from = path;
    int line = ini_parse_string(text.data, file_member, loading);
    TRY(loading->result);
    if (line != 0) {
        return error_set(loading->error, INVALID, ERROR_INVALID_CONFIG,
                         "%.*s: line %d is neither [section] nor key = value", STR_ARG(path), line);
    }
    loading->config->file = path;
    return OK;
}

MUST_USE static err files_load(struct loading *loading, const char *named)
{
    static const char *const usual[] = {"/etc/lhbox/lhbox.conf", "./lhbox.conf"};
    if (named != NULL) {
        str path = str_copy(loading->arena, str_from(named));
        return path.data != NULL ? file_load(loading, path) : error_memory(loading->error);
    }
    for (size_t i = 0; i < ARRAY_COUNT(usual); i++) {
        if (file_exists(str_from(usual[i]))) {
            return file_load(loading, str_from(usual[i]));
        }
    }
    return OK;
}

/* ---- the environment ---- */

/* SERVER_PORT or CATALOG_MAIN_ALLOWED_LOCATIONS as section and key; false for other words. */
MUST_USE static bool environment_split(struct arena *arena, str name, str *out_section,
                                       str *out_key)
{
    buf lower = buf_create(arena, name.size + 1, NAME_MAX * 4);
    for (size_t i = 0; i < name.size; i++) {
        char byte = name.data[i];
        buf_append_byte(&lower, (u8)(byte >= 'A' && byte <= 'Z' ? byte - 'A' + 'a' : byte));
    }
    str text = buf_str(&lower);
    if (!buf_ok(&lower)) {
        return false;
    }
    for (size_t i = 0; i < CONFIG_KEY_COUNT; i++) {
        str section = str_from(SETTINGS[i].section);
        if (str_starts(text, section) && text.size > section.size &&
            text.data[section.size] == '_') {
            *out_section = section;
            *out_key = str_slice(text, section.size + 1, text.size);
            return true;
        }
    }
    if (str_starts(text, STR("catalog_")) && str_ends(text, STR("_" LOCATIONS_KEY))) {
        *out_section = STR(CATALOG_SECTION);
        *out_key = STR(LOCATIONS_KEY);
        return true;
    }
    return false;
}

MUST_USE static err environment_load(struct loading *loading)
{
    for (char **entry = environ; entry != NULL && *entry != NULL; entry++) {
        str rest = str_from(*entry);
        str section = {0};
        str key = {0};
        i64 equals = str_find_byte(rest, '=');
        if (equals < 0 || !str_starts(rest, STR("LHBOX_"))) {
            continue;
        }
        str name = str_slice(rest, 0, (size_t)equals);
        if (!environment_split(loading->arena, str_slice(name, 6, name.size), &section, &key)) {
            continue; /* LHBOX_URL and the like belong to the commands */
        }
        loading->from = name;
        TRY(member_set(loading, section, key, str_slice(rest, (size_t)equals + 1, rest.size)));
    }
    return OK;
}

/* ---- all of it ---- */

MUST_USE static err override_set(struct loading *loading, const struct config_override *override)
{
    str key = str_from(override->key);
    str section = STR("server");
    i64 dot = str_find_byte(key, '.');
    if (dot >= 0) {
        section = str_slice(key, 0, (size_t)dot);
        key = str_slice(key, (size_t)dot + 1, key.size);
    }
    loading->from = str_format(loading->arena, "--%s", override->key);
    return member_set(loading, section, key, str_from(override->value));
}

MUST_USE static err defaults_set(struct loading *loading)
{
    loading->from = STR("defaults");
    for (size_t i = 0; i < CONFIG_KEY_COUNT; i++) {
        TRY(value_set(loading, (enum config_key)i, str_from(SETTINGS[i].value)));
        loading->config->given[i] = false;
    }
    return OK;
}

err config_load(struct arena *arena, const struct config_source *source, struct config **out_config,
                struct error *error)
{
    struct config *config = arena_alloc(arena, sizeof(*config));
    if (config == NULL) {
        return error_memory(error);
    }
    config->file = STR("");
    struct loading loading = {.arena = arena, .config = config, .result = OK, .error = error};
    TRY(defaults_set(&loading));
    TRY(files_load(&loading, source->file));
    TRY(environment_load(&loading));
    for (size_t i = 0; i < source->override_count; i++) {
        TRY(override_set(&loading, &source->overrides[i]));
    }
    *out_config = config;
    return OK;
}

str config_text(const struct config *config, enum config_key key)
{
    return config->texts[key];
}

i64 config_number(const struct config *config, enum config_key key)
{
    assert(SETTINGS[key].kind != TEXT);
    return config->numbers[key];
}

void config_default(struct config *config, enum config_key key, str text, i64 number)
{
    if (!config->given[key]) {
        config->texts[key] = text;
        config->numbers[key] = number;
    }
}

void config_print(const struct config *config, buf *out)
{
    const char *section = "";
    for (size_t i = 0; i < CONFIG_KEY_COUNT; i++) {
        if (!str_equal(str_from(section), str_from(SETTINGS[i].section))) {
            section = SETTINGS[i].section;
            buf_append_format(out, "%s[%s]\n", i > 0 ? "\n" : "", section);
        }
        buf_append_format(out, "%s = %.*s\n", SETTINGS[i].key, STR_ARG(config->texts[i]));
    }
    for (size_t i = 0; i < config->location_count; i++) {
        buf_append_format(out, "%s%.*s",
                          i == 0 ? "\n[catalog embedded]\n" LOCATIONS_KEY " = " : ",",
                          STR_ARG(config->locations[i]));
    }
    buf_append(out, config->location_count > 0 ? STR("\n") : STR(""));
}

void config_print_reference(buf *out)
{
    const char *section = "";
    for (size_t i = 0; i < CONFIG_KEY_COUNT; i++) {
        const struct setting *setting = &SETTINGS[i];
        if (!str_equal(str_from(section), str_from(setting->section))) {
            section = setting->section;
            buf_append_format(out, "\n## [%s]\n\n| key | default | meaning |\n|---|---|---|\n",
                              section);
        }
        buf_append_format(out, "| `%s` | `%s` | %s |\n", setting->key, setting->value,
                          setting->meaning);
    }
}
