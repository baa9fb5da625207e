#include "base/assert.h"
#include "base/map.h"
#include "sink/batch.h"
#include "sink/roll_steps.h"

/* The batches' bytes, verified by length and SHA-256 (step 3.3, I14). What does not verify is
 * trouble of the store: it ends the tick and never rejects. Seen three times, 10 s apart, the
 * batch is held and the others go on (decisions 21). */

/* Objects hold segments of several batches of one plan: each is read once. */
struct object_cache {
    struct arena *bodies;
    struct map *places; /* key -> index */
    struct cached_object {
        str body;
        err result; /* OK, NOT_FOUND or CORRUPT */
    } *objects;
    size_t count;
};

/* A store that answers for the plan object and not for this one has lost it. The plan object may
 * still wait in the roll's group. */
static err check_lost(struct roll *roll, const struct roll_plan *plan, struct error *error)
{
    struct store_object head = {0};
    str key = batch_plan_key(roll->arena, roll->sink.id, plan->row.n, plan->row.id);
    TRY(store_group_end(roll->group, error));
    return store_head(&roll->env->warehouse->files, roll->arena, key, &head, error);
}

static err read_object(struct roll *roll, const struct roll_plan *plan, struct arena *arena,
                       str key, struct cached_object *out_object, struct error *error)
{
    struct store_object object = {0};
    struct error told = {0};
    err got = store_get(&roll->env->warehouse->files, arena, key, &object, &told);
    if (got == NOT_FOUND) {
        TRY(check_lost(roll, plan, error));
    } else if (got != OK && got != CORRUPT) {
        return error_set(error, got, told.code, "reading %.*s: %s", STR_ARG(key), told.message);
    }
    *out_object = (struct cached_object){.body = object.body, .result = got};
    return OK;
}

static err cached(struct roll *roll, const struct roll_plan *plan, struct object_cache *cache,
                  str key, size_t *out_index, struct error *error)
{
    bool fresh = false;
    u64 *place = map_put(cache->places, key, &fresh);
    if (place == NULL) {
        return error_memory(error);
    }
    if (fresh) {
        TRY(read_object(roll, plan, cache->bodies, key, &cache->objects[cache->count], error));
        *place = cache->count;
        cache->count++;
    }
    *out_index = (size_t)*place;
    return OK;
}

static bool segment_place(const struct ledger_batch *batch, str body, str *out_segment)
{
    i64 end = 0;
    if (batch->offset < 0 || batch->bytes < 0 || !num_add_i64(batch->offset, batch->bytes, &end) ||
        end > (i64)body.size) {
        return false;
    }
    *out_segment = (str){body.data + batch->offset, (size_t)batch->bytes};
    return true;
}

static bool hash_fits(const struct ledger_batch *batch, const struct sha256 *hash)
{
    return memcmp(hash->bytes, batch->sha256.bytes, sizeof(hash->bytes)) == 0;
}

static bool segment_of(const struct ledger_batch *batch, str body, str *out_segment)
{
    str segment;
    if (!segment_place(batch, body, &segment)) {
        return false;
    }
    struct sha256 hash = crypto_sha256(segment);
    if (!hash_fits(batch, &hash)) {
        return false;
    }
    *out_segment = segment;
    return true;
}

struct damage {
    struct ledger_hold *holds; /* seen for the third time */
    size_t hold_count;
    i64 missed; /* all that did not verify */
};

static err note_damage(struct roll *roll, const struct ledger_batch *batch, err result,
                       struct damage *damage, struct error *error)
{
    str reason = result == NOT_FOUND ? STR("object_missing") : STR("object_damaged");
    i64 misses = 0;
    TRY(ledger_note_miss(roll->env->db, roll->sink.id, batch->batch_id, reason, &misses, error));
    damage->missed++;
    if (misses >= HELD_MISSES) {
        damage->holds[damage->hold_count++] = (struct ledger_hold){.batch_id = batch->batch_id,
                                                                   .reason = reason};
    }
    return OK;
}

static err end_with_damage(struct roll *roll, struct roll_plan *plan, const struct damage *damage,
                           enum roll_step *out_step, struct error *error)
{
    str text = str_format(roll->arena,
                          "%lld of %zu batches do not verify in the store; they are not rejected, "
                          "and are tried again",
                          (long long)damage->missed, plan->batch_count);
    TRY(ledger_set_last_error(roll->env->db, roll->sink.id, text, error));
    if (damage->hold_count == 0) {
        *out_step = STEP_LATER;
        return OK;
    }
    return roll_void(roll, plan, "held", damage->holds, damage->hold_count, out_step, error);
}

void roll_bytes_close(struct roll_bytes *bytes)
{
    arena_destroy_at(&bytes->arena);
    bytes->segments = NULL;
}

err roll_read_batches(struct roll *roll, struct roll_plan *plan, struct roll_bytes *out_bytes,
                      enum roll_step *out_step, struct error *error)
{
    assert(out_bytes->arena == NULL);
    out_bytes->arena = arena_create((size_t)ROLL_ARENA_MIB_MAX * MIB);
    struct object_cache cache = {
        .bodies = out_bytes->arena,
        .places = map_create(roll->arena, plan->batch_count),
        .objects = arena_array(roll->arena, plan->batch_count, sizeof(struct cached_object)),
    };
    struct damage damage = {
        .holds = arena_array(roll->arena, plan->batch_count, sizeof(struct ledger_hold))};
    str *segments = arena_array(out_bytes->arena, plan->batch_count, sizeof(*segments));
    if (cache.places == NULL || cache.objects == NULL || damage.holds == NULL || segments == NULL) {
        return error_memory(error);
    }
    for (size_t i = 0; i < plan->batch_count; i++) {
        const struct ledger_batch *batch = &plan->batches[i];
        size_t index = 0;
        TRY(roll_keep_lease(roll, error));
        TRY(cached(roll, plan, &cache, batch->object_key, &index, error));
        const struct cached_object *object = &cache.objects[index];
        if (object->result != OK || !segment_of(batch, object->body, &segments[i])) {
            TRY(note_damage(roll, batch, object->result, &damage, error));
        }
    }
    if (damage.missed > 0) {
        roll_bytes_close(out_bytes);
        return end_with_damage(roll, plan, &damage, out_step, error);
    }
    out_bytes->segments = segments;
    *out_step = STEP_GO;
    return OK;
}

void roll_stream_close(struct roll_stream *stream)
{
    for (size_t i = 0; i < ARRAY_COUNT(stream->objects); i++) {
        arena_destroy_at(&stream->objects[i].arena);
        stream->objects[i].key = (str){0};
    }
    stream->ahead = 0;
}

/* Memory of the objects before is used again, unless it is of an uncommonly large one. */
static void make_room(struct roll_object *object)
{
    enum { STREAM_KEPT_BYTES = 16 * MIB };
    object->key = (str){0};
    if (object->arena != NULL && arena_bytes(object->arena) > STREAM_KEPT_BYTES) {
        arena_destroy_at(&object->arena);
    }
    if (object->arena == NULL) {
        object->arena = arena_create((size_t)ROLL_ARENA_MIB_MAX * MIB);
    }
    arena_reset(object->arena);
}

static struct roll_object *object_in_memory(struct roll_stream *stream, str key)
{
    for (size_t i = 0; i < ARRAY_COUNT(stream->objects); i++) {
        struct roll_object *object = &stream->objects[i];
        if (object->key.data != NULL && str_equal(object->key, key)) {
            return object;
        }
    }
    return NULL;
}

/* The object of a batch, in memory. *out_object NULL: lost or damaged. */
static err stream_object(struct roll *roll, const struct roll_plan *plan,
                         struct roll_stream *stream, size_t batch, struct roll_object **out_object,
                         struct error *error)
{
    str key = plan->batches[batch].object_key;
    struct roll_object *object = object_in_memory(stream, key);
    if (object == NULL) {
        struct cached_object got = {0};
        object = &stream->objects[0];
        stream->ahead = 0;
        make_room(object);
        TRY(read_object(roll, plan, object->arena, key, &got, error));
        object->key = got.result == OK ? key : (str){0};
        object->body = got.body;
    }
    *out_object = object->key.data != NULL ? object : NULL;
    return OK;
}

/* The bytes of the batch behind `batch`, whose object is `beside`. False: there is none, or the
 * store does not give it now; when its turn comes it is asked for again. */
static bool find_next(struct roll *roll, const struct roll_plan *plan, struct roll_stream *stream,
                      size_t batch, const struct roll_object *beside, str *out_segment)
{
    if (batch + 1 >= plan->batch_count) {
        return false;
    }
    const struct ledger_batch *next = &plan->batches[batch + 1];
    struct roll_object *object = object_in_memory(stream, next->object_key);
    if (object == NULL) {
        struct store_object got = {0};
        struct error told = {0};
        object = beside == &stream->objects[0] ? &stream->objects[1] : &stream->objects[0];
        make_room(object);
        if (store_get(&roll->env->warehouse->files, object->arena, next->object_key, &got, &told) !=
            OK) {
            return false;
        }
        object->key = next->object_key;
        object->body = got.body;
    }
    return segment_place(next, object->body, out_segment);
}

err roll_stream_batch(struct roll *roll, const struct roll_plan *plan, struct roll_stream *stream,
                      size_t batch, str *out_segment, bool *out_verified, struct error *error)
{
    const struct ledger_batch *row = &plan->batches[batch];
    struct roll_object *object = NULL;
    *out_verified = false;
    TRY(stream_object(roll, plan, stream, batch, &object, error));
    if (object == NULL || !segment_place(row, object->body, out_segment)) {
        return OK;
    }
    if (batch > 0 && batch == stream->ahead) {
        *out_verified = true;
        return OK;
    }
    str next;
    struct sha256 hashes[2];
    stream->ahead = 0;
    if (find_next(roll, plan, stream, batch, object, &next)) {
        crypto_sha256_pair(*out_segment, next, hashes);
        stream->ahead = hash_fits(row + 1, &hashes[1]) ? batch + 1 : 0;
    } else {
        hashes[0] = crypto_sha256(*out_segment);
    }
    *out_verified = hash_fits(row, &hashes[0]);
    return OK;
}

err roll_read_batch(const struct roll_env *env, struct arena *arena,
                    const struct ledger_batch *batch, str *out_bytes, str *out_reason,
                    struct error *error)
{
    struct store_object object = {0};
    struct error told = {0};
    err got = store_get(&env->warehouse->files, arena, batch->object_key, &object, &told);
    if (got != OK && got != NOT_FOUND && got != CORRUPT) {
        return error_set(error, got, told.code, "%s", told.message);
    }
    if (got != OK || !segment_of(batch, object.body, out_bytes)) {
        *out_reason = got == NOT_FOUND ? STR("object_missing") : STR("object_damaged");
        return error_set(error, CORRUPT, ERROR_STORE_DOWN, "batch %.*s does not verify",
                         STR_ARG(batch->batch_id));
    }
    return OK;
}
