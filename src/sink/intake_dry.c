#include "sink/intake_dry.h"

#include "sink/attach.h"

enum { VERDICTS_ROOM = 16 * KIB };
#define DRY_BYTES_MAX      ((size_t)256 * MIB)
#define VERDICTS_BYTES_MAX ((size_t)32 * MIB)

struct dry_run {
    struct intake_send *send;
    struct arena *arena;
    struct schema schema;
    struct decoder *decoder;
    buf rows;
    i64 good;
    i64 bad;
};

MUST_USE static err decoder_prepare(struct dry_run *run, const struct ledger_sink *sink,
                                    struct error *error)
{
    AUTO_TABLE struct table table = {0};
    struct decode_settings settings = {0};
    struct table_name name = {.namespace_name = sink->namespace_name, .name = sink->table_name};
    TRY(catalog_load(&run->send->warehouse->catalog, run->arena, name, &table, error));
    TRY(metadata_schema(run->arena, table.metadata, &run->schema, error));
    TRY(attach_parse_unknown(sink->unknown_fields, &run->schema, &settings, error));
    return decoder_open(run->arena, &run->schema, &settings, &run->decoder, error);
}

static void hit_print(buf *out, const struct reject_hit *hit)
{
    buf_append_format(out,
                      "{\"reason\":\"%.*s\",\"column\":", STR_ARG(reject_reason_text(hit->reason)));
    if (hit->column.data == NULL) {
        buf_append(out, STR("null"));
    } else {
        buf_append_json_string(out, hit->column);
    }
    buf_append(out, STR(",\"detail\":"));
    buf_append_json_string(out, hit->detail);
    buf_append_byte(out, '}');
}

static void verdict_print(struct dry_run *run, i64 row, const struct reject_hit *hits, size_t count)
{
    run->good += count == 0 ? 1 : 0;
    run->bad += count > 0 ? 1 : 0;
    buf_append_format(&run->rows, "%s{\"row\":%lld,\"verdict\":\"%s\"", row > 0 ? "," : "",
                      (long long)row, count == 0 ? "ok" : "reject");
    if (count > 0) {
        buf_append(&run->rows, STR(",\"hits\":["));
        for (size_t i = 0; i < count; i++) {
            buf_append(&run->rows, i > 0 ? STR(",") : STR(""));
            hit_print(&run->rows, &hits[i]);
        }
        buf_append_byte(&run->rows, ']');
    }
    buf_append_byte(&run->rows, '}');
}

MUST_USE static err row_judge(struct dry_run *run, i64 row, str line, size_t *refused_at,
                              struct error *error)
{
    const struct intake_body *body = &run->send->body;
    if (*refused_at < body->refused_count && body->refused[*refused_at].row == row) {
        struct reject_hit hits[INTAKE_REFUSALS];
        char details[INTAKE_REFUSALS][INTAKE_DETAIL_ROOM];
        size_t count = intake_body_hits(body, &body->refused[(*refused_at)++], hits, details);
        verdict_print(run, row, hits, count);
        return OK;
    }
    struct decode_result result = {0};
    TRY(decode_line(run->decoder, line, run->send->received_at, &result, error));
    verdict_print(run, row, result.hits, result.verdict == DECODE_ROW ? 0 : result.hit_count);
    decoder_clear(run->decoder);
    return OK;
}

MUST_USE static err rows_judge(struct dry_run *run, struct error *error)
{
    str rest = intake_body_stored(&run->send->body);
    size_t refused_at = 0;
    for (i64 row = 0; row < run->send->body.rows; row++) {
        str line = {0};
        bool more = str_next(&rest, '\n', &line);
        TRY(row_judge(run, row, more ? line : STR(""), &refused_at, error));
    }
    return OK;
}

MUST_USE static err run_all(const struct intake_options *options, struct dry_run *run,
                            str *out_body, struct error *error)
{
    struct intake_send *send = run->send;
    struct ledger_sink sink = {0};
    if (send->body.rows > options->dry_run_rows_max) {
        return error_set(error, LIMIT, ERROR_TOO_MANY_ROWS, "a dry run takes up to %lld rows",
                         (long long)options->dry_run_rows_max);
    }
    if (send->warehouse == NULL) {
        return error_set(error, IO, ERROR_STORE_DOWN, "the sink's warehouse is not known");
    }
    TRY(ledger_find_sink(options->db, run->arena, STR(""), send->sink->id, &sink, error));
    TRY(decoder_prepare(run, &sink, error));
    run->rows = buf_create(run->arena, VERDICTS_ROOM, VERDICTS_BYTES_MAX);
    TRY(rows_judge(run, error));
    str body = str_format(run->arena,
                          "{\"dry_run\":true,\"accepted\":%lld,\"rejected\":%lld,"
                          "\"schema_id\":%d,\"rows\":[%.*s]}",
                          (long long)run->good, (long long)run->bad, run->schema.id,
                          STR_ARG(buf_str(&run->rows)));
    if (!buf_ok(&run->rows) || body.data == NULL) {
        return error_memory(error);
    }
    *out_body = body;
    return OK;
}

void intake_dry_run(const struct intake_options *options, struct intake_send *send)
{
    AUTO_ARENA struct arena *arena = arena_create(DRY_BYTES_MAX);
    struct dry_run run = {.send = send, .arena = arena};
    struct error error = {0};
    str body = {0};
    err result = run_all(options, &run, &body, &error);
    if (result != OK && error.code == ERROR_NONE) {
        intake_send_refuse_code(send, ERROR_UNAVAILABLE);
    } else if (result != OK) {
        intake_send_refuse(send, &error);
    } else {
        intake_send_answer(send, &(struct intake_answer){.status = 200, .body = body});
    }
}
