#include "sim.h"

#include "base/assert.h"
#include "base/map.h"
#include "sink/intake_early.h"
#include "sink/intake_index.h"
#include "sink/intake_log.h"
#include "sink/intake_request.h"

#include <stdio.h>

/* An intake process: the shipped body reader and the shipped machine of a request. In place of
 * worker threads each request is a coroutine, and so is the renewal of the lease, by the rules of
 * sink/intake_lease. */

#define RENEW_US ((i64)10 * TIME_SECOND_US)
#define GONE_US  ((i64)28 * TIME_SECOND_US)

struct sim_node {
    struct sim_process *process;
    struct intake_options options;
    struct intake_groups groups;
    struct intake_sink sinks[SIM_SINKS_MAX];
    i32 sink_count;
    char node_id[ID_SHORT_SIZE];
    instant ledger_time;
    i64 running_us;
    i64 renewed_us;
    i64 open; /* requests */
    i64 renewals;
    bool renewing;
    struct journal journal;
    struct intake_log *log;
    bool watching;       /* the log is released some time */
    atomic_bool closing; /* the process has died */
    struct map *claimed; /* ids, as the index has them */
};

/* ---- the lease ---- */

static void lease_renew(struct sim_node *node)
{
    AUTO_ARENA struct arena *arena = arena_create((size_t)8 * KIB);
    struct sim_process *process = node->process;
    i64 asked_us = seam_monotonic_us(&process->seam);
    instant ledger_time = 0;
    i64 running_us = 0;
    str id = str_copy(arena, (str){node->node_id, ID_SHORT_SIZE});
    err renewed = CONFLICT;
    if (node->renewed_us != 0 && asked_us - node->renewed_us <= GONE_US) {
        renewed = ledger_renew_node(&process->db, id, &ledger_time, NULL);
    }
    if (renewed == CONFLICT) {
        id = id_short_make(arena, &process->seam, "nod_");
        renewed = ledger_register_node(&process->db, id, STR("intake"), &ledger_time, NULL);
    }
    renewed = renewed == OK ? ledger_running(&process->db, &running_us, NULL) : renewed;
    if (renewed == OK) {
        node->running_us = running_us;
        memcpy(node->node_id, id.data, ID_SHORT_SIZE);
        node->ledger_time = ledger_time;
        node->renewed_us = asked_us;
    }
}

static void run_lease(struct actor *actor)
{
    struct sim_node *node = actor->argument;
    while (!sim_dead() && !sim->stopping && node->open > 0) {
        sim_wait(RENEW_US);
        lease_renew(node);
    }
    node->renewing = false;
}

/* The thread renews all the time; here it does when somebody could tell the difference. */
static bool lease_begin(struct sim_node *node, struct intake_send *send)
{
    i64 now_us = seam_monotonic_us(&node->process->seam);
    if (node->renewed_us == 0 || now_us - node->renewed_us > RENEW_US) {
        lease_renew(node);
    }
    if (!node->renewing) {
        node->renewing = true;
        (void)sim_spawn("lease",
                        sim_hash(2,
                                 (u64)node->process->slot * 1000 + (u64)node->process->incarnation,
                                 (u64)node->renewals++),
                        node->process, run_lease, node, 0);
    }
    now_us = seam_monotonic_us(&node->process->seam);
    memcpy(send->node_id, node->node_id, sizeof(send->node_id));
    send->began_at = node->ledger_time;
    send->began_running_us = node->running_us;
    return node->renewed_us != 0 && now_us - node->renewed_us <= GONE_US;
}

/* ---- the log ---- */

static const struct warehouse *find_warehouse(void *context, str name)
{
    struct sim_process *process = context;
    return str_equal(name, process->warehouse.name) ? &process->warehouse : NULL;
}

static struct intake_log *log_open(struct sim_process *process, struct journal *journal,
                                   struct arena *arena)
{
    struct intake_log *log = NULL;
    *journal = sim_journal_open(process);
    const struct intake_log_options options = {.db = &process->db,
                                               .journal = journal,
                                               .seam = &process->seam,
                                               .find = find_warehouse,
                                               .find_context = process,
                                               .full_wait_us = TIME_SECOND_US};
    err opened = intake_log_open(arena, &options, &log, NULL);
    assert(opened == OK);
    return log;
}

err sim_replay(struct sim_process *process, struct arena *arena, struct error *error)
{
    struct journal journal = {0};
    struct intake_log_replayed replayed = {0};
    if (!sim->logged) {
        return OK;
    }
    struct intake_log *log = log_open(process, &journal, arena);
    err result = sim->stopping ? CANCELLED : intake_log_replay(log, &replayed, error);
    sim_trace("replay: %s, %lld records, %lld batches, %lld objects", err_text(result),
              (long long)replayed.records, (long long)replayed.batches,
              (long long)replayed.objects);
    return result;
}

/* The thread that releases the log, as long as somebody could tell the difference. */
static void run_log(struct actor *actor)
{
    struct sim_node *node = actor->argument;
    err released = BUSY;
    while (!sim_dead() && !sim->stopping && (node->open > 0 || released != OK)) {
        sim_wait(sim_between(100000, 8 * TIME_SECOND_US));
        released = intake_log_checkpoint(node->log, NULL);
    }
    node->watching = false;
}

static void log_watch(struct sim_node *node)
{
    if (node->log != NULL && !node->watching) {
        node->watching = true;
        (void)sim_spawn("log",
                        sim_hash(21,
                                 (u64)node->process->slot * 1000 + (u64)node->process->incarnation,
                                 (u64)node->renewals++),
                        node->process, run_log, node, 0);
    }
}

/* ---- known ids ---- */

/* In place of the index: those that the ledger has when the node is opened, and all that came
 * since.
 */
static err claims_body(struct db_tx *tx, void *context, struct error *error)
{
    struct sim_node *node = context;
    struct db_rows rows = {0};
    bool is_new = false;
    TRY(db_query(tx, sim->arena, "SELECT sink || '/' || batch_id FROM batch", NULL, 0, &rows,
                 error));
    for (size_t i = 0; i < rows.row_count; i++) {
        u64 *place = map_put(node->claimed, db_text(&rows, i, 0), &is_new);
        assert(place != NULL);
    }
    return OK;
}

static void claims_open(struct sim_node *node)
{
    if (sim->early == NULL) {
        return;
    }
    node->claimed = map_create(sim->arena, 64);
    assert(node->claimed != NULL);
    err read = db_read(&sim->raw_db, claims_body, node, NULL);
    assert(read == OK);
}

/* As the index, it takes some new ids for known. */
static bool claim(struct sim_node *node, const struct intake_send *send)
{
    bool is_new = false;
    str key = str_format(sim->arena, "%.*s/%.*s", STR_ARG(send->sink->id), STR_ARG(send->batch_id));
    u64 *place = map_put(node->claimed, key, &is_new);
    assert(place != NULL);
    return is_new && sim_below(8) > 0;
}

/* ---- requests ---- */

static enum sim_answer answer_of(const struct intake_answer *answer)
{
    if (answer->error != NULL) {
        switch ((int)answer->error->code) {
        case ERROR_IDEMPOTENCY_KEY_REUSED:
            return SIM_ANSWER_REUSED;
        case ERROR_SINK_DELETED:
            return SIM_ANSWER_DELETED;
        default:
            return SIM_ANSWER_ERROR;
        }
    }
    return answer->status == 202 ? SIM_ANSWER_ACCEPTED : SIM_ANSWER_ERROR;
}

static void answered(void *context, const struct intake_answer *answer)
{
    struct sim_request *request = context;
    struct sim_process *process = request->process;
    if (!process->dead && !sim->stopping) {
        request->answer = answer_of(answer);
        request->duplicate = str_find(answer->body, STR("\"duplicate\":true")) >= 0;
        (void)snprintf(request->text, sizeof(request->text), "%.*s", STR_ARG(answer->body));
        if (answer->error != NULL) {
            (void)snprintf(request->text, sizeof(request->text), "%s",
                           error_code_text(answer->error->code));
        }
    }
    request->finished = true;
    if (request->waiter != NULL && !sim->stopping) {
        sim_wake(request->waiter);
    }
}

static struct intake_sink *sink_of(struct sim_node *node, const char *sink_id)
{
    for (i32 i = 0; i < node->sink_count; i++) {
        if (str_equal(node->sinks[i].id, str_from(sink_id))) {
            return &node->sinks[i];
        }
    }
    assert(node->sink_count < SIM_SINKS_MAX);
    struct intake_sink *sink = &node->sinks[node->sink_count++];
    sink->id = str_from(sink_id);
    sink->warehouse = &node->process->warehouse;
    int made = pthread_mutex_init(&sink->lock, NULL);
    assert(made == 0);
    return sink;
}

static struct intake_send *open_send(struct sim_node *node, struct sim_request *request)
{
    struct arena *arena = arena_create((size_t)64 * MIB);
    struct intake_send *send = arena_alloc(arena, sizeof(*send));
    assert(send != NULL);
    *send = (struct intake_send){
        .arena = arena,
        .sink = sink_of(node, request->sink_id),
        .warehouse = &node->process->warehouse,
        .batch_id = str_copy(arena, str_from(request->batch_id)),
        .id_hash = intake_index_id(0, str_from(request->batch_id)),
        .answered = answered,
        .context = request,
    };
    return send;
}

/* False: the send was refused, and is gone. */
static bool read_body(struct sim_node *node, struct intake_send *send, str body)
{
    struct error error = {0};
    intake_body_begin(&send->body, send->arena, &node->options.limits, (i64)body.size);
    size_t half = body.size / 2;
    err result = intake_body_add(&send->body, str_slice(body, 0, half), &error);
    sim_wait(sim_below(50) == 0 ? sim_between(0, 35 * 60 * TIME_SECOND_US)
                                : sim_between(100, 100000));
    if (result == OK) {
        result = intake_body_add(&send->body, str_slice(body, half, body.size), &error);
    }
    send->received_at = seam_now(&node->process->seam);
    result = result == OK ? intake_body_end(&send->body, &error) : result;
    if (result != OK) {
        intake_send_refuse(send, &error);
    }
    return result == OK;
}

static void run_request(struct actor *actor)
{
    struct sim_request *request = actor->argument;
    struct sim_node *node = actor->process->node;
    /* A node that lost its lease drops the backlog of its listener before it registers again (I4).
     */
    if (sim->now - request->sent_at > GONE_US) {
        request->finished = true;
        if (request->waiter != NULL && !sim->stopping) {
            sim_wake(request->waiter);
        }
        return;
    }
    node->open++;
    log_watch(node);
    struct intake_send *send = open_send(node, request);
    if (!lease_begin(node, send)) {
        intake_send_refuse_code(send, ERROR_UNAVAILABLE);
    } else if (read_body(node, send, request->body)) {
        send->is_new = sim->early != NULL && claim(node, send);
        send->entry = send->is_new ? INTAKE_ENTRY_LINE : INTAKE_ENTRY_LOOK;
        intake_request_run(&node->groups, send);
    }
    node->open--;
}

void sim_node_send(struct sim_request *request, u64 id)
{
    char name[40];
    request->sent_at = sim->now;
    (void)snprintf(name, sizeof(name), "%s %s", request->process->name, request->batch_id);
    (void)sim_spawn(name, id, request->process, run_request, request, sim_between(1000, 50000));
}

void sim_node_open(struct sim_process *process)
{
    struct sim_node *node = arena_alloc(sim->arena, sizeof(*node));
    assert(node != NULL);
    node->process = process;
    node->options = (struct intake_options){.backlog = LEDGER_BACKLOG_DEFAULT,
                                            .db = &process->db,
                                            .seam = &process->seam,
                                            .limits = intake_limits_default()};
    node->log = sim->logged ? log_open(process, &node->journal, sim->arena) : NULL;
    node->groups = (struct intake_groups){.options = &node->options,
                                          .log = node->log,
                                          .early = sim->early,
                                          .closing = &node->closing};
    process->node = node;
    claims_open(node);
}

void sim_node_died(struct sim_process *process)
{
    if (process->node != NULL) {
        atomic_store(&process->node->closing, true);
    }
}

bool sim_node_idle(const struct sim_process *process)
{
    return process->node->open == 0;
}
