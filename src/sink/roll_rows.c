#include "sink/roll_rows.h"

#include "base/assert.h"
#include "sink/batch.h"

enum {
    REJECTS_BYTES_MAX = 256 * 1024 * 1024,
    RECORD_BYTES_MAX = 128 * 1024,
    ROWS_KEPT_IN_COLUMNS = 4096, /* of a partitioned pass, which needs only the last */
};

/* ---- recording ---- */

static struct reject_batch describe(const struct rows_pass *pass, size_t batch)
{
    return (struct reject_batch){
        .batch_id = pass->plan->batches[batch].batch_id,
        .received_at = pass->plan->batches[batch].received_at,
        .schema_id = pass->schema.id,
        .mapping_version = -1,
    };
}

static size_t utf8_cut(str text, size_t size)
{
    while (size > 0 && size < text.size && ((u8)text.data[size] & 0xC0) == 0x80) {
        size--;
    }
    return size;
}

/* The API shows the record, and a long row cut, as a JSON string. */
static void keep_recent(struct rows_pass *pass, const struct reject_batch *batch,
                        const struct reject_row *row, str printed)
{
    buf *slot = &pass->recent[pass->recent_next % PLAN_RECENT_MAX];
    pass->recent_next++;
    if (slot->arena == NULL || !buf_ok(slot)) {
        *slot = buf_create(pass->roll->arena, KIB, RECORD_BYTES_MAX);
    }
    buf_truncate(slot, 0);
    if (row->data.size <= ROWS_RECENT_DATA_MAX) {
        buf_append(slot, printed);
    } else {
        struct reject_row shown = *row;
        buf cut = buf_create(pass->batch_scratch, 2 * ROWS_RECENT_DATA_MAX, RECORD_BYTES_MAX);
        buf_append_json_string(&cut,
                               str_slice(row->data, 0, utf8_cut(row->data, ROWS_RECENT_DATA_MAX)));
        shown.data = buf_str(&cut);
        shown.is_json = false;
        reject_record(slot, batch, &shown);
    }
    if (slot->size > 0 && slot->data[slot->size - 1] == '\n') {
        buf_truncate(slot, slot->size - 1);
    }
}

static err record(struct rows_pass *pass, size_t batch, const struct reject_row *row, i64 rows,
                  struct error *error)
{
    const struct reject_batch described = describe(pass, batch);
    size_t start = pass->rejects.size;
    reject_record(&pass->rejects, &described, row);
    if (!buf_ok(&pass->rejects)) {
        return error_memory(error);
    }
    keep_recent(pass, &described, row,
                str_slice(buf_str(&pass->rejects), start, pass->rejects.size));
    pass->counts.reasons[row->hits[0].reason] += rows;
    pass->counts.verdicts[batch].rows_rejected += rows;
    return OK;
}

static err reject_group_row(struct rows_pass *pass, size_t batch, i64 index, str line,
                            struct error *error)
{
    const struct reject_hit hit = {
        .reason = REJECT_PARTITION_LIMIT,
        .detail = STR("the batch spreads over more than 2000 partitions"),
    };
    const struct reject_row row = {.row = index, .hits = &hit, .hit_count = 1, .data = line};
    return record(pass, batch, &row, 1, error);
}

static err reject_whole(struct rows_pass *pass, size_t batch, enum reject_reason reason, str detail,
                        struct error *error)
{
    const struct reject_hit hit = {.reason = reason, .detail = detail};
    const struct reject_row row = {.row = -1, .hits = &hit, .hit_count = 1};
    return record(pass, batch, &row, pass->plan->batches[batch].rows, error);
}

static err reject_unwritable(struct rows_pass *pass, size_t batch, str rest, struct error *error)
{
    const struct reject_hit hit = {.reason = REJECT_BATCH_UNWRITABLE, .detail = pass->unwritable};
    str line;
    for (i64 index = 0; str_next(&rest, '\n', &line); index++) {
        const struct reject_row row = {.row = index, .hits = &hit, .hit_count = 1, .data = line};
        if (line.size > 0) {
            TRY(record(pass, batch, &row, 1, error));
        }
    }
    return OK;
}

/* ---- lines ---- */

static err take_row(struct rows_pass *pass, size_t batch, i64 index, str line, struct error *error)
{
    if (pass->partitioned) {
        u32 group = 0;
        TRY(rows_find_group(pass, &group, error));
        if (pass->columns[0].count >= ROWS_KEPT_IN_COLUMNS) {
            decoder_clear(pass->decoder);
        }
        if (pass->groups[group].refused) {
            return reject_group_row(pass, batch, index, line, error);
        }
        TRY(rows_keep_line(pass, line, batch, group, error));
    } else if (pass->writer == NULL) {
        decoder_clear(pass->decoder);
    } else if (roll_writer_wants(pass->writer, pass->columns, pass->column_count)) {
        TRY(roll_writer_rows(pass->writer, pass->columns, error));
        decoder_clear(pass->decoder);
    }
    pass->counts.verdicts[batch].rows_committed++;
    return OK;
}

/* The first of `lines`, which then begin behind it. */
static err take_line(struct rows_pass *pass, size_t batch, i64 index, str *lines,
                     enum rows_end *out_end, struct error *error)
{
    struct decode_result *result = &pass->result;
    str line;
    TRY(decode_next(pass->decoder, lines, pass->plan->batches[batch].ingest_ts, &line, result,
                    error));
    switch (result->verdict) {
    case DECODE_ROW:
        return take_row(pass, batch, index, line, error);
    case DECODE_REJECT: {
        const struct reject_row row = {
            .row = index,
            .hits = result->hits,
            .hit_count = result->hit_count,
            .did_you_mean = result->did_you_mean,
            .data = line,
            .is_json = true,
        };
        return record(pass, batch, &row, 1, error);
    }
    case DECODE_EMPTY:
        return OK;
    case DECODE_UNREADABLE:
        pass->unreadable[batch] = true;
        *out_end = ROWS_RESTART;
        return OK;
    }
    return OK;
}

/* The batch's lines; not what is only refused whole, which is verified all the same. */
static err fetch(struct rows_pass *pass, size_t batch, str *out_segment, enum rows_end *out_end,
                 struct error *error)
{
    bool verified = true;
    if (pass->segments != NULL) {
        *out_segment = pass->segments[batch];
    } else {
        TRY(roll_stream_batch(pass->roll, pass->plan, pass->stream, batch, out_segment, &verified,
                              error));
    }
    *out_end = verified ? ROWS_DONE : ROWS_DAMAGED;
    return OK;
}

static err take_lines(struct rows_pass *pass, size_t batch, str rest, enum rows_end *out_end,
                      struct error *error)
{
    if (pass->unwritable.data != NULL) {
        return reject_unwritable(pass, batch, rest, error);
    }
    decoder_reads(pass->decoder, rest);
    for (i64 index = 0; rest.data != NULL && *out_end == ROWS_DONE; index++) {
        TRY(take_line(pass, batch, index, &rest, out_end, error));
    }
    return OK;
}

/* Every stored row is now either a row or a reject: the books hang on it (I13). */
static err check_count(const struct rows_pass *pass, size_t batch, struct error *error)
{
    const struct ledger_verdict *verdict = &pass->counts.verdicts[batch];
    i64 rows = pass->plan->batches[batch].rows;
    if (verdict->rows_committed + verdict->rows_rejected != rows) {
        return error_set(error, CORRUPT, ERROR_INTERNAL, "batch %.*s has %lld rows, %lld expected",
                         STR_ARG(verdict->batch_id),
                         (long long)(verdict->rows_committed + verdict->rows_rejected),
                         (long long)rows);
    }
    return OK;
}

err rows_batch(struct rows_pass *pass, size_t batch, enum rows_end *out_end, struct error *error)
{
    arena_reset(pass->batch_scratch);
    pass->rejects = buf_create(pass->batch_scratch, KIB, REJECTS_BYTES_MAX);
    str segment = {0};
    TRY(fetch(pass, batch, &segment, out_end, error));
    if (*out_end != ROWS_DONE) {
        return OK;
    }
    if (pass->plan->batches[batch].bytes > ROWS_BATCH_BYTES_MAX) {
        return reject_whole(pass, batch, REJECT_BATCH_TOO_LARGE,
                            STR("the stored batch is over 64 MiB"), error);
    }
    if (pass->unreadable[batch]) {
        return reject_whole(pass, batch, REJECT_BATCH_UNREADABLE,
                            STR("the stored batch is not one JSON value a line"), error);
    }
    TRY(take_lines(pass, batch, segment, out_end, error));
    return *out_end == ROWS_DONE ? check_count(pass, batch, error) : OK;
}

/* ---- batches ---- */

/* A roller that was away while others went on has nothing to say any more. */
static err check_last(const struct rows_pass *pass, struct error *error)
{
    bool last = pass->mends;
    if (!last) {
        TRY(ledger_is_last_try(pass->roll->env->db, pass->plan->row.id, pass->plan->row.tries,
                               &last, error));
    }
    return last ? OK : error_set(error, BUSY, ERROR_UNAVAILABLE, "another roller has the plan");
}

/* A first verdict waits in the roll's group, and is durable before the plan is marked attempted.
 * Any other comes behind what waits there. */
static err put_once(const struct rows_pass *pass, str key, bool waits,
                    const struct store_meta *meta, struct error *error)
{
    const struct store *files = &pass->roll->env->warehouse->files;
    str body = buf_str(&pass->rejects);
    return waits ? store_group_put(files, pass->roll->group, key, &body, 1, meta, error)
                 : store_put(files, key, body, meta, error);
}

/* A batch has one rejects file, and the put of an earlier try may be late. So each put says what it
 * replaces, and an earlier one that arrives after it is refused by the store (I15). What is there
 * is looked at first, then whether this is the last try: a later one replaces what this one puts.
 */
static err put_verdict(const struct rows_pass *pass, str key, bool first, struct store_meta *meta,
                       struct error *error)
{
    enum { LOOKS_MAX = 8 };
    const struct store *files = &pass->roll->env->warehouse->files;
    struct store_group *group = pass->roll->group;
    bool waits = first && !pass->restarted && group != NULL;
    if (group != NULL && (!waits || group->count == STORE_GROUP_MAX)) {
        TRY(store_group_end(group, error));
    }
    meta->replaces = STR("");
    for (int looks = 0; looks < LOOKS_MAX; looks++) {
        struct error told = {0};
        err result = put_once(pass, key, waits && looks == 0, meta, &told);
        if (result != CONFLICT) {
            return result == OK ? OK : error_set(error, result, told.code, "%s", told.message);
        }
        struct store_object there = {0};
        result = store_head(files, pass->batch_scratch, key, &there, &told);
        if (result != OK && result != NOT_FOUND) {
            return error_set(error, result, told.code, "%s", told.message);
        }
        meta->replaces = result == OK ? there.version : STR("");
        TRY(check_last(pass, error));
    }
    return error_set(error, BUSY, ERROR_UNAVAILABLE, "%.*s is written by others", STR_ARG(key));
}

/* Without rejects there is no file. An earlier try or plan may have written one: it goes, or where
 * it could come back an empty one takes its place. */
static err put_rejects(struct rows_pass *pass, size_t batch, struct error *error)
{
    const struct ledger_batch *row = &pass->plan->batches[batch];
    const struct store *files = &pass->roll->env->warehouse->files;
    bool none = pass->rejects.size == 0;
    bool first = pass->plan->row.tries <= 1 && !pass->plan->computed && !row->retried;
    if (none && first) {
        return OK;
    }
    str key = batch_rejects_key(pass->batch_scratch, pass->roll->sink.id, row->batch_id);
    if (none && !files->late) {
        return store_remove(files, key, error);
    }
    if (!pass->mends && !pass->told) {
        TRY(db_sync(pass->roll->env->db, error)); /* that there was a try is known for good */
        pass->told = true;
    }
    struct store_meta meta = {.content_type = STR_INIT("application/x-ndjson"), .count = 2};
    meta.entries[0] = (struct store_meta_entry){
        STR("schema-id"), str_format(pass->batch_scratch, "%d", pass->schema.id)};
    meta.entries[1] = (struct store_meta_entry){
        STR("sha256"), reject_hash(pass->batch_scratch, buf_str(&pass->rejects))};
    if (key.data == NULL) {
        return error_memory(error);
    }
    return put_verdict(pass, key, first, &meta, error);
}

static void pass_restart(struct rows_pass *pass)
{
    for (size_t i = 0; i < pass->plan->batch_count; i++) {
        pass->counts.verdicts[i].rows_committed = 0;
        pass->counts.verdicts[i].rows_rejected = 0;
    }
    memset(pass->counts.reasons, 0, sizeof(pass->counts.reasons));
    pass->recent_next = 0;
    pass->line_count = 0;
    for (size_t i = 0; i < pass->group_count; i++) {
        pass->groups[i].rows = 0;
    }
    decoder_clear(pass->decoder);
    if (pass->writer != NULL) {
        pass->writer->parquet = NULL; /* its bytes were in scratch, and in no store */
    }
}

static err judge_partitions(struct rows_pass *pass, size_t batch, enum rows_end *out_end,
                            size_t *out_fits, struct error *error)
{
    if (batch == 0 && pass->group_count > ROWS_PARTITIONS_MAX && !pass->limited) {
        pass->limited = true;
        *out_end = ROWS_RESTART;
        return rows_refuse_smallest(pass, error);
    }
    if (batch > 0 && pass->group_count > ROWS_PARTITIONS_FULL &&
        pass->plan->row.state == PLAN_OPEN) {
        *out_end = ROWS_SPLIT;
        *out_fits = batch;
    }
    return OK;
}

/* Once some batches are in the columns, they tell how large those will be. */
static err foresee(struct rows_pass *pass, i64 done, struct error *error)
{
    enum { FORESEEN_FROM_BYTES = MIB / 2 };
    if (pass->foreseen || pass->writer == NULL || pass->partitioned || done < FORESEEN_FROM_BYTES) {
        return OK;
    }
    pass->foreseen = true;
    i64 total = 0;
    for (size_t i = 0; i < pass->plan->batch_count; i++) {
        total += pass->plan->batches[i].bytes;
    }
    return roll_writer_foresee(pass->writer, pass->columns, pass->column_count, done, total, error);
}

static err run_once(struct rows_pass *pass, enum rows_end *out_end, size_t *out_fits,
                    struct error *error)
{
    i64 done = 0;
    *out_end = ROWS_DONE;
    for (size_t i = 0; i < pass->plan->batch_count; i++) {
        TRY(roll_keep_lease(pass->roll, error));
        TRY(rows_batch(pass, i, out_end, error));
        if (*out_end == ROWS_DONE && pass->partitioned) {
            TRY(judge_partitions(pass, i, out_end, out_fits, error));
        }
        if (*out_end != ROWS_DONE) {
            return OK;
        }
        TRY(put_rejects(pass, i, error));
        done += pass->plan->batches[i].bytes;
        TRY(foresee(pass, done, error));
    }
    return OK;
}

static void sum_up(struct rows_pass *pass)
{
    for (size_t i = 0; i < pass->plan->batch_count; i++) {
        pass->counts.rows_committed += pass->counts.verdicts[i].rows_committed;
        pass->counts.rows_rejected += pass->counts.verdicts[i].rows_rejected;
    }
    i64 first = num_max_i64(0, pass->recent_next - PLAN_RECENT_MAX);
    for (i64 i = first; i < pass->recent_next; i++) {
        const buf *slot = &pass->recent[i % PLAN_RECENT_MAX];
        if (buf_ok(slot) && slot->size > 0) {
            pass->counts.recent[pass->counts.recent_count++] = buf_str(slot);
        }
    }
}

err rows_run(struct rows_pass *pass, enum rows_end *out_end, size_t *out_fits, struct error *error)
{
    assert(pass->plan->batch_count > 0);
    /* Each restart knows one more unreadable batch, or the partitions: this ends. */
    size_t restarts_max = pass->plan->batch_count + 2;
    *out_end = ROWS_RESTART;
    for (size_t i = 0; i < restarts_max && *out_end == ROWS_RESTART; i++) {
        pass_restart(pass);
        pass->restarted = i > 0;
        TRY(run_once(pass, out_end, out_fits, error));
    }
    assert(*out_end != ROWS_RESTART);
    if (*out_end == ROWS_DONE) {
        sum_up(pass);
    }
    return OK;
}

/* ---- one file per partition value ---- */

/* Lines in order of their groups, and within a group as they came: a counting sort of indexes. */
static err sort_lines(struct rows_pass *pass, u32 **out_order, u32 **out_ends, struct error *error)
{
    u32 *order = arena_array(pass->scratch, pass->line_count, sizeof(*order));
    u32 *ends = arena_array(pass->scratch, pass->group_count, sizeof(*ends));
    if (order == NULL || ends == NULL) {
        return error_memory(error);
    }
    u32 begin = 0;
    for (size_t i = 0; i < pass->group_count; i++) {
        ends[i] = begin;
        begin += (u32)pass->groups[i].rows;
    }
    for (size_t i = 0; i < pass->line_count; i++) {
        order[ends[pass->lines[i].group]++] = (u32)i;
    }
    *out_order = order;
    *out_ends = ends;
    return OK;
}

static err write_line(struct rows_pass *pass, const struct rows_line *line, struct error *error)
{
    str rest = {line->data, line->size};
    str same;
    decoder_reads(pass->decoder, pass->segments[line->batch]);
    TRY(decode_next(pass->decoder, &rest, pass->plan->batches[line->batch].ingest_ts, &same,
                    &pass->result, error));
    assert(pass->result.verdict == DECODE_ROW);
    if (roll_writer_wants(pass->writer, pass->columns, pass->column_count)) {
        TRY(roll_writer_rows(pass->writer, pass->columns, error));
        decoder_clear(pass->decoder);
    }
    return OK;
}

err rows_write_groups(struct rows_pass *pass, struct error *error)
{
    u32 *order = NULL;
    u32 *ends = NULL;
    TRY(sort_lines(pass, &order, &ends, error));
    decoder_clear(pass->decoder);
    for (size_t i = 0; i < pass->group_count; i++) {
        TRY(roll_keep_lease(pass->roll, error));
        for (u32 at = ends[i] - (u32)pass->groups[i].rows; at < ends[i]; at++) {
            TRY(write_line(pass, &pass->lines[order[at]], error));
        }
        TRY(roll_writer_rows(pass->writer, pass->columns, error));
        decoder_clear(pass->decoder);
        TRY(roll_writer_end(pass->writer, pass->groups[i].values, error));
    }
    return OK;
}
