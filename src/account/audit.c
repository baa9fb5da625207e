#include "account/audit.h"

static err insert_entry(struct db_tx *tx, void *context, struct error *error)
{
    const struct audit_entry *entry = context;
    return db_run(
        tx, error,
        "INSERT INTO audit (seq, at, project, actor, action, object, outcome, request_id) "
        "VALUES ((SELECT coalesce(max(seq), 0) + 1 FROM audit), ?1, ?2, ?3, ?4, ?5, ?6, ?7)",
        DB_N(db_now(tx)), DB_T(entry->project), DB_T(entry->actor), DB_T(entry->action),
        DB_T(entry->object), DB_T(entry->outcome), DB_T(entry->request_id));
}

err audit_write(const struct db *db, const struct audit_entry *entry, struct error *error)
{
    struct audit_entry copy = *entry;
    return db_transact(db, insert_entry, &copy, error);
}

err audit_write_later(const struct db *db, const struct audit_entry *entry, struct error *error)
{
    struct audit_entry copy = *entry;
    return db_transact_later(db, insert_entry, &copy, error);
}

struct entry_list {
    struct arena *arena;
    str project;
    i64 before;
    size_t limit;
    struct audit_entry *entries;
    size_t count;
};

static err read_entries(struct db_tx *tx, void *context, struct error *error)
{
    struct entry_list *list = context;
    const struct db_value values[] = {DB_T(list->project), DB_N(list->before), DB_N(list->limit)};
    struct db_rows rows = {0};
    TRY(db_query(tx, list->arena,
                 "SELECT seq, at, project, actor, action, object, outcome, request_id FROM audit "
                 "WHERE project = ?1 AND (?2 = 0 OR seq < ?2) ORDER BY seq DESC LIMIT ?3",
                 values, ARRAY_COUNT(values), &rows, error));
    list->entries = arena_array(list->arena, rows.row_count, sizeof(*list->entries));
    if (list->entries == NULL) {
        return error_memory(error);
    }
    list->count = rows.row_count;
    for (size_t i = 0; i < rows.row_count; i++) {
        list->entries[i] = (struct audit_entry){
            .seq = db_number(&rows, i, 0),
            .at = db_number(&rows, i, 1),
            .project = db_text(&rows, i, 2),
            .actor = db_text(&rows, i, 3),
            .action = db_text(&rows, i, 4),
            .object = db_text(&rows, i, 5),
            .outcome = db_text(&rows, i, 6),
            .request_id = db_text(&rows, i, 7),
        };
    }
    return OK;
}

err audit_list(const struct db *db, struct arena *arena, str project, i64 before, size_t limit,
               struct audit_entry **out_entries, size_t *out_count, struct error *error)
{
    struct entry_list list = {.arena = arena, .project = project, .before = before, .limit = limit};
    TRY(db_read(db, read_entries, &list, error));
    *out_entries = list.entries;
    *out_count = list.count;
    return OK;
}
