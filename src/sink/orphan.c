#include "sink/orphan.h"

#include "base/base64.h"
#include "base/log.h"

enum {
    ORPHAN_OBJECT_MIB_MAX = 1024,
    ORPHAN_SEGMENTS_MAX = 1024, /* as many as a group has */
    HASH_TEXT_MAX = 64,
};

/* ---- names and metadata ---- */

bool orphan_parse_key(str key, str sink_id, struct uid *out_uid)
{
    static const str head = STR_INIT("_sink/");
    static const str tail = STR_INIT(".ndjson");
    if (!str_starts(key, head) || !str_ends(key, tail)) {
        return false;
    }
    str rest = str_slice(key, head.size, key.size - tail.size);
    if (!str_starts(rest, sink_id)) {
        return false;
    }
    str name = str_slice(rest, sink_id.size, rest.size);
    if (name.size < ID_UID_SIZE + 3 || name.data[0] != '/' ||
        str_find_byte(str_slice(name, 1, name.size), '/') >= 0) {
        return false;
    }
    size_t dot = name.size - ID_UID_SIZE - 1;
    return name.data[dot] == '.' && id_uid_parse(str_slice(name, dot + 1, name.size), out_uid);
}

static bool next_number(str *rest, i64 *out_number)
{
    str part = {0};
    return str_next(rest, ',', &part) && str_to_i64(part, out_number) && *out_number >= 0;
}

static bool next_hash(buf *scratch, str *rest, u8 *out, size_t size)
{
    str part = {0};
    buf_truncate(scratch, 0);
    if (!str_next(rest, ',', &part) || part.size > HASH_TEXT_MAX || !base64_decode(scratch, part) ||
        scratch->size != size) {
        return false;
    }
    memcpy(out, scratch->data, size);
    return true;
}

/* id, offset, bytes, rows, refused, both hashes (decisions 46). */
static bool parse_entry(buf *scratch, str entry, struct ledger_segment *segment)
{
    return str_next(&entry, ',', &segment->batch_id) && segment->batch_id.size > 0 &&
           next_number(&entry, &segment->offset) && next_number(&entry, &segment->bytes) &&
           next_number(&entry, &segment->rows) && next_number(&entry, &segment->refused) &&
           next_hash(scratch, &entry, segment->sha256.bytes, sizeof(segment->sha256.bytes)) &&
           next_hash(scratch, &entry, segment->body_hash, sizeof(segment->body_hash)) &&
           segment->offset + segment->bytes >= segment->offset;
}

static size_t count_entries(str rest)
{
    size_t count = 0;
    str entry = {0};
    while (count < ORPHAN_SEGMENTS_MAX && str_next(&rest, ';', &entry)) {
        count++;
    }
    return count;
}

err orphan_parse_object(struct arena *arena, const struct store_object *object,
                        const struct uid *uid, struct ledger_segment **out_segments,
                        size_t *out_count, struct error *error)
{
    str rest = store_meta_value(&object->meta, STR("batches"));
    struct ledger_segment *segments = arena_array(arena, count_entries(rest), sizeof(*segments));
    /* It never grows: what cannot be decoded in it is no hash, and no lack of memory. */
    buf scratch = buf_create(arena, HASH_TEXT_MAX, HASH_TEXT_MAX);
    if (segments == NULL || !buf_ok(&scratch)) {
        return error_memory(error);
    }
    instant received_at = 0;
    str received = store_meta_value(&object->meta, STR("received"));
    bool good = rest.size > 0 && received.data != NULL && time_parse(received, &received_at);
    size_t count = 0;
    str entry = {0};
    while (good && str_next(&rest, ';', &entry)) {
        good = count < ORPHAN_SEGMENTS_MAX;
        struct ledger_segment *segment = &segments[good ? count : 0];
        *segment = (struct ledger_segment){.object_key = object->key,
                                           .uid = *uid,
                                           .received_at = received_at,
                                           .modified_at = object->modified_at};
        good = good && parse_entry(&scratch, entry, segment) &&
               segment->offset + segment->bytes <= object->size;
        count++;
    }
    if (!good) {
        return error_set(error, CORRUPT, ERROR_INTERNAL, "the metadata of %.*s cannot be read",
                         STR_ARG(object->key));
    }
    *out_segments = segments;
    *out_count = count;
    return OK;
}

/* ---- recording ---- */

struct page {
    struct ledger_object *objects;
    instant *modified_at;
    size_t count;
    struct ledger_object *again;
    size_t again_count;
    struct ledger_segment *segments;
    size_t segment_count;
    size_t segment_room;
};

static err page_open(struct arena *arena, size_t count, struct page *page, struct error *error)
{
    *page = (struct page){
        .objects = arena_array(arena, count, sizeof(*page->objects)),
        .modified_at = arena_array(arena, count, sizeof(*page->modified_at)),
        .again = arena_array(arena, count, sizeof(*page->again)),
        .segment_room = count,
    };
    page->segments = arena_array(arena, page->segment_room, sizeof(*page->segments));
    return page->objects != NULL && page->modified_at != NULL && page->again != NULL &&
                   page->segments != NULL
               ? OK
               : error_memory(error);
}

static err page_add(struct arena *arena, struct page *page, const struct ledger_segment *segments,
                    size_t count, struct error *error)
{
    if (page->segment_count + count > page->segment_room) {
        size_t wider = page->segment_room * 2 + count;
        page->segments = arena_grow(arena, page->segments,
                                    page->segment_room * sizeof(*page->segments),
                                    wider * sizeof(*page->segments));
        if (page->segments == NULL) {
            return error_memory(error);
        }
        page->segment_room = wider;
    }
    if (count > 0) {
        memcpy(page->segments + page->segment_count, segments, count * sizeof(*segments));
    }
    page->segment_count += count;
    return OK;
}

/* One look at the object itself. What cannot be read is one segment without an id: kept for a
 * person. */
static err read_object(const struct roll_env *env, struct arena *arena, struct page *page,
                       size_t index, struct error *error)
{
    const struct ledger_object *known = &page->objects[index];
    struct store_object object = {0};
    struct error told = {0};
    err got = store_head(&env->warehouse->files, arena, known->object_key, &object, &told);
    if (got == NOT_FOUND) {
        return OK;
    }
    if (got != OK) {
        return error_set(error, got, told.code, "%s", told.message);
    }
    struct ledger_segment *segments = NULL;
    size_t count = 0;
    object.key = known->object_key;
    object.modified_at = page->modified_at[index];
    error_clear(&told);
    err parsed = orphan_parse_object(arena, &object, &known->uid, &segments, &count, &told);
    if (parsed == OK) {
        return page_add(arena, page, segments, count, error);
    }
    if (parsed != CORRUPT) {
        return error_set(error, parsed, told.code, "%s", told.message);
    }
    if (known->rows > 0) {
        return OK; /* its rows know it well enough */
    }
    log_error("orphan_unreadable", parsed, &told, known->object_key);
    const struct ledger_segment unread = {.object_key = known->object_key,
                                          .batch_id = STR_INIT(""),
                                          .uid = known->uid,
                                          .modified_at = object.modified_at,
                                          .received_at = object.modified_at};
    return page_add(arena, page, &unread, 1, error);
}

/* Objects with rows hold segments without one only where a group's ledger transactions were two: a
 * pass of the collector looks at those when they are old enough for it to matter. */
static bool wants_look(const struct page *page, size_t index, enum orphan_look which, instant now)
{
    const struct ledger_object *known = &page->objects[index];
    return known->rows == 0 || which == ORPHAN_LOOK_ALL ||
           now - page->modified_at[index] >= ORPHAN_YOUNG_US;
}

static err record_page(const struct roll_env *env, struct arena *arena, str sink_id, i64 look,
                       enum orphan_look which, struct page *page, struct error *error)
{
    instant now = seam_now(env->seam);
    TRY(ledger_know_objects(env->db, sink_id, page->objects, page->count, error));
    for (size_t i = 0; i < page->count; i++) {
        if (!wants_look(page, i, which, now)) {
            continue;
        }
        if (page->objects[i].seen) {
            page->again[page->again_count++] = page->objects[i];
        } else {
            TRY(read_object(env, arena, page, i, error));
        }
    }
    if (page->segment_count == 0 && page->again_count == 0) {
        return OK;
    }
    return ledger_see_orphans(env->db, sink_id, look, page->segments, page->segment_count,
                              page->again, page->again_count, error);
}

/* `plans/`, `rejects/` and `sink/` are jumped over; no object's key stands between a folder's name
 * with `/` and with `0`. */
static str after_folder(struct arena *arena, str key, str prefix)
{
    str rest = str_slice(key, prefix.size, key.size);
    i64 slash = str_find_byte(rest, '/');
    return slash < 0 ? key
                     : str_format(arena, "%.*s%.*s0", STR_ARG(prefix),
                                  STR_ARG(str_slice(rest, 0, (size_t)slash)));
}

static err next_page(const struct roll_env *env, struct arena *arena, str sink_id, str after,
                     struct page *page, str *out_after, struct error *error)
{
    struct store_list list = {0};
    str prefix = str_format(arena, "_sink/%.*s/", STR_ARG(sink_id));
    if (prefix.data == NULL) {
        return error_memory(error);
    }
    TRY(store_list(&env->warehouse->files, arena, prefix, after, ORPHAN_PAGE, &list, error));
    TRY(page_open(arena, list.count, page, error));
    str last = {NULL, 0};
    for (size_t i = 0; i < list.count; i++) {
        str key = list.objects[i].key;
        struct uid uid;
        last = after_folder(arena, key, prefix);
        if (last.data == NULL) {
            return error_memory(error);
        }
        if (!str_equal(last, key)) {
            break; /* a folder: go on behind it */
        }
        if (orphan_parse_key(key, sink_id, &uid)) {
            page->objects[page->count] = (struct ledger_object){.object_key = key, .uid = uid};
            page->modified_at[page->count++] = list.objects[i].modified_at;
        }
    }
    *out_after = last;
    return OK;
}

err orphan_record(const struct roll_env *env, str sink_id, enum orphan_look which,
                  struct error *error)
{
    struct arena *arena AUTO_ARENA = arena_create((size_t)ORPHAN_SCRATCH_MIB_MAX * MIB);
    char after_bytes[STORE_KEY_MAX + 1];
    str after = STR("");
    i64 look = 0;
    TRY(ledger_next_look(env->db, sink_id, &look, error));
    while (after.data != NULL) {
        struct page page = {0};
        str next = {NULL, 0};
        arena_reset(arena);
        TRY(next_page(env, arena, sink_id, after, &page, &next, error));
        TRY(record_page(env, arena, sink_id, look, which, &page, error));
        if (next.size > sizeof(after_bytes)) {
            return error_set(error, LIMIT, ERROR_INTERNAL, "a key is too long");
        }
        if (next.size > 0) {
            memcpy(after_bytes, next.data, next.size);
        }
        after = next.data == NULL ? next : (str){after_bytes, next.size};
    }
    return ledger_forget_orphans(env->db, sink_id, look, error);
}

/* ---- copies ---- */

/* A key's batch part stays; only the uid in it is fresh. */
static str fresh_key(struct arena *arena, str old_key, const struct uid *uid)
{
    size_t tail = ID_UID_SIZE + sizeof(".ndjson") - 1;
    if (old_key.size < tail) {
        return (str){NULL, 0};
    }
    return str_format(arena, "%.*s%.*s.ndjson", STR_ARG(str_slice(old_key, 0, old_key.size - tail)),
                      STR_ARG(id_uid_str(uid)));
}

err orphan_copy(const struct roll_env *env, struct arena *arena, str sink_id,
                const struct ledger_segment *segment, struct ledger_copy *out_copy,
                struct error *error)
{
    struct arena *body AUTO_ARENA = arena_create((size_t)ORPHAN_OBJECT_MIB_MAX * MIB);
    struct store_object object = {0};
    struct uid fresh = id_uid_make(env->seam);
    struct uid named;
    str key = fresh_key(arena, segment->object_key, &fresh);
    if (key.data == NULL || !orphan_parse_key(key, sink_id, &named)) {
        return error_set(error, CORRUPT, ERROR_INTERNAL, "%.*s is no intake object's key",
                         STR_ARG(segment->object_key));
    }
    TRY(store_get(&env->warehouse->files, body, segment->object_key, &object, error));
    object.meta.durability = STORE_DURABLE;
    TRY(store_put(&env->warehouse->files, key, object.body, &object.meta, error));
    CRASH_POINT(orphan_copied);
    *out_copy = (struct ledger_copy){
        .old_key = segment->object_key, .old_uid = segment->uid, .new_key = key, .new_uid = fresh};
    return OK;
}

/* ---- a person's decision ---- */

static err find_segment(const struct roll_env *env, struct arena *arena, str sink_id, str batch_id,
                        str keep_uid, struct ledger_segment *out_segment, struct error *error)
{
    struct ledger_segment *segments = NULL;
    size_t count = 0;
    TRY(ledger_list_orphans(env->db, arena, sink_id, ORPHANS_ALL, STR(""), ORPHAN_CHECKS_MAX,
                            &segments, &count, error));
    for (size_t i = 0; i < count; i++) {
        if (str_equal(segments[i].batch_id, batch_id) &&
            str_equal(id_uid_str(&segments[i].uid), keep_uid)) {
            *out_segment = segments[i];
            return OK;
        }
    }
    return error_set(error, NOT_FOUND, ERROR_BATCH_NOT_FOUND,
                     "no quarantined batch %.*s with the object %.*s", STR_ARG(batch_id),
                     STR_ARG(keep_uid));
}

err orphan_resolve(const struct roll_env *env, struct arena *arena, str sink_id, str batch_id,
                   str keep_uid, str *out_row_id, struct error *error)
{
    struct ledger_batch row = {0};
    struct error told = {0};
    TRY(roll_close_sink(env, sink_id, error));
    err found = ledger_find_batch(env->db, arena, sink_id, batch_id, &row, &told);
    if (found != OK && found != NOT_FOUND) {
        return error_set(error, found, told.code, "%s", told.message);
    }
    if (found == OK && str_equal(id_uid_str(&row.uid), keep_uid)) {
        TRY(ledger_dismiss_quarantined(env->db, sink_id, batch_id, error));
        *out_row_id = row.batch_id;
        return OK;
    }
    struct ledger_segment segment = {0};
    struct ledger_copy copy = {0};
    /* What was in quarantine may have been found by a recover: it is recorded by the next look. */
    TRY(orphan_record(env, sink_id, ORPHAN_LOOK_ALL, error));
    TRY(find_segment(env, arena, sink_id, batch_id, keep_uid, &segment, error));
    TRY(orphan_copy(env, arena, sink_id, &segment, &copy, error));
    return ledger_resolve_quarantined(env->db, arena, sink_id, batch_id, &copy, out_row_id, error);
}
