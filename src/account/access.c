#include "account/access.h"

#include "base/assert.h"
#include "io/crypto.h"

enum { LAST_USED_STEP_SECONDS = 60 };

/* ---- authentication ---- */

static err unauthorized(struct error *error)
{
    err result = error_set(error, DENIED, ERROR_UNAUTHORIZED,
                           "no API key or token, or not a good one");
    error_hint(error, "send `Authorization: Bearer al_key_…`; `lhbox key create` makes a key");
    return result;
}

struct credential {
    struct id_key key;
    struct sha256 hash;
    struct arena *arena;
    struct principal principal;
    bool stale; /* last_used_at wants to be moved */
};

/* Token rows point at their key, so that deleting a key ends its tokens. */
static const char SELECT_KEY[] =
    "SELECT k.id, k.project, k.level, k.sha256, k.expires_at, k.last_used_at FROM api_key k "
    "WHERE k.id = ?1 AND k.deleted_at IS NULL";
static const char SELECT_TOKEN[] =
    "SELECT k.id, k.project, k.level, t.sha256, t.expires_at, k.last_used_at FROM token t "
    "JOIN api_key k ON k.id = t.key_id WHERE t.id = ?1 AND k.deleted_at IS NULL "
    "AND (k.expires_at IS NULL OR k.expires_at > ?2)";

static err credential_find(struct db_tx *tx, void *context, struct error *error)
{
    struct credential *wanted = context;
    bool is_token = wanted->key.kind == ID_KEY_TOKEN;
    struct db_value values[] = {DB_T(wanted->key.public_id), DB_N(db_now(tx))};
    struct db_rows rows = {0};
    TRY(db_query(tx, wanted->arena, is_token ? SELECT_TOKEN : SELECT_KEY, values, is_token ? 2 : 1,
                 &rows, error));
    static const u8 nobody[32];
    bool found = rows.row_count == 1 && db_at(&rows, 0, 3)->bytes.size == sizeof(nobody);
    const void *stored = found ? (const void *)db_at(&rows, 0, 3)->bytes.data
                               : (const void *)nobody;
    bool equal = crypto_equal(stored, wanted->hash.bytes, sizeof(nobody));
    if (!found || !equal) {
        return unauthorized(error);
    }
    if (db_at(&rows, 0, 4)->kind != DB_NULL && db_number(&rows, 0, 4) <= db_now(tx)) {
        return unauthorized(error);
    }
    wanted->principal = (struct principal){db_text(&rows, 0, 1), db_text(&rows, 0, 0),
                                           (enum access_level)db_number(&rows, 0, 2)};
    wanted->stale = db_number(&rows, 0, 5) + LAST_USED_STEP_SECONDS * TIME_SECOND_US < db_now(tx);
    return OK;
}

static err touch(struct db_tx *tx, void *context, struct error *error)
{
    struct credential *used = context;
    return db_run(tx, error, "UPDATE api_key SET last_used_at = ?1 WHERE id = ?2", DB_N(db_now(tx)),
                  DB_T(used->principal.key_id));
}

err access_authenticate(const struct db *db, struct arena *arena, str authorization,
                        struct principal *out_principal, struct error *error)
{
    str text = id_bearer(authorization);
    if (str_starts(text, STR("al_send_"))) {
        err result = error_set(error, DENIED, ERROR_SEND_ONLY,
                               "a send key is good for its sink's send route only");
        error_hint(error, "use an API key (al_key_…) here");
        return result;
    }
    struct credential wanted = {.arena = arena};
    if (text.data == NULL || !id_key_parse(text, &wanted.key)) {
        return unauthorized(error);
    }
    wanted.hash = crypto_sha256(text);
    TRY(db_read(db, credential_find, &wanted, error));
    if (wanted.stale && db_transact(db, touch, &wanted, NULL) != OK) {
        /* The stamp is for people; a request is not refused for it. */
        wanted.stale = false;
    }
    *out_principal = wanted.principal;
    return OK;
}

err access_require(const struct principal *principal, enum access_level level, struct error *error)
{
    assert(level > ACCESS_NONE);
    if (principal->level >= level) {
        return OK;
    }
    err result = error_set(error, DENIED, ERROR_FORBIDDEN,
                           "this needs a key of level %s, yours is %s", access_level_text(level),
                           access_level_text(principal->level));
    error_hint(error, "an admin makes one with `lhbox key create NAME --level %s`",
               access_level_text(level));
    return result;
}

/* ---- making and ending ---- */

struct new_project {
    str id;
    str name;
    str key_id;
    struct sha256 hash;
};

static err insert_key(struct db_tx *tx, str id, str project, str name, enum access_level level,
                      const struct sha256 *hash, instant expires_at, struct error *error)
{
    return db_run(tx, error,
                  "INSERT INTO api_key (id, project, name, level, sha256, created_at, expires_at) "
                  "VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)",
                  DB_T(id), DB_T(project), DB_T(name), DB_N(level),
                  DB_B(((str){(const char *)hash->bytes, sizeof(hash->bytes)})), DB_N(db_now(tx)),
                  expires_at == 0 ? DB_NIL : DB_N(expires_at));
}

static err insert_project(struct db_tx *tx, void *context, struct error *error)
{
    struct new_project *made = context;
    err inserted = db_run(tx, NULL,
                          "INSERT INTO project (id, name, created_at) VALUES (?1, ?2, ?3)",
                          DB_T(made->id), DB_T(made->name), DB_N(db_now(tx)));
    if (inserted == CONFLICT) {
        return error_set(error, CONFLICT, ERROR_NAME_TAKEN, "there is a project %.*s already",
                         STR_ARG(made->name));
    }
    TRY(inserted);
    return insert_key(tx, made->key_id, made->id, STR("first"), ACCESS_ADMIN, &made->hash, 0,
                      error);
}

static err check_name(str name, struct error *error)
{
    for (size_t i = 0; i < name.size; i++) {
        char c = name.data[i];
        bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                     c == '_' || c == '-';
        if (!plain) {
            name.size = 0;
        }
    }
    if (name.size >= 1 && name.size <= ACCESS_NAME_MAX) {
        return OK;
    }
    error_field_text(error, "path", STR("name"));
    return error_set(error, INVALID, ERROR_INVALID_REQUEST,
                     "name: 1 to %d letters, digits, _ or - are wanted", ACCESS_NAME_MAX);
}

static err make_key_text(struct arena *arena, const struct seam *seam, enum id_key_kind kind,
                         str *out_text, str *out_id, struct sha256 *out_hash, struct error *error)
{
    str text = id_key_make(arena, seam, kind);
    struct id_key key;
    if (text.data == NULL) {
        return error_memory(error);
    }
    bool well_formed = id_key_parse(text, &key);
    assert(well_formed);
    *out_text = text;
    *out_id = key.public_id;
    *out_hash = crypto_sha256(text);
    return OK;
}

err access_create_project(const struct db *db, struct arena *arena, const struct seam *seam,
                          str name, str *out_project_id, str *out_key, struct error *error)
{
    TRY(check_name(name, error));
    struct new_project made = {.id = id_short_make(arena, seam, "prj_"), .name = name};
    str text = {0};
    TRY(make_key_text(arena, seam, ID_KEY_API, &text, &made.key_id, &made.hash, error));
    if (made.id.data == NULL) {
        return error_memory(error);
    }
    TRY(db_transact(db, insert_project, &made, error));
    *out_project_id = made.id;
    *out_key = text;
    return OK;
}

struct new_key {
    str project;
    struct access_key row;
    struct sha256 hash;
};

static err insert_api_key(struct db_tx *tx, void *context, struct error *error)
{
    struct new_key *made = context;
    made->row.created_at = db_now(tx);
    return insert_key(tx, made->row.id, made->project, made->row.name, made->row.level, &made->hash,
                      made->row.expires_at, error);
}

err access_create_key(const struct db *db, struct arena *arena, const struct seam *seam,
                      str project, str name, enum access_level level, instant expires_at,
                      str *out_key, struct access_key *out_row, struct error *error)
{
    TRY(check_name(name, error));
    struct new_key made = {.project = project};
    str text = {0};
    TRY(make_key_text(arena, seam, ID_KEY_API, &text, &made.row.id, &made.hash, error));
    made.row.name = name;
    made.row.level = level;
    made.row.expires_at = expires_at;
    TRY(db_transact(db, insert_api_key, &made, error));
    *out_key = text;
    *out_row = made.row;
    return OK;
}

struct key_end {
    str project;
    str key_id;
};

static err end_key(struct db_tx *tx, void *context, struct error *error)
{
    struct key_end *end = context;
    i64 changes = 0;
    const struct db_value values[] = {DB_N(db_now(tx)), DB_T(end->key_id), DB_T(end->project)};
    TRY(db_exec(tx,
                "UPDATE api_key SET deleted_at = ?1 WHERE id = ?2 AND project = ?3 "
                "AND deleted_at IS NULL",
                values, ARRAY_COUNT(values), &changes, error));
    if (changes == 0) {
        error_hint(error, "`lhbox key list` shows the ids");
        return error_set(error, NOT_FOUND, ERROR_NOT_FOUND, "there is no key %.*s",
                         STR_ARG(end->key_id));
    }
    return db_run(tx, error, "DELETE FROM token WHERE key_id = ?1", DB_T(end->key_id));
}

err access_delete_key(const struct db *db, str project, str key_id, struct error *error)
{
    struct key_end end = {project, key_id};
    return db_transact(db, end_key, &end, error);
}

/* ---- tokens ---- */

struct new_token {
    str id;
    str key_id;
    struct sha256 hash;
};

static err insert_token(struct db_tx *tx, void *context, struct error *error)
{
    struct new_token *made = context;
    TRY(db_run(tx, error, "DELETE FROM token WHERE expires_at <= ?1", DB_N(db_now(tx))));
    return db_run(tx, error,
                  "INSERT INTO token (id, key_id, sha256, expires_at) VALUES (?1, ?2, ?3, ?4)",
                  DB_T(made->id), DB_T(made->key_id),
                  DB_B(((str){(const char *)made->hash.bytes, sizeof(made->hash.bytes)})),
                  DB_N(db_now(tx) + ACCESS_TOKEN_SECONDS * TIME_SECOND_US));
}

err access_make_token(const struct db *db, struct arena *arena, const struct seam *seam, str secret,
                      str *out_token, i64 *out_seconds, struct error *error)
{
    struct credential wanted = {.arena = arena};
    if (str_starts(secret, STR("al_send_"))) {
        return error_set(error, DENIED, ERROR_SEND_ONLY, "a send key never becomes a token");
    }
    if (!id_key_parse(secret, &wanted.key) || wanted.key.kind == ID_KEY_SEND) {
        return unauthorized(error);
    }
    wanted.hash = crypto_sha256(secret);
    TRY(db_read(db, credential_find, &wanted, error));
    struct new_token made = {.key_id = wanted.principal.key_id};
    str text = {0};
    TRY(make_key_text(arena, seam, ID_KEY_TOKEN, &text, &made.id, &made.hash, error));
    TRY(db_transact(db, insert_token, &made, error));
    *out_token = text;
    *out_seconds = ACCESS_TOKEN_SECONDS;
    return OK;
}

/* ---- lists ---- */

struct key_list {
    struct arena *arena;
    str project;
    str after;
    size_t limit;
    struct access_key *keys;
    size_t count;
};

static err read_keys(struct db_tx *tx, void *context, struct error *error)
{
    struct key_list *list = context;
    const struct db_value values[] = {DB_T(list->project), DB_T(list->after), DB_N(list->limit)};
    struct db_rows rows = {0};
    TRY(db_query(tx, list->arena,
                 "SELECT id, name, level, created_at, expires_at, last_used_at FROM api_key "
                 "WHERE project = ?1 AND deleted_at IS NULL AND id > ?2 ORDER BY id LIMIT ?3",
                 values, ARRAY_COUNT(values), &rows, error));
    list->keys = arena_array(list->arena, rows.row_count, sizeof(*list->keys));
    if (list->keys == NULL) {
        return error_memory(error);
    }
    list->count = rows.row_count;
    for (size_t i = 0; i < rows.row_count; i++) {
        list->keys[i] = (struct access_key){
            .id = db_text(&rows, i, 0),
            .name = db_text(&rows, i, 1),
            .level = (enum access_level)db_number(&rows, i, 2),
            .created_at = db_number(&rows, i, 3),
            .expires_at = db_number(&rows, i, 4),
            .last_used_at = db_number(&rows, i, 5),
        };
    }
    return OK;
}

err access_list_keys(const struct db *db, struct arena *arena, str project, str after, size_t limit,
                     struct access_key **out_keys, size_t *out_count, struct error *error)
{
    struct key_list list = {.arena = arena, .project = project, .after = after, .limit = limit};
    TRY(db_read(db, read_keys, &list, error));
    *out_keys = list.keys;
    *out_count = list.count;
    return OK;
}

struct key_count {
    struct arena *arena;
    str project;
    i64 count;
};

static err count_keys(struct db_tx *tx, void *context, struct error *error)
{
    struct key_count *wanted = context;
    const struct db_value values[] = {DB_T(wanted->project)};
    struct db_rows rows = {0};
    TRY(db_query(tx, wanted->arena,
                 "SELECT count(*) FROM api_key WHERE project = ?1 AND deleted_at IS NULL", values,
                 ARRAY_COUNT(values), &rows, error));
    wanted->count = db_number(&rows, 0, 0);
    return OK;
}

err access_count_keys(const struct db *db, str project, i64 *out_count, struct error *error)
{
    AUTO_ARENA struct arena *arena = arena_create(64 * (size_t)KIB);
    struct key_count wanted = {.arena = arena, .project = project};
    TRY(db_read(db, count_keys, &wanted, error));
    *out_count = wanted.count;
    return OK;
}

struct project_list {
    struct arena *arena;
    struct access_project *projects;
    size_t count;
};

static err read_projects(struct db_tx *tx, void *context, struct error *error)
{
    struct project_list *list = context;
    struct db_rows rows = {0};
    TRY(db_query(tx, list->arena,
                 "SELECT id, name, created_at FROM project ORDER BY created_at, id", NULL, 0, &rows,
                 error));
    list->projects = arena_array(list->arena, rows.row_count, sizeof(*list->projects));
    if (list->projects == NULL) {
        return error_memory(error);
    }
    list->count = rows.row_count;
    for (size_t i = 0; i < rows.row_count; i++) {
        list->projects[i] = (struct access_project){db_text(&rows, i, 0), db_text(&rows, i, 1),
                                                    db_number(&rows, i, 2)};
    }
    return OK;
}

err access_list_projects(const struct db *db, struct arena *arena,
                         struct access_project **out_projects, size_t *out_count,
                         struct error *error)
{
    struct project_list list = {.arena = arena};
    TRY(db_read(db, read_projects, &list, error));
    *out_projects = list.projects;
    *out_count = list.count;
    return OK;
}

/* ---- levels ---- */

const char *access_level_text(enum access_level level)
{
    switch (level) {
    case ACCESS_NONE:
        return "none";
    case ACCESS_READ:
        return "read";
    case ACCESS_WRITE:
        return "write";
    case ACCESS_ADMIN:
        return "admin";
    }
    return "none";
}

err access_level_parse(str text, enum access_level *out_level, struct error *error)
{
    for (enum access_level level = ACCESS_READ; level <= ACCESS_ADMIN; level++) {
        if (str_equal(text, str_from(access_level_text(level)))) {
            *out_level = level;
            return OK;
        }
    }
    error_field_text(error, "path", STR("level"));
    return error_set(error, INVALID, ERROR_INVALID_REQUEST,
                     "level: read, write or admin is wanted");
}
