/* config: the settings of a process, from file, environment and flags.
 *
 * Later wins: the defaults of config_keys.def, the INI file (--config, else /etc/lhbox/lhbox.conf,
 * else
 * ./lhbox.conf), LHBOX_<SECTION>_<KEY>, flags. A section or key that is not known is an error that
 * names the nearest known one. Secrets are never values here: settings name the files that hold
 * them.
 *
 * Made once at the start, then only read. */
#ifndef LHBOX_SERVER_CONFIG_H
#define LHBOX_SERVER_CONFIG_H

#include "base/buf.h"
#include "base/error.h"

enum config_key {
#define X(name, section, key, kind, value, least, most, meaning) CONFIG_##name,
#include "server/config_keys.def"
#undef X
    CONFIG_KEY_COUNT
};

enum { CONFIG_LOCATIONS_MAX = 64, CONFIG_FILE_BYTES_MAX = 1024 * 1024 };

struct config {
    str file; /* that was read; empty: none */
    str texts[CONFIG_KEY_COUNT];
    i64 numbers[CONFIG_KEY_COUNT];
    bool given[CONFIG_KEY_COUNT]; /* not the default */
    /* `allowed_locations` of all [catalog NAME] sections: URI prefixes for tables of the embedded
     * catalog. */
    str locations[CONFIG_LOCATIONS_MAX];
    size_t location_count;
};

/* A flag's value: `key` is "port" or "server.port" for [server] port. */
struct config_override {
    const char *key;
    const char *value;
};

struct config_source {
    const char *file; /* NULL: the usual places; none of them has to be there */
    const struct config_override *overrides;
    size_t override_count;
};

/* INVALID with invalid_config; NOT_FOUND when a named file is missing. Values live in the arena. */
MUST_USE err config_load(struct arena *arena, const struct config_source *source,
                         struct config **out_config, struct error *error);
str config_text(const struct config *config, enum config_key key);
i64 config_number(const struct config *config, enum config_key key); /* NUMBER and BYTES */
/* Sets a value that nobody gave: another default, as `lhbox dev` has them. */
void config_default(struct config *config, enum config_key key, str text, i64 number);
/* All effective values as an INI file. */
void config_print(const struct config *config, buf *out);
/* The table itself, for docs/configuration.md. */
void config_print_reference(buf *out);

#endif
