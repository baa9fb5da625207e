#include "format/parquet/choice.h"

#include "base/assert.h"

enum {
    SAMPLE_RUNS = 8,
    SAMPLE_PART = 8, /* of the values are in the sample at most, but for so few: */
    SAMPLE_RUN_VALUES_MIN = 64,
    SAMPLE_RUN_VALUES = 256,
    SAMPLE_VALUES = SAMPLE_RUNS * SAMPLE_RUN_VALUES,
    SAMPLE_TABLE_BITS = 12, /* 2^12 places are twice as many as values */
    SAMPLE_INDICES = 8192,
    SAMPLE_ENTRIES_BYTES = 64 * KIB, /* of a dictionary page */
    FEW_DISTINCT = 256,              /* so few are a dictionary however well PLAIN compresses */
    ESTIMATE_PERCENT_MAX = 120,      /* of what would pay: an estimate may be so wrong */
    COMPRESSED_PERCENT_MAX = 92,     /* a codec that leaves more is left out */
    SEARCH_PERCENT_MAX = 25,  /* what the codec leaves less of repeats too much for a quick one */
    CODED_VALUES_MIN = 40000, /* with fewer, the page made both ways is half of them */
    CODED_PERCENT_MAX = 120,  /* of what a search leaves: more is not tried */
    QUICK_LEVEL_MAX = 1,      /* who asks for more wants small files */
};

/* How much a codec left of some bytes. */
struct ratio {
    i64 packed;
    i64 raw;
};

struct seen {
    u64 hash; /* 0: none */
    i64 run;
};

struct sample {
    const struct values *values;
    struct compressor *compressor;
    struct choice_rooms *rooms;
    i64 runs[SAMPLE_RUNS]; /* where each begins */
    i64 run_count;
    i64 run_values;
    i64 distinct;
    i64 elsewhere;        /* distinct values of a run that an earlier run had, too */
    struct ratio plain;   /* raw 0: not known yet */
    struct ratio compact; /* in the choice's encoding, where that is another */
    struct error *error;
};

/* ---- the sample ---- */

static void sample_place(struct sample *sample)
{
    i64 count = sample->values->count;
    if (count <= SAMPLE_RUNS * SAMPLE_RUN_VALUES_MIN) {
        sample->run_count = 1;
        sample->run_values = count;
        return;
    }
    i64 share = count / SAMPLE_PART / SAMPLE_RUNS;
    i64 values = num_min_i64(share, SAMPLE_RUN_VALUES);
    sample->run_count = SAMPLE_RUNS;
    sample->run_values = values > SAMPLE_RUN_VALUES_MIN ? values : SAMPLE_RUN_VALUES_MIN;
    for (i64 i = 0; i < SAMPLE_RUNS; i++) {
        sample->runs[i] = (count - sample->run_values) / (SAMPLE_RUNS - 1) * i;
    }
}

/* By their hashes alone: two distinct values with one hash of 64 bits do no harm here. Beside each
 * hash stands the run that had it last. */
MUST_USE static bool sample_count(struct sample *sample, struct arena *arena)
{
    enum { TABLE_SIZE = 1 << SAMPLE_TABLE_BITS };
    _Static_assert(TABLE_SIZE >= 2 * SAMPLE_VALUES, "no more than half is used");
    struct seen *table = room_take(&sample->rooms->hashes, arena, TABLE_SIZE, sizeof(*table));
    if (table == NULL) {
        return false;
    }
    memset(table, 0, TABLE_SIZE * sizeof(*table));
    for (i64 run = 0; run < sample->run_count; run++) {
        for (i64 i = 0; i < sample->run_values; i++) {
            u64 hash = dictionary_hash(sample->values, sample->runs[run] + i) | 1;
            u64 place = hash >> (64 - SAMPLE_TABLE_BITS);
            while (table[place].hash != 0 && table[place].hash != hash) {
                place = (place + 1) % TABLE_SIZE;
            }
            bool is_new = table[place].hash == 0;
            sample->distinct += is_new;
            sample->elsewhere += !is_new && table[place].run != run;
            table[place] = (struct seen){hash, run};
        }
    }
    return true;
}

/* `raw` may be the body in the rooms. */
MUST_USE static err sample_pack(struct sample *sample, str raw, struct ratio *out_ratio)
{
    if (!buf_ok(sample->rooms->body)) {
        return error_memory(sample->error);
    }
    buf_truncate(sample->rooms->packed, 0);
    TRY(compress_append(sample->compressor, sample->rooms->packed, raw, sample->error));
    *out_ratio = (struct ratio){(i64)sample->rooms->packed->size, (i64)raw.size};
    return OK;
}

static void sample_put(struct sample *sample, enum page_encoding encoding)
{
    buf_truncate(sample->rooms->body, 0);
    for (i64 i = 0; i < sample->run_count; i++) {
        encoding_put(sample->rooms->body, encoding, sample->values, sample->runs[i],
                     sample->runs[i] + sample->run_values);
    }
}

MUST_USE static err sample_know_plain(struct sample *sample)
{
    if (sample->plain.raw > 0) {
        return OK;
    }
    sample_put(sample, ENCODING_PLAIN);
    return sample_pack(sample, buf_str(sample->rooms->body), &sample->plain);
}

/* From the chunk's middle, in one piece: so few bits need many values to show what they save. */
MUST_USE static err sample_pack_indices(struct sample *sample, const struct dictionary *dictionary,
                                        struct ratio *out_ratio)
{
    buf *body = sample->rooms->body;
    i64 count = num_min_i64(sample->values->count, SAMPLE_INDICES);
    i64 from = (sample->values->count - count) / 2;
    buf_truncate(body, 0);
    dictionary_put_indices(body, dictionary, from, from + count);
    return sample_pack(sample, buf_str(body), out_ratio);
}

/* ---- sizes ---- */

static i64 scale(i64 bytes, struct ratio ratio)
{
    return (i64)((double)bytes * (double)ratio.packed / (double)ratio.raw);
}

/* How many distinct values the chunk has: by how often a run met again what others had, as many as
 * would meet so often by chance. Where runs have nothing in common, as with times, each part of the
 * chunk has as many of its own as the sample. */
static i64 estimate_distinct(const struct sample *sample)
{
    i64 count = sample->values->count;
    i64 distinct = sample->distinct;
    struct ratio of_values = {distinct, sample->run_count * sample->run_values};
    i64 most = scale(count, of_values);
    i64 again = sample->elsewhere;
    return again == 0 ? most : num_min_i64(most, distinct + distinct * distinct / (2 * again));
}

/* Indices do not compress in general; entries do as well as the values. */
static i64 dictionary_cost(const struct sample *sample, i64 entries, i64 entries_bytes)
{
    return scale(entries_bytes, sample->plain) +
           sample->values->count * dictionary_width(entries) / 8;
}

/* ---- a dictionary or not ---- */

/* Whether building one is worth the trial. */
static bool dictionary_promises(const struct sample *sample, i64 bytes_max)
{
    i64 plain_bytes = values_plain_bytes(sample->values, 0, sample->values->count);
    i64 entries = estimate_distinct(sample);
    struct ratio each = {plain_bytes, sample->values->count};
    i64 entries_bytes = scale(entries, each);
    i64 cost = dictionary_cost(sample, entries, entries_bytes);
    return entries_bytes / ESTIMATE_PERCENT_MAX <= bytes_max / 100 &&
           cost / ESTIMATE_PERCENT_MAX <= scale(plain_bytes, sample->plain) / 100;
}

/* Whether the one that was made is smaller. */
static bool dictionary_pays(const struct sample *sample, const struct dictionary *dictionary)
{
    i64 plain_bytes = values_plain_bytes(sample->values, 0, sample->values->count);
    i64 entries_bytes = (i64)dictionary->entries.size;
    if (dictionary->count <= FEW_DISTINCT) {
        return entries_bytes + sample->values->count * dictionary->width / 8 < plain_bytes;
    }
    return dictionary_cost(sample, dictionary->count, entries_bytes) <
           scale(plain_bytes, sample->plain);
}

MUST_USE static err choose_dictionary(struct sample *sample, i64 bytes_max, struct arena *arena,
                                      struct choice *choice)
{
    const struct values *values = sample->values;
    if (values->count >= INT32_MAX || values->physical == LEAF_BOOLEAN || bytes_max <= 0) {
        return OK;
    }
    if (!sample_count(sample, arena)) {
        return error_memory(sample->error);
    }
    if (sample->distinct > FEW_DISTINCT) {
        TRY(sample_know_plain(sample));
        if (!dictionary_promises(sample, bytes_max)) {
            return OK;
        }
    }
    bool made = false;
    if (!dictionary_build(values, estimate_distinct(sample), bytes_max, arena,
                          &sample->rooms->dictionary, &choice->dictionary, &made)) {
        return error_memory(sample->error);
    }
    if (made && choice->dictionary.count > FEW_DISTINCT) {
        TRY(sample_know_plain(sample));
    }
    choice->has_dictionary = made && dictionary_pays(sample, &choice->dictionary);
    return OK;
}

/* ---- the encoding ---- */

MUST_USE static err choose_encoding(struct sample *sample, enum parquet_encodings allowed,
                                    struct choice *choice)
{
    enum page_encoding compact = encoding_compact(sample->values->physical);
    if (choice->has_dictionary) {
        choice->encoding = ENCODING_RLE_DICTIONARY;
        return OK;
    }
    if (allowed == PARQUET_ENCODINGS_COMPATIBLE || compact == ENCODING_PLAIN) {
        return OK;
    }
    TRY(sample_know_plain(sample));
    sample_put(sample, compact);
    TRY(sample_pack(sample, buf_str(sample->rooms->body), &sample->compact));
    if (sample->compact.packed < sample->plain.packed) {
        choice->encoding = compact;
    }
    return OK;
}

/* ---- compressed or not ---- */

/* What the codec leaves of the sample in the chosen encoding. */
MUST_USE static err sample_know_chosen(struct sample *sample, const struct choice *choice,
                                       struct ratio *out_ratio)
{
    if (choice->encoding != ENCODING_PLAIN) {
        *out_ratio = sample->compact;
        return OK;
    }
    TRY(sample_know_plain(sample));
    *out_ratio = sample->plain;
    return OK;
}

/* What the codec leaves of the pages, by the sample. */
MUST_USE static err foresee_pages(struct sample *sample, const struct choice *choice,
                                  struct ratio *out_pages)
{
    if (!choice->has_dictionary) {
        return sample_know_chosen(sample, choice, out_pages);
    }
    const struct dictionary *dictionary = &choice->dictionary;
    struct ratio indices = {0};
    struct ratio entries = {0};
    TRY(sample_pack_indices(sample, dictionary, &indices));
    TRY(sample_pack(sample, str_slice(dictionary->entries, 0, SAMPLE_ENTRIES_BYTES), &entries));
    struct ratio each = {indices.raw, num_min_i64(sample->values->count, SAMPLE_INDICES)};
    i64 indices_bytes = scale(sample->values->count, each);
    i64 entries_bytes = (i64)dictionary->entries.size;
    *out_pages = (struct ratio){
        .packed = scale(indices_bytes, indices) + scale(entries_bytes, entries),
        .raw = indices_bytes + entries_bytes,
    };
    return OK;
}

/* Of a chunk without a dictionary of which the codec saves something, `searched` of the sample. */
MUST_USE static err choose_search(struct sample *sample, struct ratio searched,
                                  struct choice *choice)
{
    buf *packed = sample->rooms->packed;
    if (choice->has_dictionary || !choice->compressed ||
        sample->compressor->codec != COMPRESS_ZSTD || sample->compressor->level > QUICK_LEVEL_MAX) {
        return OK;
    }
    /* Who asks for another encoding wants small files. */
    if (choice->encoding == ENCODING_PLAIN &&
        searched.packed / SEARCH_PERCENT_MAX > searched.raw / 100) {
        choice->search = sample->values->width == sizeof(u64) ? COMPRESS_SEARCH_NUMBERS
                                                              : COMPRESS_SEARCH_NEAR;
    }
    if (sample->values->count < CODED_VALUES_MIN) {
        return OK;
    }
    sample_put(sample, choice->encoding);
    buf_truncate(packed, 0);
    TRY(compress_append_searched(sample->compressor, COMPRESS_SEARCH_NONE, packed,
                                 buf_str(sample->rooms->body), sample->error));
    choice->try_coding = (i64)packed->size / CODED_PERCENT_MAX <= searched.packed / 100;
    return OK;
}

MUST_USE static err choose_codec(struct sample *sample, struct choice *choice)
{
    choice->compressed = sample->compressor->codec != COMPRESS_NONE;
    /* Of few values nothing is learnt that is worth its time. */
    if (!choice->compressed || sample->values->count <= SAMPLE_VALUES) {
        return OK;
    }
    struct ratio pages = {0};
    TRY(foresee_pages(sample, choice, &pages));
    choice->compressed = pages.packed / COMPRESSED_PERCENT_MAX <= pages.raw / 100;
    return choose_search(sample, pages, choice);
}

err choice_make(const struct values *values, const struct parquet_options *options,
                struct compressor *compressor, struct arena *arena, struct choice_rooms *rooms,
                struct choice *out_choice, struct error *error)
{
    struct sample sample = {
        .values = values, .compressor = compressor, .rooms = rooms, .error = error};
    struct choice choice = {0};
    if (values->count > 0) {
        sample_place(&sample);
        TRY(choose_dictionary(&sample, options->dictionary_bytes_max, arena, &choice));
        TRY(choose_encoding(&sample, options->encodings, &choice));
    }
    TRY(choose_codec(&sample, &choice));
    *out_choice = choice;
    return OK;
}
