#include "sink/intake_request.h"

#include "base/assert.h"
#include "base/machine.h"
#include "base/planted.h"
#include "base/queue.h"
#include "sink/intake_apply.h"
#include "sink/intake_dry.h"
#include "sink/intake_index.h"
#include "sink/intake_line.h"
#include "sink/intake_quota.h"
#include "sink/intake_told.h"

/* An intake request (step 1), as a machine. Its body is complete, checked and hashed; alone it goes
 * up to its sink's line, and from there on as one of a group. It begins on the http thread: glance,
 * and from there the line where nothing can block it. A worker goes on with what is to be looked
 * up, and with a line that nobody drives.
 *
 *    glance ───────────────┐                                   shares an object
 *      │  maybe known      │ surely new                       ┌─► tell ─┐     ┌─┐
 *      ▼                   ▼                                  │         ▼     ▼ │
 *     look ──► quota ──► line ──► take ──────────────────► store ────► pass ─► apply
 *      │  │      │        │        │ ▲ │                   ▲  │ │ failed │       │
 *      │  │      │        │        │ │ │  some waited for  │  │ │        ▼       ▼
 *      │  │      │        │        │ │ └──► again ─────────┘  │ └► put  take    take
 *      │  │      │        │        │ │   an id in flight │    │    │ │
 *      ▼  │      ▼        ▼        ▼ │                   ▼    ▼    │ ▼
 *     done│     done     done    done└────────────────── leave ◄───┴ record
 *     known,    no room  another nothing   all were known  │ │ │
 *     answered           drives  waits                     │ │ └──► refuse ──► take
 *         ▼                                                │ └────► clean ─┐
 *     try ──► done  (a dry run)                            └──────► answer ◄ ──► take
 *
 * state    work                                 what holds on entering it
 * glance   intake_index_claim, and whether the  the body is complete; nothing is stored of it
 *          bucket surely has room: no waiting
 * look     intake_group_known: one read of the  the same; on a worker from here on
 *          ledger
 * try      intake_dry_run                       a dry run; it never stores anything
 * quota    intake_quota_take                    the ledger did not know the id
 * line     joins the line of its sink           the bucket has room; no batch of the ledger has the
 *                                               id, or only since a moment: then record tells (I2)
 * take     intake_line_take: what waits         this worker drives the sink, and each group that it
 *          becomes a group                      took is answered, or belongs to a shared object
 * again    intake_group_look_again: another     a group in flight, perhaps empty, and sends whose
 *          read of the ledger                   id was in flight before
 * store    intake_group_store: the record in    no two of the group have one id, and none has the
 *          the log, where there is a log        id of another group in flight
 * tell     intake_told_answer: an early answer  the group is durable in the log, has its place in a
 *                                               shared object, and nothing can be said against it
 *                                               any more (intake_early.h)
 * pass     intake_apply_arrive                  it was told, or it failed and was refused; its
 *                                               object may lack others yet
 * apply    intake_apply_run: files and rows of  all groups of the object have arrived, and no other
 *          a shared object                      worker applies one of this sink
 * put      intake_group_put: rejects files,     the group has an object of its own; it is durable
 *          then the object                      in the log, or there is none
 * record   intake_group_record: one             all files of the group are durable (I1)
 *          transaction
 * leave    intake_line_leave                    the group's transaction is over, or there was none
 * clean    intake_group_clean: losers' files    each send of the group has its outcome, surely
 * answer   intake_group_answer                  the same, and what nobody refers to is gone; or an
 *                                               outcome was looked up, and nothing may go (A4)
 * refuse   intake_group_refuse: 503 for all     no row was made, or nobody knows; nothing is
 *                                               deleted: it is the collector's
 * done     the thread's turn is over            the send was answered, waits for its commit
 *                                               (intake_wait), or is in the line of a driven sink
 *
 * Object first, row second, answer third: no edge leads around put or record to a 2xx but the
 * ledger's word that the id is known, and tell, where the log has both. What was told does not fail
 * any more: apply tries until it succeeds, or the process ends and the next one replays the log. */

enum state {
    AT_GLANCE,
    AT_LOOK,
    AT_TRY,
    AT_QUOTA,
    AT_LINE,
    AT_TAKE,
    AT_AGAIN,
    AT_STORE,
    AT_TELL,
    AT_PASS,
    AT_APPLY,
    AT_PUT,
    AT_RECORD,
    AT_LEAVE,
    AT_CLEAN,
    AT_ANSWER,
    AT_REFUSE,
    /* the end */
    AT_DONE,
};

static const char *const STATES[] = {"glance", "look",  "try",   "quota",  "line",   "take",
                                     "again",  "store", "tell",  "pass",   "apply",  "put",
                                     "record", "leave", "clean", "answer", "refuse", "done"};

#define TO(name) MACHINE_TO(AT_##name)
static const u32 EDGES[] = {
    [AT_GLANCE] = TO(LOOK) | TO(LINE),
    [AT_LOOK] = TO(TRY) | TO(QUOTA) | TO(DONE),
    [AT_TRY] = TO(DONE),
    [AT_QUOTA] = TO(LINE) | TO(DONE),
    [AT_LINE] = TO(TAKE) | TO(DONE),
    [AT_TAKE] = TO(AGAIN) | TO(STORE) | TO(DONE),
    [AT_AGAIN] = TO(STORE) | TO(LEAVE),
    [AT_STORE] = TO(TELL) | TO(PASS) | TO(PUT) | TO(LEAVE),
    [AT_TELL] = TO(PASS),
    [AT_PASS] = TO(APPLY) | TO(TAKE),
    [AT_APPLY] = TO(APPLY) | TO(TAKE),
    [AT_PUT] = TO(RECORD) | TO(LEAVE),
    [AT_RECORD] = TO(LEAVE),
    [AT_LEAVE] = TO(TAKE) | TO(CLEAN) | TO(ANSWER) | TO(REFUSE),
    [AT_CLEAN] = TO(ANSWER),
    [AT_ANSWER] = TO(TAKE),
    [AT_REFUSE] = TO(TAKE),
    [AT_DONE] = 0,
};
#undef TO
static const struct machine MACHINE = {"intake", STATES, EDGES, ARRAY_COUNT(EDGES)};
_Static_assert(ARRAY_COUNT(STATES) == ARRAY_COUNT(EDGES), "each state has a name");

/* One worker's turn. The send is somebody else's once it is in the line. */
struct turn {
    const struct intake_groups *groups;
    struct intake_send *send;
    struct intake_sink *sink;
    const struct warehouse *warehouse;
    struct intake_group *group;   /* from take to pass, answer or refuse */
    struct intake_shared *shared; /* to be applied */
    err result;                   /* of store and record */
    struct error error;
};

static enum state look(struct turn *turn)
{
    if (turn->send->mode == INTAKE_DRY_RUN) {
        return AT_TRY;
    }
    bool known = !turn->send->id_made && intake_group_known(turn->groups, turn->send);
    return known ? AT_DONE : AT_QUOTA;
}

/* A known id is answered whatever the state of the bucket; this one is not. */
static enum state quota(struct turn *turn)
{
    i64 bytes = (i64)intake_body_stored(&turn->send->body).size;
    if (turn->groups->quota == NULL ||
        intake_quota_take(turn->groups->quota, turn->warehouse, bytes)) {
        return AT_LINE;
    }
    intake_send_refuse_code(turn->send, ERROR_QUOTA_EXCEEDED);
    return AT_DONE;
}

/* With the sink's lock. A logged group is durable before its PUT: the next one's record goes to the
 * disk meanwhile. */
static bool wants_driver(const struct intake_groups *groups, const struct intake_sink *sink,
                         const struct warehouse *warehouse)
{
    if (warehouse == NULL) {
        return sink->groups < 1;
    }
    i32 ahead = intake_log_takes(groups->log, warehouse) ? 1 : 0;
    return sink->groups < warehouse->files.puts_in_flight_max + ahead;
}

static enum state join_line(struct turn *turn)
{
    struct intake_sink *sink = turn->sink;
    bool drive = false;
    if (turn->send->entry == INTAKE_ENTRY_DRIVE) {
        turn->send = NULL;
        return AT_TAKE; /* the send has joined, and this driver is counted, already */
    }
    (void)pthread_mutex_lock(&sink->lock);
    intake_line_append(sink, turn->send);
    turn->send = NULL;
    if (wants_driver(turn->groups, sink, turn->warehouse)) {
        sink->groups++;
        drive = true;
    }
    (void)pthread_mutex_unlock(&sink->lock);
    return drive ? AT_TAKE : AT_DONE;
}

static void group_drop(struct turn *turn)
{
    if (turn->group != NULL) {
        arena_destroy(turn->group->arena);
        turn->group = NULL;
    }
}

static enum state take(struct turn *turn)
{
    struct arena *arena = arena_create(INTAKE_GROUP_ARENA_MAX);
    turn->result = OK;
    error_clear(&turn->error);
    turn->group = arena_alloc(arena, sizeof(*turn->group));
    if (turn->group == NULL) {
        arena_destroy(arena);
        intake_line_give_up(turn->sink, ERROR_OVERLOADED);
        return AT_DONE;
    }
    *turn->group = (struct intake_group){
        .groups = turn->groups, .arena = arena, .sink = turn->sink, .warehouse = turn->warehouse};
    if (!intake_line_take(turn->group)) {
        group_drop(turn);
        return AT_DONE;
    }
    return turn->group->again != NULL ? AT_AGAIN : AT_STORE;
}

static enum state look_again(struct turn *turn)
{
    intake_group_look_again(turn->group);
    return turn->group->count > 0 ? AT_STORE : AT_LEAVE;
}

static enum state store(struct turn *turn)
{
    struct intake_group *group = turn->group;
    turn->result = intake_group_store(group, &turn->error);
    if (group->shared == NULL) {
        return turn->result == OK ? AT_PUT : AT_LEAVE;
    }
    if (turn->result == OK) {
        turn->result = intake_told_check(group, &turn->error);
    }
    if (turn->result != OK) {
        intake_told_fail(group, turn->result, &turn->error);
    }
    return turn->result == OK ? AT_TELL : AT_PASS;
}

static enum state tell(struct turn *turn)
{
    intake_apply_seal(turn->group);
    intake_told_answer(turn->group);
    CRASH_POINT(intake_told);
    return AT_PASS;
}

static enum state pass(struct turn *turn)
{
    turn->shared = intake_apply_arrive(turn->group);
    turn->group = NULL;
    return turn->shared != NULL ? AT_APPLY : AT_TAKE;
}

static enum state apply(struct turn *turn)
{
    turn->shared = intake_apply_run(turn->shared);
    return turn->shared != NULL ? AT_APPLY : AT_TAKE;
}

static enum state put(struct turn *turn)
{
    turn->result = intake_group_put(turn->group, &turn->error);
    return turn->result == OK ? AT_RECORD : AT_LEAVE;
}

static enum state record(struct turn *turn)
{
    turn->result = intake_group_record(turn->group, &turn->error);
    if (turn->result == OK) {
        intake_told_learn(turn->group);
    }
    return AT_LEAVE;
}

static enum state leave(struct turn *turn)
{
    struct intake_group *group = turn->group;
    intake_group_settle(group, turn->result == OK);
    intake_line_leave(group);
    if (group->count == 0) {
        group_drop(turn);
        return AT_TAKE;
    }
    if (turn->result != OK) {
        return AT_REFUSE;
    }
    return group->unsure && !PLANTED(29) ? AT_ANSWER : AT_CLEAN;
}

static enum state answer_all(struct turn *turn, enum state state)
{
    intake_group_hold_answers(turn->groups);
    if (state == AT_ANSWER) {
        intake_group_answer(turn->group);
    } else {
        intake_group_refuse(turn->group, turn->result, &turn->error);
    }
    intake_group_release_answers(turn->groups);
    group_drop(turn);
    return AT_TAKE;
}

/* Does the state's work; answers the next state. */
static enum state step(struct turn *turn, enum state state)
{
    switch (state) {
    case AT_GLANCE: /* the http thread's: intake_request_meet */
        break;
    case AT_LOOK:
        return look(turn);
    case AT_TRY:
        intake_dry_run(turn->groups->options, turn->send);
        return AT_DONE;
    case AT_QUOTA:
        return quota(turn);
    case AT_LINE:
        return join_line(turn);
    case AT_TAKE:
        return take(turn);
    case AT_AGAIN:
        return look_again(turn);
    case AT_STORE:
        return store(turn);
    case AT_TELL:
        return tell(turn);
    case AT_PASS:
        return pass(turn);
    case AT_APPLY:
        return apply(turn);
    case AT_PUT:
        return put(turn);
    case AT_RECORD:
        return record(turn);
    case AT_LEAVE:
        return leave(turn);
    case AT_CLEAN:
        intake_group_clean(turn->group);
        return AT_ANSWER;
    case AT_ANSWER:
    case AT_REFUSE:
        return answer_all(turn, state);
    case AT_DONE:
        break;
    }
    assert(state > AT_GLANCE && state < AT_DONE);
    return AT_DONE;
}

void intake_request_run(const struct intake_groups *groups, struct intake_send *send)
{
    struct turn turn = {
        .groups = groups, .send = send, .sink = send->sink, .warehouse = send->warehouse};
    enum state state = send->entry == INTAKE_ENTRY_LOOK ? AT_LOOK : AT_LINE;
    while (state != AT_DONE) {
        state = machine_take(&MACHINE, state, step(&turn, state));
    }
}

/* ---- on the http thread ---- */

/* With the sink's lock, and until it has joined the line: of two who claim an id one is first. */
static bool is_new(const struct intake_groups *groups, const struct intake_send *send)
{
    i64 bytes = (i64)intake_body_stored(&send->body).size;
    bool claimed = send->mode != INTAKE_DRY_RUN &&
                   (send->id_made || intake_index_claim(groups->index, send->id_hash));
    return claimed && intake_quota_try(groups->quota, send->warehouse, bytes);
}

/* With the sink's lock, and so before anybody can take the line: a worker that is called to drive
 * waits for it. */
static bool join_from_outside(const struct intake_groups *groups, struct intake_send *send)
{
    struct intake_sink *sink = send->sink;
    bool drive = wants_driver(groups, sink, send->warehouse);
    bool taken = !drive || queue_push(groups->queue, sink->driver);
    if (taken) {
        send->is_new = groups->early != NULL;
        sink->groups += drive ? 1 : 0;
        intake_line_append(sink, send);
    }
    if (!drive || !taken) {
        (void)machine_take(&MACHINE, AT_LINE, AT_DONE);
    }
    return taken;
}

bool intake_request_meet(const struct intake_groups *groups, struct intake_send *send)
{
    struct intake_sink *sink = send->sink;
    bool taken = false;
    (void)pthread_mutex_lock(&sink->lock);
    enum error_code delay = sink->delayed ? sink->delay_code : ERROR_NONE;
    if (delay != ERROR_NONE && send->mode == INTAKE_ACCEPT) {
        (void)pthread_mutex_unlock(&sink->lock);
        intake_send_refuse_code(send, delay);
        return true;
    }
    enum state state = machine_take(&MACHINE, AT_GLANCE, is_new(groups, send) ? AT_LINE : AT_LOOK);
    if (state == AT_LINE) {
        taken = join_from_outside(groups, send);
    }
    (void)pthread_mutex_unlock(&sink->lock);
    return state == AT_LINE ? taken : queue_push(groups->queue, send);
}
