#include "base/assert.h"
#include "sink/attach.h"
#include "sink/batch.h"
#include "sink/roll_rows.h"

/* From verified bytes to one computed result: counts, rejects files, data files, the append that
 * may be sent. A pure function of bytes, schema, partition spec and settings, but for names and
 * times. */

enum { PASS_MIB_MAX = 1024, BATCH_MIB_MAX = 512, FILE_MIB_MAX = 1536 };

static err pass_init(struct rows_pass *pass, const struct metadata *metadata, struct error *error)
{
    struct roll *roll = pass->roll;
    size_t count = pass->plan->batch_count;
    TRY(attach_parse_unknown(roll->sink.unknown_fields, &pass->schema, &pass->settings, error));
    TRY(decoder_open(pass->scratch, &pass->schema, &pass->settings, &pass->decoder, error));
    pass->columns = decoder_columns(pass->decoder, &pass->column_count);
    if (pass->column_count == 0) {
        return error_set(error, INVALID, ERROR_UNSUPPORTED_COLUMN_TYPE, "the table has no columns");
    }
    TRY(metadata_spec(roll->arena, metadata, &pass->spec, error));
    TRY(rows_open_partitions(pass, error));
    pass->unreadable = arena_array(pass->scratch, count, sizeof(*pass->unreadable));
    pass->counts = (struct plan_counts){
        .schema_id = pass->schema.id,
        .spec_id = pass->spec.id,
        .verdicts = arena_array(roll->arena, count, sizeof(struct ledger_verdict)),
        .verdict_count = count,
    };
    if (pass->unreadable == NULL || pass->counts.verdicts == NULL) {
        return error_memory(error);
    }
    for (size_t i = 0; i < count; i++) {
        pass->counts.verdicts[i].batch_id = pass->plan->batches[i].batch_id;
    }
    return OK;
}

/* ---- the append ---- */

static err add_entry(struct append *append, const char *key, str value, struct error *error)
{
    append->summary[append->summary_count++] = (struct commit_entry){str_from(key), value};
    return value.data == NULL ? error_memory(error) : OK;
}

static err summarise(struct roll *roll, const struct roll_plan *plan,
                     const struct plan_counts *counts, struct append *append, struct error *error)
{
    struct arena *arena = roll->arena;
    const struct ledger_batch *batches = plan->batches;
    size_t count = plan->batch_count;
    append->summary = arena_array(arena, 8, sizeof(*append->summary));
    if (append->summary == NULL) {
        return error_memory(error);
    }
    TRY(add_entry(append, "lakehousebox.sink.id", roll->sink.id, error));
    str ids = plan_join_ids(arena, batches, count);
    if (ids.data != NULL) {
        TRY(add_entry(append, "lakehousebox.sink.batches", ids, error));
    } else {
        TRY(add_entry(append, "lakehousebox.sink.batches_ref",
                      batch_plan_key(arena, roll->sink.id, plan->row.n, plan->row.id), error));
    }
    TRY(add_entry(append, "lakehousebox.sink.batches_count", str_format(arena, "%zu", count),
                  error));
    TRY(add_entry(append, "lakehousebox.sink.batches_sha256", plan_hash_ids(arena, batches, count),
                  error));
    TRY(add_entry(append, "lakehousebox.sink.rows",
                  str_format(arena, "%lld", (long long)counts->rows_committed), error));
    TRY(add_entry(append, "lakehousebox.sink.rejected_rows",
                  str_format(arena, "%lld", (long long)counts->rows_rejected), error));
    TRY(add_entry(append, "lakehousebox.sink.rolled_at",
                  time_format_in(arena, seam_now(roll->env->seam)), error));
    return add_entry(append, "lakehousebox.sink.roll",
                     str_format(arena, "%lld-%.*s", (long long)plan->row.n, STR_ARG(plan->row.id)),
                     error);
}

static err set_property(struct roll *roll, const struct roll_plan *plan, struct append *append,
                        struct error *error)
{
    const struct plan_property property = {.installation = roll->env->installation_id,
                                           .sink_id = roll->sink.id,
                                           .n = plan->row.n,
                                           .id = plan->row.id};
    append->properties = arena_array(roll->arena, 1, sizeof(*append->properties));
    if (append->properties == NULL) {
        return error_memory(error);
    }
    append->properties[0] = (struct commit_entry){STR(METADATA_ROLL_PROPERTY),
                                                  plan_print_property(roll->arena, &property)};
    append->property_count = 1;
    return append->properties[0].value.data == NULL ? error_memory(error) : OK;
}

static err make_result(struct roll *roll, const struct roll_plan *plan,
                       const struct plan_counts *counts, const struct roll_writer *writer,
                       struct roll_result *out_result, struct error *error)
{
    struct roll_result result = {
        .counts = *counts,
        .append = commit_begin(roll->env->seam),
        .file_paths = arena_array(roll->arena, writer->file_count, sizeof(str)),
        .file_count = writer->file_count,
        .written_at = seam_monotonic_us(roll->env->seam),
    };
    if (result.file_paths == NULL) {
        return error_memory(error);
    }
    for (size_t i = 0; i < writer->file_count; i++) {
        result.file_paths[i] = writer->files[i].path;
    }
    result.append.group = roll->group;
    result.append.files = writer->files;
    result.append.file_count = writer->file_count;
    TRY(plan_print_counts(roll->arena, counts, &result.counts_json, error));
    TRY(summarise(roll, plan, counts, &result.append, error));
    TRY(set_property(roll, plan, &result.append, error));
    *out_result = result;
    return OK;
}

/* ---- the pass ---- */

/* The plan was never attempted, so that it may be made smaller; the next one takes so many
 * batches. */
static err split(struct roll *roll, struct roll_plan *plan, size_t fits, const char *reason,
                 enum roll_step *out_step, struct error *error)
{
    assert(plan->row.state == PLAN_OPEN);
    assert(fits >= 1);
    roll->batches_max = (i64)fits;
    return roll_void(roll, plan, reason, NULL, 0, out_step, error);
}

static err write_rest(struct rows_pass *pass, struct error *error)
{
    if (pass->partitioned) {
        return rows_write_groups(pass, error);
    }
    TRY(roll_writer_rows(pass->writer, pass->columns, error));
    /* void fields only: a tuple of nulls */
    struct partition_value *values = arena_array(pass->roll->arena, pass->spec.count,
                                                 sizeof(*values));
    if (values == NULL) {
        return error_memory(error);
    }
    for (size_t i = 0; i < pass->spec.count; i++) {
        values[i].is_null = true;
    }
    return roll_writer_end(pass->writer, values, error);
}

/* Lines of partitions are looked at twice; other batches are read as their turn comes. */
static err find_bytes(struct rows_pass *pass, struct roll_plan *plan, struct roll_bytes *bytes,
                      enum roll_step *out_step, struct error *error)
{
    *out_step = STEP_GO;
    if (pass->partitioned && bytes->arena == NULL) {
        TRY(roll_read_batches(pass->roll, plan, bytes, out_step, error));
    }
    pass->segments = bytes->segments;
    return OK;
}

static err compute(struct rows_pass *pass, struct roll_plan *plan, const struct table *table,
                   struct roll_bytes *bytes, struct arena *file_scratch,
                   struct roll_result *out_result, size_t *out_fits, enum roll_step *out_step,
                   struct error *error)
{
    struct roll_writer writer;
    struct parquet_kit *kit AUTO_PARQUET_KIT = NULL;
    TRY(pass_init(pass, table->metadata, error));
    TRY(find_bytes(pass, plan, bytes, out_step, error));
    if (*out_step != STEP_GO) {
        return OK;
    }
    TRY(parquet_kit_open(pass->scratch, pass->roll->env->crew, (size_t)FILE_MIB_MAX * MIB, &kit,
                         error));
    TRY(roll_writer_init(&writer, pass->roll, table, &pass->schema, &pass->spec, file_scratch,
                         error));
    writer.options.kit = kit;
    pass->writer = &writer;
    enum rows_end end = ROWS_DONE;
    TRY(rows_run(pass, &end, out_fits, error));
    if (end == ROWS_SPLIT) {
        return OK;
    }
    *out_fits = 0;
    if (end == ROWS_DAMAGED) {
        /* All are looked at for what is lost. If all are there after all, the next tick sees. */
        TRY(roll_read_batches(pass->roll, plan, bytes, out_step, error));
        *out_step = *out_step == STEP_GO ? STEP_LATER : *out_step;
        return OK;
    }
    roll_stream_close(pass->stream); /* the last rows are in the columns */
    if (pass->counts.rows_committed > 0) {
        TRY(write_rest(pass, error));
    }
    return make_result(pass->roll, pass->plan, &pass->counts, &writer, out_result, error);
}

/* The file cannot hold the batch, which is alone in its plan: its rows are rejects, so that it
 * never holds the others back. Files of the try that failed are named nowhere. */
static err refuse_batch(struct rows_pass *pass, const struct table *table, const char *why,
                        struct roll_result *out_result, struct error *error)
{
    assert(pass->plan->batch_count == 1);
    struct roll *roll = pass->roll;
    arena_reset(pass->scratch);
    arena_reset(pass->batch_scratch);
    struct rows_pass again = {
        .roll = roll,
        .plan = pass->plan,
        .segments = pass->segments,
        .schema = pass->schema,
        .scratch = pass->scratch,
        .batch_scratch = pass->batch_scratch,
        .unwritable = str_copy(roll->arena, str_from(why)),
    };
    if (again.unwritable.data == NULL) {
        return error_memory(error);
    }
    TRY(pass_init(&again, table->metadata, error));
    again.partitioned = false;
    enum rows_end end = ROWS_DONE;
    size_t fits = 0;
    TRY(rows_run(&again, &end, &fits, error));
    assert(again.counts.rows_committed == 0);
    const struct roll_writer no_files = {0};
    return make_result(roll, pass->plan, &again.counts, &no_files, out_result, error);
}

/* More than one file can be made of: by smaller plans, down to one of a single batch. */
static err too_large(struct rows_pass *pass, struct roll_plan *plan, const struct table *table,
                     struct roll_bytes *bytes, const char *why, struct roll_result *out_result,
                     enum roll_step *out_step, struct error *error)
{
    if (plan->row.state != PLAN_OPEN) {
        return roll_void(pass->roll, plan, "too_large", NULL, 0, out_step, error);
    }
    if (plan->batch_count > 1) {
        return split(pass->roll, plan, plan->batch_count / 2, "too_large", out_step, error);
    }
    if (bytes->arena == NULL) {
        TRY(roll_read_batches(pass->roll, plan, bytes, out_step, error));
        if (*out_step != STEP_GO) {
            return OK;
        }
    }
    pass->segments = bytes->segments;
    return refuse_batch(pass, table, why, out_result, error);
}

err roll_compute(struct roll *roll, struct roll_plan *plan, const struct table *table,
                 struct roll_bytes *bytes, struct roll_result *out_result, enum roll_step *out_step,
                 struct error *error)
{
    struct arena *scratch AUTO_ARENA = arena_create((size_t)PASS_MIB_MAX * MIB);
    struct arena *batch_scratch AUTO_ARENA = arena_create((size_t)BATCH_MIB_MAX * MIB);
    struct arena *file_scratch AUTO_ARENA = arena_create((size_t)FILE_MIB_MAX * MIB);
    struct roll_stream stream AUTO_ROLL_STREAM = {0};
    struct rows_pass pass = {
        .roll = roll,
        .plan = plan,
        .stream = &stream,
        .scratch = scratch,
        .batch_scratch = batch_scratch,
    };
    TRY(metadata_schema(roll->arena, table->metadata, &pass.schema, error));
    size_t fits = 0;
    struct error told = {0};
    *out_step = STEP_GO;
    err computed = compute(&pass, plan, table, bytes, file_scratch, out_result, &fits, out_step,
                           &told);
    plan->computed = true;
    if (computed == LIMIT) {
        return too_large(&pass, plan, table, bytes, told.message, out_result, out_step, error);
    }
    if (computed == INVALID) {
        /* A default that is none, or no column left for the unknown names: no roll can do it. */
        return roll_disable(roll, "schema_unsupported", str_from(told.message), out_step, error);
    }
    if (computed != OK) {
        return error_set(error, computed, told.code, "%s", told.message);
    }
    return *out_step != STEP_GO || fits == 0
               ? OK
               : split(roll, plan, fits, "partitions", out_step, error);
}

/* ---- rejects files after the commit (O18) ---- */

static err rejects_differ(struct roll *roll, const struct ledger_verdict *verdict, i32 schema_id,
                          bool *out_differ, struct error *error)
{
    struct store_object head = {0};
    struct error told = {0};
    str key = batch_rejects_key(roll->arena, roll->sink.id, verdict->batch_id);
    err found = store_head(&roll->env->warehouse->files, roll->arena, key, &head, &told);
    if (found != OK && found != NOT_FOUND) {
        return error_set(error, found, told.code, "%s", told.message);
    }
    str wanted = str_format(roll->arena, "%d", schema_id);
    bool same = str_equal(store_meta_value(&head.meta, STR("schema-id")), wanted);
    *out_differ = verdict->rows_rejected > 0 ? !same : head.size > 0;
    return OK;
}

/* One batch again under the committed schema; its rows go nowhere. */
static err mend_batch(struct roll *roll, const struct roll_plan *plan, size_t index,
                      const struct table *table, i32 schema_id, struct error *error)
{
    struct arena *scratch AUTO_ARENA = arena_create((size_t)BATCH_MIB_MAX * MIB);
    struct arena *batch_scratch AUTO_ARENA = arena_create((size_t)BATCH_MIB_MAX * MIB);
    struct roll_plan one = {
        .row = plan->row, .batches = &plan->batches[index], .batch_count = 1, .computed = true};
    str segment;
    str reason;
    TRY(roll_read_batch(roll->env, scratch, one.batches, &segment, &reason, error));
    struct rows_pass pass = {
        .roll = roll,
        .plan = &one,
        .segments = &segment,
        .scratch = scratch,
        .batch_scratch = batch_scratch,
        .mends = true,
    };
    TRY(metadata_schema_by_id(roll->arena, table->metadata, schema_id, &pass.schema, error));
    TRY(pass_init(&pass, table->metadata, error));
    enum rows_end end = ROWS_DONE;
    size_t fits = 0;
    return rows_run(&pass, &end, &fits, error);
}

enum mending { MEND_WHAT_WAS_TRIED, MEND_ALL };

static err mend_plan(struct roll *roll, const struct roll_plan *plan, const struct table *table,
                     enum mending mending, struct error *error)
{
    struct plan_counts counts = {0};
    TRY(plan_parse_counts(roll->arena, plan->row.counts, plan->batches, plan->batch_count, &counts,
                          error));
    for (size_t i = 0; i < plan->batch_count; i++) {
        bool differ = false;
        bool once = plan->row.tries <= 1 && !plan->batches[i].retried;
        const struct ledger_verdict *verdict = &counts.verdicts[i];
        if (verdict->rows_rejected == 0 && once && mending == MEND_WHAT_WAS_TRIED) {
            continue;
        }
        TRY(rejects_differ(roll, verdict, counts.schema_id, &differ, error));
        if (differ && verdict->rows_rejected == 0) {
            str key = batch_rejects_key(roll->arena, roll->sink.id, verdict->batch_id);
            TRY(store_remove(&roll->env->warehouse->files, key, error));
        } else if (differ) {
            TRY(mend_batch(roll, plan, i, table, counts.schema_id, error));
        }
    }
    return OK;
}

err roll_mend_rejects(struct roll *roll, const struct roll_plan *plan, const struct table *table,
                      struct error *error)
{
    return mend_plan(roll, plan, table, MEND_WHAT_WAS_TRIED, error);
}

err roll_mend_lost(struct roll *roll, const struct roll_plan *plan, const struct table *table,
                   struct error *error)
{
    str mended = STR("");
    for (size_t i = 0; i < plan->batch_count; i++) {
        struct ledger_batch batch = {0};
        struct roll_plan other = {0};
        TRY(ledger_find_batch(roll->env->db, roll->arena, roll->sink.id, plan->batches[i].batch_id,
                              &batch, error));
        bool ended = batch.state == BATCH_COMMITTED || batch.state == BATCH_REJECTED;
        if (!ended || batch.plan_id.data == NULL || str_equal(batch.plan_id, mended)) {
            continue;
        }
        mended = batch.plan_id;
        TRY(ledger_find_plan(roll->env->db, roll->arena, mended, &other.row, error));
        if (other.row.counts.data == NULL) {
            continue; /* recovered from the chain */
        }
        TRY(ledger_plan_batches(roll->env->db, roll->arena, mended, &other.batches,
                                &other.batch_count, error));
        TRY(mend_plan(roll, &other, table, MEND_ALL, error));
    }
    return OK;
}
