#include "sink/batch.h"
#include "sink/verify_steps.h"

/* The bytes of what waits, and what else lies in the sink's folder of the file bucket. */

enum { FOLDER_PAGE = 1000 };

/* ---- what waits ---- */

/* The object read last: the segments of one follow each other in seq order. */
struct object_at_hand {
    str key;
    err result; /* OK, NOT_FOUND or CORRUPT */
    str body;
};

MUST_USE static err read_object(struct verify *verify, str key, struct object_at_hand *out_object,
                                struct error *error)
{
    struct store_object object = {0};
    struct error told = {0};
    arena_reset(verify->scratch);
    err got = store_get(&verify->env->warehouse->files, verify->scratch, key, &object, &told);
    if (got != OK && got != NOT_FOUND && got != CORRUPT) {
        return error_set(error, got, told.code, "reading %.*s: %s", STR_ARG(key), told.message);
    }
    verify->report->objects++;
    *out_object = (struct object_at_hand){.key = key, .result = got, .body = object.body};
    return OK;
}

static bool segment_verifies(const struct ledger_batch *batch, str body)
{
    i64 end = 0;
    if (batch->offset < 0 || batch->bytes < 0 || !num_add_i64(batch->offset, batch->bytes, &end) ||
        end > (i64)body.size) {
        return false;
    }
    struct sha256 hash = crypto_sha256((str){body.data + batch->offset, (size_t)batch->bytes});
    return memcmp(hash.bytes, batch->sha256.bytes, sizeof(hash.bytes)) == 0;
}

static void check_segment(struct verify *verify, const struct ledger_batch *batch,
                          const struct object_at_hand *object)
{
    if (object->result == NOT_FOUND) {
        verify_find(verify, "I16", batch->batch_id, VERIFY_CURE_OBJECT,
                    "the batch waits, and its object %.*s is missing", STR_ARG(object->key));
    } else if (object->result == CORRUPT || !segment_verifies(batch, object->body)) {
        verify_find(verify, "I2", batch->batch_id, VERIFY_CURE_OBJECT,
                    "the batch waits, and its bytes in %.*s are not those that were accepted",
                    STR_ARG(object->key));
    }
}

err verify_objects(struct verify *verify, struct error *error)
{
    struct object_at_hand object = {0};
    for (size_t i = 0; i < verify->batch_count; i++) {
        const struct ledger_batch *batch = &verify->batches[i];
        if (verify_is_final(batch)) {
            continue;
        }
        if (object.key.data == NULL || !str_equal(object.key, batch->object_key)) {
            TRY(read_object(verify, batch->object_key, &object, error));
        }
        check_segment(verify, batch, &object);
    }
    arena_reset(verify->scratch);
    return OK;
}

/* ---- the folder ---- */

MUST_USE static err know(struct map *known, str key, enum verify_key kind, struct error *error)
{
    bool fresh = false;
    u64 *place = key.data == NULL ? NULL : map_put(known, key, &fresh);
    if (place == NULL) {
        return error_memory(error);
    }
    /* An object of several batches waits as long as one of them does. */
    *place = fresh || (u64)kind < *place ? (u64)kind : *place;
    return OK;
}

static enum verify_key rejects_kind(const struct ledger_batch *batch)
{
    bool counted = batch->state == BATCH_COMMITTED || batch->state == BATCH_REJECTED;
    if (!counted) {
        return VERIFY_KEY_REJECTS_OPEN;
    }
    return batch->rows_rejected > 0 ? VERIFY_KEY_REJECTS : VERIFY_KEY_REJECTS_NONE;
}

MUST_USE static err know_batch(struct verify *verify, struct map *known,
                               const struct ledger_batch *batch, struct error *error)
{
    struct arena *arena = verify->arena;
    str sink_id = verify->sink.id;
    if (batch->object_key.size > 0) {
        TRY(know(known, batch->object_key,
                 verify_is_final(batch) ? VERIFY_KEY_FINAL : VERIFY_KEY_WAITING, error));
    }
    if (batch->refused > 0) {
        TRY(know(known, batch_intake_rejects_key(arena, sink_id, batch->batch_id, &batch->uid),
                 VERIFY_KEY_REJECTS, error));
    }
    return know(known, batch_rejects_key(arena, sink_id, batch->batch_id), rejects_kind(batch),
                error);
}

MUST_USE static err know_all(struct verify *verify, struct map **out_known, struct error *error)
{
    struct map *known = map_create(verify->arena, 2 * (verify->batch_count + verify->plan_count));
    if (known == NULL) {
        return error_memory(error);
    }
    for (size_t i = 0; i < verify->batch_count; i++) {
        TRY(know_batch(verify, known, &verify->batches[i], error));
    }
    for (size_t i = 0; i < verify->plan_count; i++) {
        const struct ledger_plan *plan = &verify->plans[i];
        TRY(know(known, batch_plan_key(verify->arena, verify->sink.id, plan->n, plan->id),
                 VERIFY_KEY_PLAN, error));
        TRY(know(known, plan_void_key(verify->arena, verify->sink.id, plan->n, plan->id),
                 VERIFY_KEY_PLAN, error));
    }
    *out_known = known;
    return OK;
}

/* `rest`: the key after the sink's folder. */
static void judge_stranger(struct verify *verify, str key, str rest)
{
    if (str_starts(rest, STR("plans/"))) {
        verify_note(verify, "plan_without_row", key);
    } else if (str_starts(rest, STR("rejects/"))) {
        verify_note(verify, "rejects_without_row", key);
    } else if (!str_starts(rest, STR("sink/"))) {
        verify_note(verify, "orphan", key);
    }
}

static void judge_known(struct verify *verify, str key, i64 size, enum verify_key kind)
{
    switch (kind) {
    case VERIFY_KEY_WAITING:
    case VERIFY_KEY_PLAN:
    case VERIFY_KEY_REJECTS:
    case VERIFY_KEY_REJECTS_OPEN:
        break;
    case VERIFY_KEY_FINAL:
        verify_note(verify, "leftover", key);
        break;
    case VERIFY_KEY_REJECTS_NONE:
        if (size > 0) { /* an empty one only keeps the place */
            verify_find(
                verify, "I15", key, VERIFY_CURE_REJECTS,
                "the ledger counts no rejected row of this batch, and here is a rejects file");
        }
        break;
    }
}

struct folder {
    str prefix;
    str settings; /* how the name of the present settings begins */
    bool has_settings;
};

MUST_USE static err judge_page(struct verify *verify, const struct map *known,
                               struct folder *folder, const struct store_list *list,
                               struct error *error)
{
    for (size_t i = 0; i < list->count; i++) {
        str key = list->objects[i].key;
        if (!str_starts(key, folder->prefix)) {
            return error_set(error, CORRUPT, ERROR_STORE_DOWN, "the store lists %.*s below %.*s",
                             STR_ARG(key), STR_ARG(folder->prefix));
        }
        const u64 *kind = map_get(known, key);
        if (kind != NULL) {
            judge_known(verify, key, list->objects[i].size, (enum verify_key) * kind);
        } else {
            judge_stranger(verify, key, str_slice(key, folder->prefix.size, key.size));
        }
        folder->has_settings = folder->has_settings || str_starts(key, folder->settings);
    }
    return OK;
}

err verify_folder(struct verify *verify, struct error *error)
{
    struct map *known = NULL;
    struct folder folder = {
        .prefix = str_format(verify->arena, "_sink/%.*s/", STR_ARG(verify->sink.id)),
        .settings = str_format(verify->arena, "_sink/%.*s/sink/%lld.", STR_ARG(verify->sink.id),
                               (long long)verify->sink.config_version)};
    TRY(know_all(verify, &known, error));
    if (folder.prefix.data == NULL || folder.settings.data == NULL) {
        return error_memory(error);
    }
    char after_bytes[STORE_KEY_MAX];
    str after = STR("");
    bool more = true;
    while (more) {
        struct store_list list = {0};
        arena_reset(verify->scratch);
        TRY(store_list(&verify->env->warehouse->files, verify->scratch, folder.prefix, after,
                       FOLDER_PAGE, &list, error));
        TRY(judge_page(verify, known, &folder, &list, error));
        more = list.more && list.count > 0;
        if (more) {
            str last = list.objects[list.count - 1].key;
            memcpy(after_bytes, last.data, last.size);
            after = (str){after_bytes, last.size};
        }
    }
    if (!folder.has_settings && verify->sink.state != SINK_DELETED) {
        verify_find(verify, "I27", verify->sink.id, VERIFY_CURE_PLAN,
                    "the settings object of version %lld is missing",
                    (long long)verify->sink.config_version);
    }
    arena_reset(verify->scratch);
    return OK;
}
