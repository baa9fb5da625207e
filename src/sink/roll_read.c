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

/* ---- the stream ---- */

/* Nothing of the stream is the crew's after this. */
static void end_beside(struct roll_stream *stream)
{
    if (stream->beside) {
        crew_end(stream->next.roll->env->crew, &stream->aside);
        stream->beside = false;
    }
}

void roll_stream_close(struct roll_stream *stream)
{
    end_beside(stream);
    for (size_t i = 0; i < ARRAY_COUNT(stream->objects); i++) {
        arena_destroy_at(&stream->objects[i].arena);
        stream->objects[i].key = (str){0};
    }
    stream->now = stream->next = (struct roll_look){0};
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

static bool look_uses(const struct roll_look *look, const struct roll_object *object)
{
    return look->objects[0] == object || look->objects[1] == object;
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

/* Room that neither look uses: each uses two at most, and this one not yet both. */
static struct roll_object *object_unused(struct roll_stream *stream)
{
    size_t i = 0;
    while (look_uses(&stream->now, &stream->objects[i]) ||
           look_uses(&stream->next, &stream->objects[i])) {
        i++;
        assert(i < ARRAY_COUNT(stream->objects));
    }
    make_room(&stream->objects[i]);
    return &stream->objects[i];
}

/* NULL: the store does not give it now; when its turn comes it is asked for again. */
static const struct roll_object *look_object(const struct roll_look *look, str key)
{
    struct roll_object *object = object_in_memory(look->stream, key);
    if (object != NULL) {
        return object;
    }
    struct store_object got = {0};
    struct error told = {0};
    object = object_unused(look->stream);
    if (store_get(&look->roll->env->warehouse->files, object->arena, key, &got, &told) != OK) {
        return NULL;
    }
    object->key = key;
    object->body = got.body;
    return object;
}

static void look_at(void *context, size_t index, size_t worker)
{
    (void)index;
    (void)worker;
    struct roll_look *look = context;
    struct sha256 hashes[2];
    bool found[2] = {false, false};
    const struct ledger_batch *batches = &look->plan->batches[look->first];
    look->count = look->first + 1 < look->plan->batch_count ? 2 : 1;
    for (size_t i = 0; i < look->count; i++) {
        look->objects[i] = look_object(look, batches[i].object_key);
        found[i] = look->objects[i] != NULL &&
                   segment_place(&batches[i], look->objects[i]->body, &look->segments[i]);
    }
    if (found[0] && found[1]) {
        crypto_sha256_pair(look->segments[0], look->segments[1], hashes);
    }
    for (size_t i = 0; i < look->count; i++) {
        if (found[i] && !found[1 - i]) {
            hashes[i] = crypto_sha256(look->segments[i]);
        }
        look->verified[i] = found[i] && hash_fits(&batches[i], &hashes[i]);
    }
}

static void look_beside(struct roll_stream *stream, struct crew *crew)
{
    const struct roll_look *now = &stream->now;
    size_t first = now->first + now->count;
    if (first >= now->plan->batch_count || crew_workers(crew) == 1) {
        return;
    }
    stream->next = (struct roll_look){
        .roll = now->roll, .plan = now->plan, .stream = stream, .first = first};
    stream->aside = (struct crew_aside){.task = look_at, .context = &stream->next};
    stream->beside = true;
    crew_begin(crew, &stream->aside);
}

static bool look_has(const struct roll_look *look, size_t batch)
{
    return batch >= look->first && batch < look->first + look->count;
}

/* `now` has the batch afterwards. */
static void look_for(struct roll *roll, const struct roll_plan *plan, struct roll_stream *stream,
                     size_t batch)
{
    if (look_has(&stream->now, batch)) {
        return;
    }
    end_beside(stream);
    stream->now = stream->next;
    stream->next = (struct roll_look){0};
    if (!look_has(&stream->now, batch)) {
        stream->now = (struct roll_look){
            .roll = roll, .plan = plan, .stream = stream, .first = batch};
        look_at(&stream->now, 0, 0);
    }
}

/* What did not verify, once more and by itself: the store's answer tells what is the matter. */
static err ask_again(struct roll *roll, const struct roll_plan *plan, struct roll_stream *stream,
                     size_t batch, str *out_segment, bool *out_verified, struct error *error)
{
    const struct ledger_batch *row = &plan->batches[batch];
    struct cached_object got = {0};
    struct roll_object *object = object_unused(stream);
    TRY(read_object(roll, plan, object->arena, row->object_key, &got, error));
    *out_verified = got.result == OK && segment_of(row, got.body, out_segment);
    return OK;
}

err roll_stream_batch(struct roll *roll, const struct roll_plan *plan, struct roll_stream *stream,
                      size_t batch, str *out_segment, bool *out_verified, struct error *error)
{
    look_for(roll, plan, stream, batch);
    size_t at = batch - stream->now.first;
    *out_segment = stream->now.segments[at];
    *out_verified = stream->now.verified[at];
    if (!*out_verified) {
        end_beside(stream);
        stream->next = (struct roll_look){0};
        return ask_again(roll, plan, stream, batch, out_segment, out_verified, error);
    }
    if (!stream->beside && stream->next.count == 0) {
        look_beside(stream, roll->env->crew);
    }
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
