#include "sim.h"

#include "base/assert.h"

/* The store's seam over the real store in memory. Its objects carry the virtual time at which they
 * were put; what lands late lands as it was sent. */

/* ---- what happens to the world ---- */

static void stamp(str key)
{
    bool is_new = false;
    str kept = map_get(sim->times, key) == NULL ? str_copy(sim->arena, key) : key;
    u64 *place = map_put(sim->times, kept, &is_new);
    assert(place != NULL);
    *place = (u64)(SIM_EPOCH + sim->now);
}

static void restamp(struct store_object *object)
{
    const u64 *place = map_get(sim->times, object->key);
    object->modified_at = place == NULL ? SIM_EPOCH : (instant)*place;
}

static str joined(struct arena *arena, const str *pieces, size_t count)
{
    size_t size = 0;
    for (size_t i = 0; i < count; i++) {
        size += pieces[i].size;
    }
    char *bytes = arena_alloc(arena, size);
    assert(bytes != NULL);
    size_t at = 0;
    for (size_t i = 0; i < count; i++) {
        if (pieces[i].size > 0) {
            memcpy(bytes + at, pieces[i].data, pieces[i].size);
            at += pieces[i].size;
        }
    }
    return (str){bytes, size};
}

static err put_now(str key, str body, const struct store_meta *meta)
{
    err put = store_put(&sim->raw_store, key, body, meta, NULL);
    if (put == CONFLICT) {
        return put;
    }
    assert(put == OK);
    sim_check_put(key, body);
    stamp(key);
    return OK;
}

static void remove_now(str key, i64 sent_at)
{
    sim_check_remove(key, sent_at);
    err removed = store_remove(&sim->raw_store, key, NULL);
    assert(removed == OK);
}

struct late_put {
    str key;
    str body;
    struct store_meta meta;
    i64 sent_at;
};

static void late_put_lands(void *argument)
{
    const struct late_put *late = argument;
    if (sim->stopping) {
        return;
    }
    err put = put_now(late->key, late->body, &late->meta);
    sim_trace("  late: put %.*s%s", STR_ARG(late->key), put == OK ? "" : ", refused");
}

static void late_remove_lands(void *argument)
{
    const struct late_put *late = argument;
    if (sim->stopping) {
        return;
    }
    sim_trace("  late: remove %.*s", STR_ARG(late->key));
    remove_now(late->key, late->sent_at);
}

static struct late_put *late_of(str key, str body, const struct store_meta *meta)
{
    struct late_put *late = arena_alloc(sim->arena, sizeof(*late));
    assert(late != NULL);
    late->sent_at = sim->now;
    late->key = str_copy(sim->arena, key);
    late->body = str_copy(sim->arena, body);
    if (meta != NULL) {
        late->meta = *meta;
        if (meta->replaces.data != NULL) {
            late->meta.replaces = str_copy(sim->arena, meta->replaces);
        }
        late->meta.content_type = str_copy(sim->arena, meta->content_type);
        for (size_t i = 0; i < meta->count; i++) {
            late->meta.entries[i].name = str_copy(sim->arena, meta->entries[i].name);
            late->meta.entries[i].value = str_copy(sim->arena, meta->entries[i].value);
        }
    }
    return late;
}

/* ---- what is not durable yet ---- */

static void note_synced(str key)
{
    size_t kept = 0;
    for (size_t i = 0; i < sim->unsynced_count; i++) {
        if (!str_equal(sim->unsynced[i].key, key)) {
            sim->unsynced[kept++] = sim->unsynced[i];
        }
    }
    sim->unsynced_count = kept;
}

/* What is too much is durable by chance. */
static void note_unsynced(str key)
{
    note_synced(key);
    if (sim->unsynced_count < SIM_UNSYNCED_MAX) {
        sim->unsynced[sim->unsynced_count++] = (struct sim_unsynced){
            .key = str_copy(sim->arena, key), .number = sim->unsynced_number++};
    }
}

/* A part of the bytes, or zeros in place of them, with or without the metadata. */
static void tear(str key)
{
    struct arena_mark mark = arena_mark(sim->scratch);
    struct store_object object = {0};
    if (store_get(&sim->raw_store, sim->scratch, key, &object, NULL) == OK) {
        size_t left = (size_t)sim_below(object.body.size + 1);
        char *bytes = arena_alloc(sim->scratch, object.body.size + 1);
        assert(bytes != NULL);
        memcpy(bytes, object.body.data, left);
        object.body.size = sim_below(2) == 0 ? left : object.body.size;
        object.meta.count = sim_below(2) == 0 ? 0 : object.meta.count;
        object.meta.replaces = (str){NULL, 0};
        err torn = store_put(&sim->raw_store, key, (str){bytes, object.body.size}, &object.meta,
                             NULL);
        assert(torn == OK);
    }
    arena_reset_to(sim->scratch, mark);
}

void sim_store_power_loss(void)
{
    for (size_t i = 0; i < sim->unsynced_count; i++) {
        str key = sim->unsynced[i].key;
        u64 fate = sim_below(3);
        if (fate == 0) {
            sim_trace("** lost: %.*s", STR_ARG(key));
            err removed = store_remove(&sim->raw_store, key, NULL);
            assert(removed == OK);
        } else if (fate == 1) {
            sim_trace("** torn: %.*s", STR_ARG(key));
            tear(key);
        }
    }
    sim->unsynced_count = 0;
}

/* ---- the seam ---- */

static const u32 CHANGES = SIM_ALLOW(SIM_FAULT_LOST) | SIM_ALLOW(SIM_FAULT_DONE) |
                           SIM_ALLOW(SIM_FAULT_LATE) | SIM_ALLOW(SIM_FAULT_FULL);

/* On a machine of its own nothing lands late. */
static u32 changes(void)
{
    return sim->logged ? CHANGES & ~SIM_ALLOW(SIM_FAULT_LATE) : CHANGES;
}

static err sim_put(void *self, str key, const str *pieces, size_t piece_count,
                   const struct store_meta *meta, struct error *error)
{
    (void)self;
    enum sim_fault fault = sim_strike(changes(), "store: put", key);
    if (fault == SIM_FAULT_BEFORE || fault == SIM_FAULT_FULL || fault == SIM_FAULT_LOST ||
        fault == SIM_FAULT_DIE_BEFORE) {
        return sim_failed(fault, error);
    }
    struct arena_mark mark = arena_mark(sim->scratch);
    str body = joined(sim->scratch, pieces, piece_count);
    err put = OK;
    /* A table's hint and the incarnation have one name for all their versions: a store in which an
     * old PUT lands after a newer one would bring the old one back. The local store cannot; what
     * others need is not decided here. */
    bool one_name = str_ends(key, STR("version-hint.text")) ||
                    str_ends(key, STR("incarnation.json"));
    if (fault == SIM_FAULT_LATE && !one_name) {
        sim_later(sim_late_delay(), late_put_lands, late_of(key, body, meta));
    } else {
        put = put_now(key, body, meta);
        if (put == OK && meta != NULL && meta->durability == STORE_LATER) {
            note_unsynced(key);
        } else if (put == OK) {
            note_synced(key);
        }
    }
    arena_reset_to(sim->scratch, mark);
    sim_after(fault);
    if (put == CONFLICT && fault == SIM_FAULT_NONE) {
        return error_set(error, CONFLICT, ERROR_UNAVAILABLE, "replaced meanwhile");
    }
    return sim_failed(fault, error);
}

/* ---- groups: what waits dies with the process ---- */

static void sim_group_drop(struct store_group *group)
{
    group->count = 0;
}

static err sim_group_end(struct store_group *group, struct error *error)
{
    struct late_put **held = group->held;
    err result = OK;
    for (size_t i = 0; i < group->count && result == OK; i++) {
        result = sim_put(NULL, held[i]->key, &held[i]->body, 1, &held[i]->meta, error);
    }
    sim_group_drop(group);
    return result;
}

static const struct store_group_ops GROUP = {.end = sim_group_end, .drop = sim_group_drop};

static err sim_group_put(void *self, struct store_group *group, str key, const str *pieces,
                         size_t piece_count, const struct store_meta *meta, struct error *error)
{
    (void)self;
    if (group->held == NULL) {
        group->held = arena_array(group->arena, STORE_GROUP_MAX, sizeof(struct late_put *));
    }
    if (group->count == STORE_GROUP_MAX) {
        TRY(sim_group_end(group, error));
    }
    struct late_put **held = group->held;
    assert(held != NULL);
    struct arena_mark mark = arena_mark(sim->scratch);
    held[group->count++] = late_of(key, joined(sim->scratch, pieces, piece_count), meta);
    arena_reset_to(sim->scratch, mark);
    return OK;
}

static str sink_of(str prefix)
{
    str rest = str_slice(prefix, sizeof("_sink/") - 1, prefix.size);
    i64 slash = str_find_byte(rest, '/');
    return slash < 0 ? rest : str_slice(rest, 0, (size_t)slash);
}

static err read_fault(enum sim_fault fault, struct error *error)
{
    bool fails = fault == SIM_FAULT_BEFORE || fault == SIM_FAULT_DIE_BEFORE;
    return fails ? sim_failed(SIM_FAULT_BEFORE, error) : OK;
}

static err sim_get(void *self, struct arena *arena, str key, struct store_object *out_object,
                   struct error *error)
{
    (void)self;
    /* What reads table files checks no hash: there a short read is an error, not fewer bytes. */
    u32 allowed = str_starts(key, STR("_sink/")) ? SIM_ALLOW(SIM_FAULT_PARTIAL) : 0;
    enum sim_fault fault = sim_strike(allowed, "store: get", key);
    TRY(read_fault(fault, error));
    struct store_object object = {0};
    TRY(store_get(&sim->raw_store, arena, key, &object, error));
    restamp(&object);
    if (fault == SIM_FAULT_PARTIAL) {
        object.body.size = (size_t)sim_below(object.body.size + 1);
        /* Nor does the store know better, sometimes: only the hash of a batch tells. */
        bool unnoticed = sim_below(2) == 0 && str_find(key, STR("/rejects/")) < 0 &&
                         str_ends(key, STR(".ndjson")) && !sim_recovering(sink_of(key));
        object.size = unnoticed ? (i64)object.body.size : object.size;
    }
    *out_object = object;
    sim_after(fault);
    return OK;
}

static err sim_head(void *self, struct arena *arena, str key, struct store_object *out_object,
                    struct error *error)
{
    (void)self;
    enum sim_fault fault = sim_strike(0, "store: head", key);
    TRY(read_fault(fault, error));
    struct store_object object = {0};
    TRY(store_head(&sim->raw_store, arena, key, &object, error));
    restamp(&object);
    *out_object = object;
    sim_after(fault);
    return OK;
}

/* Where ledgers are put back, many deletes are under way then, and meet what the old ledger adopts;
 * but those of a machine's own disk end with it. */
static enum sim_fault remove_fault(str key)
{
    enum sim_fault fault = sim_strike(changes(), "store: remove", key);
    bool slow = sim->faults && sim_part(SIM_RESTORER) &&
                (sim->config->faults_off & SIM_ALLOW(SIM_FAULT_LATE)) == 0 && sim_draw() % 3 == 0;
    return fault == SIM_FAULT_NONE && slow && !sim->logged ? SIM_FAULT_LATE : fault;
}

static err sim_remove(void *self, str key, struct error *error)
{
    (void)self;
    enum sim_fault fault = remove_fault(key);
    if (fault == SIM_FAULT_BEFORE || fault == SIM_FAULT_FULL || fault == SIM_FAULT_LOST ||
        fault == SIM_FAULT_DIE_BEFORE) {
        return sim_failed(fault, error);
    }
    if (fault == SIM_FAULT_LATE && str_find(key, STR("/rejects/")) < 0) {
        sim_check_remove(key, sim->now);
        sim_later(sim_late_delay(), late_remove_lands, late_of(key, STR(""), NULL));
    } else {
        remove_now(key, sim->now);
    }
    sim_after(fault);
    return sim_failed(fault, error);
}

/* An old list lacks what was put since. No rule leans on a list but those of `recover`, which finds
 * what is there by no other means: then it is whole. */
static void forget_newest(struct store_list *list)
{
    instant since = SIM_EPOCH + sim->now - sim_between(1, SIM_HOUR);
    size_t kept = 0;
    for (size_t i = 0; i < list->count; i++) {
        if (list->objects[i].modified_at < since) {
            list->objects[kept++] = list->objects[i];
        }
    }
    list->count = kept;
}

static err sim_list(void *self, struct arena *arena, str prefix, str after, size_t limit,
                    struct store_list *out_list, struct error *error)
{
    (void)self;
    enum sim_fault fault = sim_strike(SIM_ALLOW(SIM_FAULT_PARTIAL) | SIM_ALLOW(SIM_FAULT_STALE),
                                      "store: list", prefix);
    TRY(read_fault(fault, error));
    struct store_list list = {0};
    TRY(store_list(&sim->raw_store, arena, prefix, after, limit, &list, error));
    for (size_t i = 0; i < list.count; i++) {
        restamp(&list.objects[i]);
    }
    if (fault == SIM_FAULT_PARTIAL && list.count > 1) {
        list.count = (size_t)sim_between(1, (i64)list.count - 1);
        list.more = true;
    }
    if (fault == SIM_FAULT_STALE && !sim_recovering(sink_of(prefix))) {
        forget_newest(&list);
    }
    *out_list = list;
    sim_after(fault);
    return OK;
}

/* One that fails ends the process (I28). */
static err sim_sync(void *self, struct error *error)
{
    struct sim_process *process = self;
    i64 until = sim->unsynced_number;
    enum sim_fault fault = sim_strike(0, "store: sync", STR(""));
    if (fault == SIM_FAULT_BEFORE) {
        sim_kill(process);
    }
    if (fault == SIM_FAULT_BEFORE || fault == SIM_FAULT_DIE_BEFORE || process->dead) {
        return sim_failed(SIM_FAULT_BEFORE, error);
    }
    size_t kept = 0;
    for (size_t i = 0; i < sim->unsynced_count; i++) {
        if (sim->unsynced[i].number >= until) {
            sim->unsynced[kept++] = sim->unsynced[i];
        }
    }
    sim->unsynced_count = kept;
    sim_after(fault);
    return OK;
}

static const struct store_ops OPS = {
    .put = sim_put,
    .sync = sim_sync,
    .group = &GROUP,
    .group_put = sim_group_put,
    .get = sim_get,
    .head = sim_head,
    .remove = sim_remove,
    .list = sim_list,
};

struct store sim_store(struct sim_process *process)
{
    return (struct store){.ops = &OPS,
                          .self = process,
                          .puts_in_flight_max = 1 + process->slot % 3,
                          .late = !sim->logged};
}
