#include "base/log.h"
#include "base/planted.h"
#include "table/catalog_keep.h"
#include "table/catalog_state.h"
#include "table/document.h"
#include "table/metadata_file.h"

enum { COMMIT_TRIES_MAX = 5 };

/* load pointers and files -> sent twice? -> check all -> apply all -> write all files -> one
 * transaction moves all pointers -> hints -> trim. A lost swap begins again at the load. */

/* One table's way through one try. */
struct step {
    struct catalog_change *change;
    const json_t *requirements; /* NULL: none */
    const json_t *updates;
    struct catalog_pointer pointer;
    struct metadata *base; /* NULL: no such table */
    struct metadata *after;
    str written;                /* data NULL: nothing changed */
    struct metadata_text *text; /* what was written, of `after` */
    bool staged;                /* after, written and text were made before the commit */
};

enum try_result {
    TRY_DONE,
    TRY_LOST, /* a pointer had moved */
};

MUST_USE static err step_begin(struct step *step, struct catalog_change *change,
                               struct error *error)
{
    *step = (struct step){
        .change = change,
        .requirements = json_object_get(change->request, "requirements"),
        .updates = json_object_get(change->request, "updates"),
    };
    if (!json_is_array(step->updates)) {
        return error_set(error, INVALID, ERROR_INVALID_REQUEST, "updates must be an array");
    }
    if (step->requirements != NULL && !json_is_array(step->requirements)) {
        return error_set(error, INVALID, ERROR_INVALID_REQUEST, "requirements must be an array");
    }
    TRY(catalog_check_namespace(change->name.namespace_name, error));
    return catalog_check_name(change->name.name, error);
}

static bool has_member(const json_t *array, const char *member, str value)
{
    for (size_t i = 0; i < json_array_size(array); i++) {
        if (str_equal(document_text(json_array_get(array, i), member), value)) {
            return true;
        }
    }
    return false;
}

static bool step_creates(const struct step *step)
{
    return has_member(step->requirements, "type", STR("assert-create"));
}

MUST_USE static err step_load(struct catalog_local *local, struct arena *arena, struct step *step,
                              struct error *error)
{
    struct error why = {0};
    err result = catalog_read(local, arena, step->change->name, &step->pointer, &step->base, &why);
    if (result == OK || (result == NOT_FOUND && step_creates(step))) {
        return OK;
    }
    return error_set(error, result, why.code, "%s", why.message);
}

/* The assigned uuid of a create-commit is the table's: the same request made it. */
static bool step_made_it(const struct step *step)
{
    if (step->base == NULL || !step_creates(step)) {
        return false;
    }
    for (size_t i = 0; i < json_array_size(step->updates); i++) {
        str uuid = document_text(json_array_get(step->updates, i), "uuid");
        if (str_equal_ignore_case(uuid, metadata_uuid(step->base))) {
            return true;
        }
    }
    return false;
}

/* A commit is all or nothing, so one that was sent twice has left all its snapshots, or none. */
static bool was_applied(const struct step *steps, size_t count)
{
    size_t proofs = 0;
    for (size_t i = 0; i < count; i++) {
        const struct step *step = &steps[i];
        bool adds = has_member(step->updates, "action", STR("add-snapshot"));
        if (adds && (step->base == NULL || !metadata_has_applied(step->base, step->updates))) {
            return false;
        }
        proofs += adds || step_made_it(step) ? 1 : 0;
    }
    return proofs > 0;
}

MUST_USE static err step_check(struct catalog_local *local, const struct step *step,
                               struct error *error)
{
    if (step->base != NULL && step_creates(step)) {
        return error_set(error, CONFLICT, ERROR_TABLE_EXISTS,
                         "Requirement failed: table already exists: %.*s",
                         STR_ARG(step->change->name.name));
    }
    if (step->base == NULL) {
        AUTO_ARENA struct arena *scratch = arena_create(4 * MIB);
        str properties = {0};
        TRY(catalog_rows_load_namespace(&local->rows, scratch, step->change->name.namespace_name,
                                        &properties, error));
        TRY(catalog_rows_check_free(&local->rows, CATALOG_TABLE, step->change->name, error));
    }
    return step->requirements != NULL ? metadata_check(step->base, step->requirements, error) : OK;
}

static bool is_of_schema(str action)
{
    return str_equal(action, STR("add-schema")) || str_equal(action, STR("set-current-schema")) ||
           str_equal(action, STR("upgrade-format-version"));
}

/* A new reference. Specs, sort orders and snapshots are judged by the current schema, and some
 * clients say which that is at the end of the list that makes a table: here it comes first. */
static json_t *first_updates(const json_t *updates)
{
    json_t *ordered = json_array();
    for (int pass = 0; pass < 2; pass++) {
        for (size_t i = 0; i < json_array_size(updates); i++) {
            json_t *update = json_array_get(updates, i);
            if (is_of_schema(document_text(update, "action")) == (pass == 0)) {
                document_append(ordered, json_incref(update));
            }
        }
    }
    return ordered;
}

MUST_USE static err step_apply(struct catalog_local *local, struct arena *arena, struct step *step,
                               struct error *error)
{
    if (step->base != NULL) {
        TRY(metadata_copy(step->base, &step->after, error));
        return metadata_apply(step->after, step->updates, seam_now(local->seam),
                              step->pointer.metadata_location, error);
    }
    str location = catalog_place(arena, local->seam, local->tables_uri, step->change->name);
    if (location.data == NULL) {
        return error_memory(error);
    }
    json_auto_t *updates = first_updates(step->updates);
    return metadata_create_from_updates(updates, location, local->seam, &step->after, error);
}

MUST_USE static err step_write(struct catalog_local *local, struct arena *arena, struct step *step,
                               struct store_group *group, struct error *error)
{
    bool changed = step->base == NULL ||
                   metadata_last_updated(step->base) != metadata_last_updated(step->after);
    if (!changed) {
        return OK;
    }
    TRY(metadata_file_check(local->locations, metadata_json(step->after), error));
    if (step->base == NULL) {
        TRY(metadata_file_make_directories(local->locations, metadata_location(step->after),
                                           error));
    }
    str previous = step->pointer.metadata_location;
    AUTO_METADATA_TEXT struct metadata_text *before = metadata_cache_find_text(
        &local->shared->cache, previous);
    TRY(metadata_text_print(step->after, before, &step->text, error));
    return metadata_file_write(local->locations, arena, local->seam, metadata_json(step->after),
                               metadata_text_bytes(step->text), previous, group, &step->written,
                               error);
}

/* True when the pointer of the first step that moves one is ours: then all are. */
static bool swap_landed(struct catalog_local *local, struct arena *arena,
                        const struct catalog_swap *swap)
{
    struct catalog_pointer pointer = {0};
    err result = catalog_rows_find(&local->rows, arena, swap->item, swap->name, &pointer, NULL);
    return result == OK && !str_equal(swap->from, swap->to) &&
           str_equal(pointer.metadata_location, swap->to);
}

MUST_USE static err swap_pointers(struct catalog_local *local, struct arena *arena,
                                  const struct step *steps, size_t count, struct error *error)
{
    struct catalog_swap *swaps = arena_array(arena, count, sizeof(*swaps));
    if (swaps == NULL) {
        return error_memory(error);
    }
    size_t moving = 0;
    for (size_t i = 0; i < count; i++) {
        const struct step *step = &steps[i];
        swaps[i] = (struct catalog_swap){
            .name = step->change->name,
            .uuid = metadata_uuid(step->after),
            .from = step->pointer.metadata_location,
            .to = step->written.data != NULL ? step->written : step->pointer.metadata_location,
        };
        moving = step->written.data != NULL ? i : moving;
    }
    CRASH_POINT(catalog_before_swap);
    struct error why = {0};
    err result = catalog_rows_swap(&local->rows, swaps, count, &why);
    CRASH_POINT(catalog_after_swap);
    if (result == UNKNOWN && swap_landed(local, arena, &swaps[moving])) {
        return OK;
    }
    return result == OK ? OK : error_set(error, result, why.code, "%s", why.message);
}

void catalog_point(struct catalog_local *local, const json_t *document, str uri)
{
    if (PLANTED(31)) {
        return;
    }
    struct error error = {0};
    err result = metadata_file_point(local->locations, document, uri, &error);
    if (result != OK) {
        log_error("version_hint_failed", result, &error, uri);
        atomic_fetch_add(&local->shared->hints_missed, 1);
    }
    CRASH_POINT(catalog_after_hint);
}

/* One that is being removed as trims are paused is older than what the catalog then points to. */
static void trim(struct catalog_local *local, const struct metadata *before,
                 const struct metadata *after)
{
    (void)pthread_mutex_lock(&local->shared->trim_lock);
    bool paused = local->shared->trim_arena != NULL;
    if (paused) {
        metadata_file_trim(local->locations, before, after, &local->shared->trims);
    }
    (void)pthread_mutex_unlock(&local->shared->trim_lock);
    if (!paused) {
        metadata_file_trim(local->locations, before, after, NULL);
    }
}

/* Takes the document out of *metadata. */
static void change_done(struct catalog_change *change, struct metadata **metadata, str location)
{
    change->after = (struct table){.metadata = *metadata, .metadata_location = location};
    *metadata = NULL;
}

static void remove_file(const struct catalog_local *local, str uri)
{
    AUTO_ARENA struct arena *scratch = arena_create(MIB);
    struct error error = {0};
    err result = location_remove(local->locations, scratch, uri, &error);
    if (result != OK) {
        log_error("metadata_orphan_left", result, &error, uri);
    }
}

static void steps_remove_files(const struct catalog_local *local, const struct step *steps,
                               size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (steps[i].written.data != NULL) {
            remove_file(local, steps[i].written);
        }
    }
}

MUST_USE static err steps_write_and_swap(struct catalog_local *local, struct arena *arena,
                                         struct step *steps, size_t count, struct error *error)
{
    for (size_t i = 0; i < count; i++) {
        if (!steps[i].staged) {
            TRY(step_write(local, arena, &steps[i], NULL, error));
        }
        if (steps[i].change->author == CATALOG_CLIENT && steps[i].written.data != NULL) {
            catalog_keep_add(local->locations, local->seam, steps[i].base, steps[i].after);
        }
    }
    return swap_pointers(local, arena, steps, count, error);
}

/* The present tables are the answer. */
static void steps_answer_present(struct step *steps, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        change_done(steps[i].change, &steps[i].base, steps[i].pointer.metadata_location);
    }
}

static void steps_finish(struct catalog_local *local, struct step *steps, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        struct step *step = &steps[i];
        if (step->written.data == NULL) {
            change_done(step->change, &step->base, step->pointer.metadata_location);
            continue;
        }
        metadata_cache_put_text(&local->shared->cache, step->written,
                                step->pointer.metadata_location, step->text);
        catalog_point(local, metadata_json(step->after), step->written);
        if (step->base != NULL) {
            trim(local, step->base, step->after);
        }
        change_done(step->change, &step->after, step->written);
    }
}

MUST_USE static err steps_prepare(struct catalog_local *local, struct arena *arena,
                                  struct step *steps, size_t count, struct error *error)
{
    for (size_t i = 0; i < count; i++) {
        if (!steps[i].staged) {
            TRY(step_check(local, &steps[i], error));
        }
    }
    for (size_t i = 0; i < count; i++) {
        if (!steps[i].staged) {
            TRY(step_apply(local, arena, &steps[i], error));
        }
    }
    return OK;
}

/* What was staged is good for one try, and for the version that it follows. */
static void step_take_staged(struct catalog_local *local, struct step *step)
{
    const struct catalog_staged *staged = step->change->staged;
    step->change->staged = NULL;
    if (staged == NULL) {
        return;
    }
    if (step->base == NULL || !str_equal(staged->from, step->pointer.metadata_location)) {
        remove_file(local, staged->file);
        return;
    }
    step->after = metadata_share(metadata_text_document(staged->after));
    step->written = staged->file;
    step->text = metadata_text_share(staged->after);
    step->staged = true;
}

MUST_USE static err steps_run(struct catalog_local *local, struct arena *arena, struct step *steps,
                              size_t count, enum try_result *out_result, struct error *error)
{
    for (size_t i = 0; i < count; i++) {
        TRY(step_load(local, arena, &steps[i], error));
        step_take_staged(local, &steps[i]);
    }
    if (was_applied(steps, count)) {
        steps_answer_present(steps, count);
        *out_result = TRY_DONE;
        return OK;
    }
    TRY(steps_prepare(local, arena, steps, count, error));
    struct error why = {0};
    err result = steps_write_and_swap(local, arena, steps, count, &why);
    if (result == OK) {
        steps_finish(local, steps, count);
    } else if (result == UNKNOWN) {
        atomic_fetch_add(&local->shared->hints_missed, 1);
    } else {
        steps_remove_files(local, steps, count);
    }
    if (result != OK && result != CONFLICT) {
        return error_set(error, result, why.code, "%s", why.message);
    }
    *out_result = result == OK ? TRY_DONE : TRY_LOST;
    return OK;
}

static void steps_close(struct step *steps, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        metadata_close(steps[i].base);
        metadata_close(steps[i].after);
        metadata_text_close(steps[i].text);
    }
}

MUST_USE static err commit_try(struct catalog_local *local, struct arena *arena,
                               struct catalog_change *changes, size_t count,
                               enum try_result *out_result, struct error *error)
{
    struct step *steps = arena_array(arena, count, sizeof(*steps));
    if (steps == NULL) {
        return error_memory(error);
    }
    for (size_t i = 0; i < count; i++) {
        TRY(step_begin(&steps[i], &changes[i], error));
    }
    err result = steps_run(local, arena, steps, count, out_result, error);
    steps_close(steps, count);
    return result;
}

MUST_USE static err commit_locked(struct catalog_local *local, struct arena *arena,
                                  struct catalog_change *changes, size_t count, struct error *error)
{
    for (int i = 0; i < COMMIT_TRIES_MAX; i++) {
        enum try_result result = TRY_LOST;
        TRY(commit_try(local, arena, changes, count, &result, error));
        if (result == TRY_DONE) {
            return OK;
        }
    }
    return error_set(error, CONFLICT, ERROR_COMMIT_CONFLICT,
                     "other commits were faster %d times in a row", COMMIT_TRIES_MAX);
}

MUST_USE static err check_changes(const struct catalog_change *changes, size_t count,
                                  struct error *error)
{
    if (count == 0 || count > CATALOG_CHANGES_MAX) {
        return error_set(error, INVALID, ERROR_INVALID_REQUEST,
                         "a transaction has 1 to %d table changes", CATALOG_CHANGES_MAX);
    }
    for (size_t i = 0; i < count; i++) {
        for (size_t j = 0; j < i; j++) {
            if (str_equal(changes[i].name.namespace_name, changes[j].name.namespace_name) &&
                str_equal(changes[i].name.name, changes[j].name.name)) {
                return error_set(error, INVALID, ERROR_INVALID_REQUEST,
                                 "the table %.*s stands twice in the transaction",
                                 STR_ARG(changes[i].name.name));
            }
        }
    }
    return OK;
}

err catalog_local_commit(struct catalog_local *local, struct arena *arena,
                         struct catalog_change *changes, size_t count, struct error *error)
{
    TRY(check_changes(changes, count, error));
    u64 keys[CATALOG_CHANGES_MAX];
    for (size_t i = 0; i < count; i++) {
        keys[i] = catalog_lock_key(changes[i].name);
    }
    TRY(catalog_lock_take(&local->shared->lock, local->seam, keys, count, CATALOG_LOCK_WAIT_US,
                          error));
    err result = commit_locked(local, arena, changes, count, error);
    catalog_lock_release(&local->shared->lock, keys, count);
    return result;
}

/* ---- staged ---- */

MUST_USE static err stage(struct catalog_local *local, struct arena *arena, struct step *step,
                          struct store_group *group, struct error *error)
{
    TRY(step_load(local, arena, step, error));
    if (step->base == NULL) {
        return OK;
    }
    TRY(step_check(local, step, error));
    TRY(step_apply(local, arena, step, error));
    return step_write(local, arena, step, group, error);
}

err catalog_local_stage(struct catalog_local *local, struct arena *arena, struct table_name name,
                        const json_t *request, struct store_group *group,
                        struct catalog_staged *out_staged, struct error *error)
{
    struct catalog_change change = {.name = name, .request = request};
    struct step step;
    TRY(step_begin(&step, &change, error));
    err result = stage(local, arena, &step, group, error);
    if (result == OK && step.written.data != NULL) {
        *out_staged = (struct catalog_staged){
            .after = step.text, .from = step.pointer.metadata_location, .file = step.written};
        step.text = NULL;
    }
    steps_close(&step, 1);
    return result;
}

void catalog_local_unstage(struct catalog_local *local, struct catalog_staged *staged)
{
    remove_file(local, staged->file);
    metadata_text_close(staged->after);
    *staged = (struct catalog_staged){0};
}

MUST_USE static err store_write(struct catalog_local *local, struct arena *arena,
                                struct catalog_swap *swap, const json_t *document,
                                struct error *error)
{
    AUTO_ARENA struct arena *scratch = arena_create(3 * (size_t)METADATA_FILE_BYTES_MAX);
    str text = {0};
    TRY(document_print(scratch, document, &text, error));
    return metadata_file_write(local->locations, arena, local->seam, document, text, swap->from,
                               NULL, &swap->to, error);
}

err catalog_store(struct catalog_local *local, struct arena *arena, struct catalog_swap *swap,
                  const json_t *document, struct error *error)
{
    TRY(store_write(local, arena, swap, document, error));
    struct error why = {0};
    CRASH_POINT(catalog_before_swap);
    err result = catalog_rows_swap(&local->rows, swap, 1, &why);
    CRASH_POINT(catalog_after_swap);
    if (result == UNKNOWN && swap_landed(local, arena, swap)) {
        result = OK;
    }
    if (result == OK) {
        catalog_point(local, document, swap->to);
        return OK;
    }
    if (result != UNKNOWN) {
        remove_file(local, swap->to);
    }
    return error_set(error, result, why.code, "%s", why.message);
}
