#include "io/journal_scan.h"

#include "base/assert.h"

/* ---- blocks by their slot or number ---- */

MUST_USE static err slot_look(struct journal_source *source, u64 slot, enum journal_look *out_look,
                              struct journal_block *out_block, const u8 **out_bytes,
                              struct error *error)
{
    const struct journal_geometry *geometry = &source->geometry;
    if (slot - source->window_slot >= source->window_blocks || slot < source->window_slot) {
        u64 rest = geometry->segment_blocks - slot % geometry->segment_blocks;
        u64 count = rest < JOURNAL_GROUP_BLOCKS ? rest : JOURNAL_GROUP_BLOCKS;
        source->window_blocks = 0;
        TRY(source->read(source->self, slot, count, source->window, error));
        source->window_slot = slot;
        source->window_blocks = count;
    }
    const u8 *bytes = source->window + (slot - source->window_slot) * JOURNAL_BLOCK_BYTES;
    *out_look = journal_block_look(geometry, slot, bytes, out_block);
    *out_bytes = bytes;
    return OK;
}

MUST_USE static err damage(const struct journal_geometry *geometry, u64 number, const char *what,
                           struct error *error)
{
    u64 slot = number % geometry->blocks;
    return error_set(error, CORRUPT, ERROR_STORE_DOWN,
                     "the log is damaged in segment %llu at offset %llu (position %llu): %s",
                     (unsigned long long)(slot / geometry->segment_blocks),
                     (unsigned long long)(slot % geometry->segment_blocks * JOURNAL_BLOCK_BYTES),
                     (unsigned long long)(number * JOURNAL_BLOCK_BYTES), what);
}

/* *out_there: the slot of this number holds its block, intact. */
MUST_USE static err block_find(struct journal_source *source, u64 number, bool *out_there,
                               struct journal_block *out_block, const u8 **out_bytes,
                               struct error *error)
{
    enum journal_look look = JOURNAL_BLANK;
    TRY(slot_look(source, number % source->geometry.blocks, &look, out_block, out_bytes, error));
    *out_there = look == JOURNAL_INTACT && out_block->number == number;
    return OK;
}

/* ---- the verdict ---- */

/* What intact blocks say of others holds whether they were part of a whole group or not. */
struct known {
    u64 flushed;
    u64 released;
    u64 highest;
    u32 run;
};

MUST_USE static err look_at_all(struct journal_source *source, struct known *out_known,
                                struct error *error)
{
    struct known known = {.released = 1};
    for (u64 slot = 0; slot < source->geometry.blocks; slot++) {
        struct journal_block block = {0};
        enum journal_look look = JOURNAL_BLANK;
        const u8 *bytes = NULL;
        TRY(slot_look(source, slot, &look, &block, &bytes, error));
        if (look == JOURNAL_FOREIGN) {
            return damage(&source->geometry, slot, "the block is of another log", error);
        }
        if (look == JOURNAL_INTACT) {
            known.flushed = block.flushed > known.flushed ? block.flushed : known.flushed;
            known.released = block.released > known.released ? block.released : known.released;
            known.highest = block.number > known.highest ? block.number : known.highest;
            known.run = block.run > known.run ? block.run : known.run;
        }
    }
    *out_known = known;
    return OK;
}

struct chain {
    struct journal_block end; /* of the last whole group */
    u64 begun;                /* the last block up to there in which a record begins */
};

/* Follows the chain from block `from` on; the last block of the last whole group is its end. */
MUST_USE static err chain_follow(struct journal_source *source, u64 from, u64 flushed,
                                 struct chain *chain, struct error *error)
{
    struct journal_block before = {0};
    u64 begun = 0;
    for (u64 number = from; number - from < source->geometry.blocks; number++) {
        struct journal_block block = {0};
        const u8 *bytes = NULL;
        bool there = false;
        TRY(block_find(source, number, &there, &block, &bytes, error));
        bool follows = there && (number == from ? number > 1 || block.previous == 0
                                                : journal_block_follows(&before, &block));
        if (!follows && number <= flushed) {
            return damage(&source->geometry, number,
                          there ? "the block does not follow the one before"
                                : "the block is not what was written",
                          error);
        }
        if (!follows) {
            break;
        }
        begun = block.first != JOURNAL_NO_RECORD ? number : begun;
        if (block.last) {
            *chain = (struct chain){block, begun};
        }
        before = block;
    }
    return chain->end.number >= flushed
               ? OK
               : damage(&source->geometry, flushed, "its group has no end", error);
}

MUST_USE static err cut_count(struct journal_source *source, u64 last, u64 highest, u64 *out_cut,
                              struct error *error)
{
    u64 cut = 0;
    for (u64 number = last + 1; number <= highest; number++) {
        struct journal_block block = {0};
        const u8 *bytes = NULL;
        bool there = false;
        TRY(block_find(source, number, &there, &block, &bytes, error));
        cut += there ? 1 : 0;
    }
    *out_cut = cut;
    return OK;
}

err journal_scan(struct journal_source *source, struct journal_found *out_found,
                 struct error *error)
{
    struct known known = {0};
    TRY(look_at_all(source, &known, error));
    if (known.released > known.flushed + 1 ||
        known.flushed - known.released + 1 > source->geometry.blocks) {
        return damage(&source->geometry, known.flushed, "what is released was never durable",
                      error);
    }
    /* Block `flushed` is always there: what is released by a durable block ends before it. */
    u64 from = known.released <= known.flushed ? known.released : known.flushed;
    struct chain chain = {.end = {.released = 1}};
    TRY(chain_follow(source, from > 0 ? from : 1, known.flushed, &chain, error));
    struct journal_found found = {
        .first = known.released,
        .last = chain.end.number,
        .freed = chain.end.released,
        .checksum = chain.end.checksum,
        .run = known.run,
        .empty = chain.begun < known.released,
    };
    TRY(cut_count(source, found.last, known.highest, &found.cut, error));
    *out_found = found;
    return OK;
}

struct journal_ring journal_scan_ring(const struct journal_geometry *geometry,
                                      const struct journal_found *found)
{
    return (struct journal_ring){
        .geometry = *geometry,
        .run = found->run + 1,
        .checksum = found->checksum,
        .next = found->last + 1,
        .flushed = found->last,
        .released = found->first,
        .freed = found->freed,
    };
}

/* ---- records ---- */

enum { SIZE_BYTES = 4 };

/* A record is gathered over its blocks. */
struct gather {
    journal_record record;
    void *context;
    u8 *room;
    u8 prefix[SIZE_BYTES];
    size_t have; /* of prefix and record together; 0: none is begun */
    size_t size; /* known once the prefix is there */
    u64 position;
    bool begun; /* false: what comes first belongs to a record of a released block */
};

static size_t rest_of(const struct gather *gather)
{
    return gather->have < SIZE_BYTES ? SIZE_BYTES - gather->have
                                     : SIZE_BYTES + gather->size - gather->have;
}

/* Takes what it can of the bytes; *out_bad: no record is like this. */
static size_t gather_take(struct gather *gather, const u8 *bytes, size_t size, bool *out_bad)
{
    size_t rest = rest_of(gather);
    size_t part = size < rest ? size : rest;
    u8 *to = gather->have < SIZE_BYTES ? gather->prefix + gather->have
                                       : gather->room + (gather->have - SIZE_BYTES);
    memcpy(to, bytes, part);
    gather->have += part;
    if (gather->have == SIZE_BYTES && part > 0) {
        gather->size = num_load_u32(gather->prefix);
        *out_bad = gather->size == 0 || gather->size > JOURNAL_RECORD_BYTES_MAX;
    }
    return part;
}

MUST_USE static err gather_block(struct gather *gather, const struct journal_geometry *geometry,
                                 const struct journal_block *block, const u8 *payload,
                                 struct error *error)
{
    size_t at = 0;
    if (!gather->begun) {
        at = block->first == JOURNAL_NO_RECORD ? block->used : block->first;
        gather->begun = block->first != JOURNAL_NO_RECORD;
    }
    bool bad = false;
    while (at < block->used && !bad) {
        if (gather->have == 0) {
            gather->position = block->number * JOURNAL_BLOCK_BYTES + at;
        }
        at += gather_take(gather, payload + at, block->used - at, &bad);
        if (!bad && gather->have > SIZE_BYTES && rest_of(gather) == 0) {
            str bytes = {(const char *)gather->room, gather->size};
            TRY(gather->record(gather->context, gather->position, bytes, error));
            gather->have = 0;
        }
    }
    if (bad || (block->last && gather->have > 0)) {
        return damage(geometry, block->number, "the record in it has no sound size", error);
    }
    return OK;
}

err journal_scan_records(struct journal_source *source, const struct journal_found *found, u8 *room,
                         journal_record record, void *context, struct error *error)
{
    struct gather gather = {.record = record, .context = context, .room = room};
    for (u64 number = found->first; number <= found->last; number++) {
        struct journal_block block = {0};
        const u8 *bytes = NULL;
        bool there = false;
        TRY(block_find(source, number, &there, &block, &bytes, error));
        if (!there) {
            return damage(&source->geometry, number, "the block changed while it was read", error);
        }
        TRY(gather_block(&gather, &source->geometry, &block, bytes + JOURNAL_HEADER_BYTES, error));
    }
    return OK;
}
