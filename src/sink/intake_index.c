#include "sink/intake_index.h"

#include "base/assert.h"
#include "base/log.h"
#include "base/queue.h"

enum {
    LAYERS_MAX = 24,
    FIRST_LAYER_BYTES = 256 * KIB,
    BITS_PER_ID = 12, /* about one false alarm in a hundred */
    PAGE = 1000,
};
#define PAGE_BYTES_MAX ((size_t)4 * MIB)
#define RETRY_US       ((i64)10 * TIME_SECOND_US)

struct layer {
    _Atomic u64 *words;
    u64 count;     /* of words, below 2^32 */
    u64 enough;    /* ids, then the next layer is made */
    _Atomic u64 n; /* ids noted here */
};

struct intake_index {
    const struct intake_options *options;
    struct arena *arena; /* the thread's */
    size_t bytes;        /* of all layers */
    struct layer layers[LAYERS_MAX];
    _Atomic u32 layer_count; /* the last one takes new ids */
    atomic_bool complete;
    atomic_bool closing;
    struct queue *wakes; /* what is in it says nothing but: look */
    pthread_t thread;
    struct arena *page;     /* of the ids read last; NULL: none yet */
    struct ledger_id after; /* the ledger is read up to here; in `page` */
};

/* ---- fingerprints ---- */

u64 intake_index_sink(str sink_id)
{
    return str_hash(sink_id) * 0x9e3779b97f4a7c15;
}

u64 intake_index_id(u64 sink_hash, str batch_id)
{
    u64 hash = sink_hash ^ str_hash(batch_id);
    return hash != 0 ? hash : 1;
}

/* The high half chooses a word, thirty low bits the five in it: one word is changed at once. */
static _Atomic u64 *word_of(const struct layer *layer, u64 hash)
{
    return &layer->words[(hash >> 32) * layer->count >> 32];
}

static u64 bits_of(u64 hash)
{
    u64 bits = 0;
    for (u32 i = 0; i < 5; i++) {
        bits |= (u64)1 << (hash >> (6 * i) & 63);
    }
    return bits;
}

static bool layer_has(const struct layer *layer, u64 hash)
{
    u64 bits = bits_of(hash);
    return (atomic_load_explicit(word_of(layer, hash), memory_order_relaxed) & bits) == bits;
}

/* False when it may have been there. */
static bool layer_put(struct layer *layer, u64 hash)
{
    u64 bits = bits_of(hash);
    u64 before = atomic_fetch_or_explicit(word_of(layer, hash), bits, memory_order_relaxed);
    return (before & bits) != bits;
}

/* ---- layers ---- */

/* What is left under the bound, at most as much as there is already; false when that is nothing. */
static bool layer_add(struct intake_index *index)
{
    u32 count = atomic_load_explicit(&index->layer_count, memory_order_relaxed);
    size_t left = (size_t)index->options->index_bytes_max - index->bytes;
    size_t wanted = index->bytes > FIRST_LAYER_BYTES ? index->bytes : FIRST_LAYER_BYTES;
    size_t bytes = wanted < left ? wanted : left;
    if (count == LAYERS_MAX || bytes < FIRST_LAYER_BYTES) {
        return false;
    }
    struct layer *layer = &index->layers[count];
    layer->words = arena_alloc(index->arena, bytes);
    if (layer->words == NULL) {
        return false;
    }
    index->bytes += bytes;
    layer->count = bytes / sizeof(u64);
    layer->enough = bytes * 8 / BITS_PER_ID;
    atomic_store_explicit(&index->layer_count, count + 1, memory_order_release);
    return true;
}

static bool layer_is_full(struct layer *layer)
{
    return atomic_load_explicit(&layer->n, memory_order_relaxed) >= layer->enough;
}

/* Notes it; false when it may be known already. */
static bool note(struct intake_index *index, u64 hash)
{
    u32 count = atomic_load_explicit(&index->layer_count, memory_order_acquire);
    if (count == 0) {
        return false;
    }
    for (u32 i = 0; i + 1 < count; i++) {
        if (layer_has(&index->layers[i], hash)) {
            return false;
        }
    }
    struct layer *last = &index->layers[count - 1];
    if (!layer_put(last, hash)) {
        return false;
    }
    if (1 + atomic_fetch_add_explicit(&last->n, 1, memory_order_relaxed) == last->enough) {
        bool woken = queue_push(index->wakes, index);
        (void)woken; /* one wake is as good as many */
    }
    return true;
}

bool intake_index_claim(struct intake_index *index, u64 id_hash)
{
    /* Looked at first: what the ledger had when it was read is in the set by then. */
    bool complete = atomic_load_explicit(&index->complete, memory_order_acquire);
    return note(index, id_hash) && complete;
}

/* ---- filling it from the ledger ---- */

static void grow(struct intake_index *index)
{
    u32 count = atomic_load_explicit(&index->layer_count, memory_order_relaxed);
    if (count > 0 && layer_is_full(&index->layers[count - 1])) {
        bool grown = layer_add(index);
        (void)grown; /* at the bound the last layer gets denser */
    }
}

/* One page; complete when it was the last. */
MUST_USE static err fill(struct intake_index *index, struct error *error)
{
    struct arena *page = arena_create(PAGE_BYTES_MAX);
    struct ledger_id *ids = NULL;
    size_t count = 0;
    err result = ledger_list_ids(index->options->db, page, &index->after, PAGE, &ids, &count,
                                 error);
    if (result != OK) {
        arena_destroy(page);
        return result;
    }
    for (size_t i = 0; i < count; i++) {
        grow(index);
        bool is_new = note(index,
                           intake_index_id(intake_index_sink(ids[i].sink_id), ids[i].batch_id));
        (void)is_new;
    }
    arena_destroy(index->page);
    index->page = page;
    if (count > 0) {
        index->after = ids[count - 1];
    }
    if (count < PAGE) {
        atomic_store_explicit(&index->complete, true, memory_order_release);
    }
    return OK;
}

/* Until the ledger is read, or does not answer. */
static bool fill_all(struct intake_index *index)
{
    bool any = atomic_load_explicit(&index->layer_count, memory_order_relaxed) > 0;
    while (any && !atomic_load(&index->complete) && !atomic_load(&index->closing)) {
        struct error error = {0};
        err result = fill(index, &error);
        if (result != OK) {
            log_error("ids_not_read", result, &error, STR(""));
            return false;
        }
    }
    return true;
}

static void *index_thread(void *argument)
{
    struct intake_index *index = argument;
    while (!atomic_load(&index->closing)) {
        i64 pause_us = fill_all(index) ? -1 : RETRY_US;
        grow(index);
        void *wake = queue_pop(index->wakes, pause_us);
        (void)wake;
    }
    return NULL;
}

/* ---- life ---- */

err intake_index_open(struct arena *arena, const struct intake_options *options,
                      struct intake_index **out_index, struct error *error)
{
    struct intake_index *index = arena_alloc(arena, sizeof(*index));
    if (index == NULL) {
        return error_memory(error);
    }
    index->options = options;
    index->arena = arena_create((size_t)options->index_bytes_max + LAYERS_MAX * KIB);
    err result = OK;
    if (layer_add(index)) {
        result = fill(index, error);
    }
    if (result != OK) {
        arena_destroy(index->page);
        arena_destroy(index->arena);
        return result;
    }
    index->wakes = queue_create(1);
    int made = pthread_create(&index->thread, NULL, index_thread, index);
    assert(made == 0);
    *out_index = index;
    return OK;
}

void intake_index_close(struct intake_index *index)
{
    atomic_store(&index->closing, true);
    queue_close(index->wakes);
    (void)pthread_join(index->thread, NULL);
    queue_destroy(index->wakes);
    arena_destroy(index->page);
    arena_destroy(index->arena);
}
