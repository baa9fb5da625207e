/* access: projects, API keys, tokens, and who may do what.
 *
 * Keys are stored as SHA-256 of their whole text and compared in constant time, with a dummy comparison
 * where no row is found. A send key is never a principal: it is looked up by the send route alone.
 * Any thread. */
#ifndef LHBOX_SINK_ACCESS_H
#define LHBOX_SINK_ACCESS_H

#include "base/id.h"
#include "io/db.h"

enum access_level { ACCESS_NONE = 0, ACCESS_READ = 1, ACCESS_WRITE = 2, ACCESS_ADMIN = 3 };

struct principal {
    str project;
    str key_id;
    enum access_level level;
};

/* `authorization` is the header's value. OK: the principal. DENIED with unauthorized (no key, a wrong
 * one, an expired or deleted one) or send_only (a send key). */
MUST_USE err access_authenticate(const struct db *db, struct arena *arena, str authorization,
                                 struct principal *out_principal, struct error *error);
/* DENIED with forbidden when the level is too low. */
MUST_USE err access_require(const struct principal *principal, enum access_level level,
                            struct error *error);

MUST_USE err access_create_project(const struct db *db, struct arena *arena,
                                   const struct seam *seam, str name, str *out_project_id,
                                   str *out_key, struct error *error);
MUST_USE err access_create_key(const struct db *db, struct arena *arena, const struct seam *seam,
                               str project, str name, enum access_level level, instant expires_at,
                               str *out_key, str *out_key_id, struct error *error);
MUST_USE err access_delete_key(const struct db *db, str project, str key_id, struct error *error);
/* A token of the key's project and level, good for an hour. `secret` is the whole API key. */
MUST_USE err access_make_token(const struct db *db, struct arena *arena, const struct seam *seam,
                               str secret, str *out_token, i64 *out_seconds, struct error *error);
MUST_USE err access_level_parse(str text, enum access_level *out_level, struct error *error);
const char *access_level_text(enum access_level level);

#endif
