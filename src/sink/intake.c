#include "sink/intake.h"

#include "base/assert.h"
#include "base/log.h"
#include "base/queue.h"
#include "sink/batch.h"
#include "sink/intake_index.h"
#include "sink/intake_lease.h"
#include "sink/intake_quota.h"
#include "sink/intake_request.h"
#include "sink/intake_sinks.h"

enum { WORKERS_MAX = 64 };

struct intake {
    struct intake_options options;
    struct intake_sinks *sinks;
    struct intake_lease *lease;
    struct intake_waits *waits;
    struct intake_quota *quota;
    struct intake_index *index;
    struct intake_groups groups;
    struct queue *queue; /* completed sends that workers take up */
    pthread_t workers[WORKERS_MAX];
    atomic_int refusal; /* enum error_code */
    atomic_bool closing;
};

struct intake_options intake_options_default(void)
{
    return (struct intake_options){.limits = intake_limits_default(),
                                   .workers = 8,
                                   .queue_max = 4096,
                                   .index_bytes_max = (i64)64 * MIB,
                                   .waits_max = 10000,
                                   .dry_run_rows_max = 1000,
                                   .backlog = LEDGER_BACKLOG_DEFAULT,
                                   .failures_per_minute_max = 60};
}

/* ---- the http thread's part ---- */

err intake_authenticate(struct intake *intake, str sink_id, str authorization,
                        struct intake_known_key *known, str peer, struct intake_sink **out_sink,
                        struct error *error)
{
    return intake_sinks_authenticate(intake->sinks, sink_id, authorization, known, peer, out_sink,
                                     error);
}

/* The header's id, or `srv.<ULID>` where the sink allows that. */
MUST_USE static err send_take_id(struct intake_send *send, str header, bool optional,
                                 struct error *error)
{
    if (header.data == NULL && !optional) {
        err result = error_set(error, INVALID, ERROR_IDEMPOTENCY_KEY_REQUIRED,
                               "the request has no Idempotency-Key");
        error_hint(error, "send a batch id that stays the same when you retry");
        return result;
    }
    str id = {0};
    if (header.data == NULL) {
        char ulid[ID_ULID_SIZE];
        id = str_format(send->arena, "srv.%.*s",
                        STR_ARG(id_ulid_make(send->intake->options.seam, ulid)));
        send->id_made = true;
    } else {
        TRY(batch_id_parse(header, &id, error));
        id = str_copy(send->arena, id);
    }
    if (id.data == NULL) {
        return error_memory(error);
    }
    send->batch_id = id;
    send->id_hash = intake_index_id(send->sink->hash, id);
    return OK;
}

MUST_USE static err service_check(struct intake *intake, const struct intake_request *request,
                                  struct intake_send *send, struct error *error)
{
    i64 body_max = intake->options.limits.body_bytes_max;
    if (request->content_length > body_max) {
        return error_set(error, LIMIT, ERROR_BODY_TOO_LARGE, "a body has at most %lld bytes",
                         (long long)body_max);
    }
    enum error_code refusal = (enum error_code)atomic_load(&intake->refusal);
    if (refusal != ERROR_NONE) {
        return error_set(error, BUSY, refusal, "%s",
                         refusal == ERROR_DRAINING ? "the server is stopping"
                                                   : "the server takes no batches at the moment");
    }
    if (!intake_lease_begin(intake->lease, send)) {
        return error_set(error, BUSY, ERROR_UNAVAILABLE, "the node has lost its lease");
    }
    return OK;
}

MUST_USE static err send_begin(struct intake *intake, struct intake_sink *sink,
                               const struct intake_request *request, struct arena *arena,
                               struct intake_send **out_send, struct error *error)
{
    struct intake_send *send = arena_alloc(arena, sizeof(*send));
    if (send == NULL) {
        return error_memory(error);
    }
    struct intake_sink_view view = intake_sinks_view(intake->sinks, sink);
    *send = (struct intake_send){.arena = arena,
                                 .arena_lent = arena == request->arena,
                                 .intake = intake,
                                 .sink = sink,
                                 .warehouse = view.warehouse,
                                 .mode = request->mode,
                                 .wait_us = request->wait_us,
                                 .answered = request->answered,
                                 .context = request->context};
    bool optional = view.id_optional || request->mode == INTAKE_DRY_RUN;
    TRY(send_take_id(send, request->batch_id, optional, error));
    TRY(service_check(intake, request, send, error));
    intake_body_begin(&send->body, arena, &intake->options.limits, request->content_length);
    *out_send = send;
    return OK;
}

err intake_begin(struct intake *intake, struct intake_sink *sink,
                 const struct intake_request *request, struct intake_send **out_send,
                 struct error *error)
{
    assert(request->answered != NULL);
    if (request->arena != NULL) {
        return send_begin(intake, sink, request, request->arena, out_send, error);
    }
    /* A body in pieces is copied as it grows, and refused elements are kept beside it. */
    size_t body_max = (size_t)intake->options.limits.body_bytes_max;
    struct arena *arena = arena_create(body_max * 4 + (size_t)32 * MIB);
    err result = send_begin(intake, sink, request, arena, out_send, error);
    if (result != OK) {
        arena_destroy(arena);
    }
    return result;
}

err intake_send_body(struct intake_send *send, str piece, struct error *error)
{
    return intake_body_add(&send->body, piece, error);
}

void intake_send_drop(struct intake_send *send)
{
    if (!send->arena_lent) {
        arena_destroy(send->arena);
    }
}

/* `[]` stores nothing and leaves the id free. */
static void answer_empty(struct intake_send *send)
{
    str answer = intake_answer_print(send);
    if (answer.data == NULL) {
        intake_send_refuse_code(send, ERROR_OVERLOADED);
        return;
    }
    intake_send_answer(send, &(struct intake_answer){.status = 202, .body = answer});
}

void intake_send_complete(struct intake_send *send)
{
    struct error error = {0};
    struct intake *intake = send->intake;
    send->received_at = seam_now(intake->options.seam);
    if (intake_body_end(&send->body, &error) != OK) {
        intake_send_refuse(send, &error);
    } else if (send->body.rows == 0 && send->mode == INTAKE_ACCEPT) {
        answer_empty(send);
    } else if (!intake_request_meet(&intake->groups, send)) {
        intake_send_refuse_code(send,
                                atomic_load(&intake->closing) ? ERROR_DRAINING : ERROR_OVERLOADED);
    }
}

/* ---- the workers' part ---- */

static void *worker_thread(void *argument)
{
    struct intake *intake = argument;
    for (;;) {
        struct intake_send *send = queue_pop(intake->queue, -1);
        if (send == NULL) {
            return NULL;
        }
        intake_request_run(&intake->groups, send);
    }
}

void intake_refuse(struct intake *intake, enum error_code code)
{
    atomic_store(&intake->refusal, (int)code);
}

void intake_end_waits(struct intake *intake)
{
    intake_waits_end(intake->waits);
}

void intake_notify_sink(struct intake *intake, str sink_id)
{
    struct error error = {0};
    err result = intake_sinks_refresh(intake->sinks, sink_id, &error);
    if (result != OK) {
        log_error("sink_not_refreshed", result, &error, sink_id);
    }
}

void intake_notify_committed(struct intake *intake, str sink_id)
{
    struct intake_sink *sink = intake_sinks_find(intake->sinks, sink_id);
    if (sink != NULL) {
        intake_waits_notify(intake->waits, sink);
    }
}

/* ---- life ---- */

MUST_USE static err parts_open(struct arena *arena, struct intake *intake, struct error *error)
{
    TRY(intake_lease_open(arena, &intake->options, &intake->lease, error));
    TRY(intake_quota_open(arena, &intake->options, &intake->quota, error));
    TRY(intake_sinks_open(arena, &intake->options, &intake->sinks, error));
    TRY(intake_index_open(arena, &intake->options, &intake->index, error));
    return intake_waits_open(arena, &intake->options, &intake->waits, error);
}

err intake_open(struct arena *arena, const struct intake_options *options,
                struct intake **out_intake, struct error *error)
{
    assert(options->workers > 0 && options->workers <= WORKERS_MAX);
    struct intake *intake = arena_alloc(arena, sizeof(*intake));
    if (intake == NULL) {
        return error_memory(error);
    }
    intake->options = *options;
    err result = parts_open(arena, intake, error);
    if (result != OK) {
        if (intake->index != NULL) {
            intake_index_close(intake->index);
        }
        if (intake->sinks != NULL) {
            intake_sinks_close(intake->sinks);
        }
        if (intake->quota != NULL) {
            intake_quota_close(intake->quota);
        }
        if (intake->lease != NULL) {
            intake_lease_close(intake->lease);
        }
        return result;
    }
    intake->groups = (struct intake_groups){
        .options = &intake->options,
        .waits = intake->waits,
        .quota = intake->quota,
        .lease = intake->lease,
        .log = options->log,
        .early = options->log != NULL ? options->early : NULL,
        .closing = &intake->closing,
        .index = intake->index,
        .queue = queue_create((size_t)options->queue_max),
    };
    intake->queue = intake->groups.queue;
    for (i32 i = 0; i < options->workers; i++) {
        int made = pthread_create(&intake->workers[i], NULL, worker_thread, intake);
        assert(made == 0);
    }
    *out_intake = intake;
    return OK;
}

void intake_close(struct intake *intake)
{
    intake_refuse(intake, ERROR_DRAINING);
    atomic_store(&intake->closing, true);
    queue_close(intake->queue);
    for (i32 i = 0; i < intake->options.workers; i++) {
        (void)pthread_join(intake->workers[i], NULL);
    }
    queue_destroy(intake->queue);
    intake_waits_close(intake->waits);
    intake_index_close(intake->index);
    intake_lease_close(intake->lease);
    intake_sinks_close(intake->sinks);
    intake_quota_close(intake->quota);
}
