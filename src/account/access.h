/* access: projects, API keys, tokens, and who may do what.
 *
 * Keys are stored as SHA-256 of their whole text and compared in constant time, with a dummy
 * comparison where no row is found. A send key is never a principal: it is looked up by the send
 * route alone. Any thread; blocking. */
#ifndef LHBOX_ACCOUNT_ACCESS_H
#define LHBOX_ACCOUNT_ACCESS_H

#include "base/id.h"
#include "io/db.h"

enum access_level { ACCESS_NONE = 0, ACCESS_READ = 1, ACCESS_WRITE = 2, ACCESS_ADMIN = 3 };

enum { ACCESS_NAME_MAX = 64, ACCESS_TOKEN_SECONDS = 3600 };

struct principal {
    str project;
    str key_id;
    enum access_level level;
};

/* `authorization` is the header's value. OK: the principal, its slices in the arena. DENIED with
 * unauthorized (no key, a wrong one, an expired or deleted one) or send_only (a send key). */
MUST_USE err access_authenticate(const struct db *db, struct arena *arena, str authorization,
                                 struct principal *out_principal, struct error *error);
/* DENIED with forbidden when the level is too low. */
MUST_USE err access_require(const struct principal *principal, enum access_level level,
                            struct error *error);

/* A project with its first admin key. CONFLICT: name_taken. */
MUST_USE err access_create_project(const struct db *db, struct arena *arena,
                                   const struct seam *seam, str name, str *out_project_id,
                                   str *out_key, struct error *error);

struct access_project {
    str id;
    str name;
    instant created_at;
};
MUST_USE err access_list_projects(const struct db *db, struct arena *arena,
                                  struct access_project **out_projects, size_t *out_count,
                                  struct error *error);

struct access_key {
    str id;
    str name;
    enum access_level level;
    instant created_at;
    instant expires_at;   /* 0: never */
    instant last_used_at; /* 0: never; exact to a minute */
};

/* expires_at 0: never. The key's text is shown by this call alone. */
MUST_USE err access_create_key(const struct db *db, struct arena *arena, const struct seam *seam,
                               str project, str name, enum access_level level, instant expires_at,
                               str *out_key, struct access_key *out_row, struct error *error);
/* After the id `after` in order of id. */
MUST_USE err access_list_keys(const struct db *db, struct arena *arena, str project, str after,
                              size_t limit, struct access_key **out_keys, size_t *out_count,
                              struct error *error);
/* Effective at once, its tokens included. NOT_FOUND with not_found. */
MUST_USE err access_delete_key(const struct db *db, str project, str key_id, struct error *error);
/* How many API keys there are. */
MUST_USE err access_count_keys(const struct db *db, str project, i64 *out_count,
                               struct error *error);
/* A token of the key's project and level. `secret` is the whole API key. DENIED: unauthorized. */
MUST_USE err access_make_token(const struct db *db, struct arena *arena, const struct seam *seam,
                               str secret, str *out_token, i64 *out_seconds, struct error *error);
MUST_USE err access_level_parse(str text, enum access_level *out_level, struct error *error);
const char *access_level_text(enum access_level level);

#endif
