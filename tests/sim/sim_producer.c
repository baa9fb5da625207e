#include "sim.h"

#include "base/assert.h"
#include "base/buf.h"

#include <stdio.h>

/* Producers: each sends batches, again and again until it knows; some bodies grow between two
 * tries, some batches are given up, some are sent again days later. */

enum { ATTEMPTS_MAX = 14, BURST_MAX = 6 };

/* ---- bodies ---- */

static i32 new_batch(i32 sink)
{
    if (sim->batch_count >= SIM_BATCHES_MAX ||
        (sim->config->batches_max >= 0 && sim->batch_count >= sim->config->batches_max)) {
        return -1;
    }
    i32 index = sim->batch_count++;
    struct sim_batch *batch = &sim->batches[index];
    u64 drawn = sim_hash(sim->config->seed ^ 0xba7c, (u64)index, 0);
    *batch = (struct sim_batch){.sink = sink, .acknowledged = -1, .body_count = 1};
    (void)snprintf(batch->id, sizeof(batch->id), "b%04d:%llx", index,
                   (unsigned long long)(drawn & 0xffff));
    bool spoiled = sim_part(SIM_REJECTS) && drawn % 4 == 0;
    bool hopeless = spoiled && (drawn >> 4) % 4 == 0;
    for (size_t i = 0; i < SIM_ROWS_MAX; i++) {
        u64 lot = sim_hash(sim->config->seed ^ 0x70, (u64)index, i + 1);
        enum sim_row row = SIM_ROW_GOOD;
        if (hopeless) {
            row = SIM_ROW_BAD;
        } else if (spoiled) {
            row = lot % 8 < 4 ? SIM_ROW_GOOD : (enum sim_row)(lot % 8 % 4);
        }
        batch->rows[i] = row;
    }
    batch->row_counts[0] = 1 + (i32)((drawn >> 8) % 3);
    if (sim_part(SIM_GROWTH)) {
        batch->body_count = 2;
        batch->row_counts[1] = batch->row_counts[0] + 1 + (i32)((drawn >> 16) % 2);
    }
    return index;
}

static str body_of(struct arena *arena, i32 index, i32 generation)
{
    const struct sim_batch *batch = &sim->batches[index];
    buf out = buf_create(arena, 512, 64 * KIB);
    buf_append_byte(&out, '[');
    for (i32 i = 0; i < batch->row_counts[generation]; i++) {
        char row[128];
        enum sim_row kind = batch->rows[i];
        switch (kind) {
        case SIM_ROW_GOOD:
            (void)snprintf(row, sizeof(row),
                           "{\"rid\":\"~%04d.%d~\",\"n\":%d,\"p\":\"2026-01-0%d\"}", index, i, i,
                           1 + index % 2);
            break;
        case SIM_ROW_BAD:
            (void)snprintf(row, sizeof(row),
                           "{\"rid\":\"~%04d.%d~\",\"n\":\"x\",\"p\":\"2026-01-01\"}", index, i);
            break;
        case SIM_ROW_NARROW:
            (void)snprintf(row, sizeof(row),
                           "{\"rid\":\"~%04d.%d~\",\"n\":3000000000,\"p\":\"2026-01-01\"}", index,
                           i);
            break;
        case SIM_ROW_REFUSED:
            (void)snprintf(row, sizeof(row), "\"~%04d.%d~\"", index, i);
            break;
        }
        buf_append(&out, i > 0 ? STR(",") : STR(""));
        buf_append(&out, str_from(row));
    }
    buf_append_byte(&out, ']');
    assert(buf_ok(&out));
    return buf_str(&out);
}

/* ---- one try ---- */

static struct sim_process *pick_intake(void)
{
    struct sim_process *picked = sim->intakes[sim_below((u64)sim->intake_count)];
    for (i32 i = 0; i < sim->intake_count && picked->dead; i++) {
        picked = sim->intakes[(picked->slot + 1) % sim->intake_count];
    }
    return picked;
}

static struct sim_request *send_once(i32 index, i32 generation, u64 id)
{
    struct sim_batch *batch = &sim->batches[index];
    struct sim_request *request = arena_alloc(sim->arena, sizeof(*request));
    assert(request != NULL);
    *request = (struct sim_request){
        .process = pick_intake(),
        .sink_id = sim->sinks[batch->sink].id,
        .batch_id = batch->id,
        .body = body_of(sim->arena, index, generation),
        .waiter = sim->current,
    };
    if (request->process->dead) {
        request->waiter = NULL;
        return request;
    }
    batch->sent[generation] = true;
    batch->sent_at = batch->sent_at == 0 ? sim->now : batch->sent_at;
    sim_node_send(request, id);
    i64 until = sim->now + (sim_below(4) == 0 ? sim_between(100000, 2 * TIME_SECOND_US)
                                              : sim_between(10, 120) * TIME_SECOND_US);
    while (!request->finished && !sim->stopping && sim->now < until) {
        sim_sleep(until - sim->now);
    }
    request->waiter = NULL; /* from here on nobody hears an answer */
    if (request->finished && sim->faults && sim_below(24) == 0) {
        request->answer = SIM_ANSWER_NONE; /* lost on its way */
    }
    if (!request->finished) {
        request->answer = SIM_ANSWER_NONE;
    }
    return request;
}

/* ---- what an answer promises ---- */

static i32 rows_stored(const struct sim_batch *batch, i32 generation)
{
    i32 count = 0;
    for (i32 i = 0; i < batch->row_counts[generation]; i++) {
        count += batch->rows[i] != SIM_ROW_REFUSED ? 1 : 0;
    }
    return count;
}

/* A batch all of whose elements were refused has no object: recover finds nothing to make its row
 * from, and its id is new again. No accepted row is lost by that, nor doubled. */
void sim_forget_unstored(i64 copied_at)
{
    for (i32 i = 0; i < sim->batch_count; i++) {
        struct sim_batch *batch = &sim->batches[i];
        batch->forgotten = batch->forgotten ||
                           (batch->acknowledged >= 0 && batch->acknowledged_at >= copied_at &&
                            rows_stored(batch, batch->acknowledged) == 0);
    }
}

/* It was answered by a ledger that is gone, and nothing of it was stored, or there is no table to
 * recover from. */
static bool is_forgotten(const struct sim_batch *batch)
{
    const struct sim_table *table = &sim->tables[sim->sinks[batch->sink].table];
    return batch->forgotten ||
           (batch->answered_at < sim->restored_at && sim_table_broken(str_from(table->uuid)));
}

static void note_accepted(i32 index, i32 generation, const struct sim_request *request)
{
    struct sim_batch *batch = &sim->batches[index];
    bool again = batch->answered_at < sim->restored_at;
    batch->acknowledged = is_forgotten(batch) ? -1 : batch->acknowledged;
    batch->forgotten = false;
    if (batch->acknowledged >= 0 && batch->acknowledged != generation) {
        sim_violate("I3", "batch %s was acknowledged with body %d, and now with body %d", batch->id,
                    batch->acknowledged, generation);
    }
    /* A row that was made again shows counts, not the list of reasons. */
    if (batch->acknowledged < 0) {
        batch->acknowledged = generation;
        batch->acknowledged_at = sim->now;
        sim->result->acknowledged++;
    }
    if (batch->first_answer[0] == '\0' || again) {
        batch->answered_at = sim->now;
        (void)snprintf(batch->first_answer, sizeof(batch->first_answer), "%s", request->text);
    }
    /* The same answer, but for its last members. */
    str first = str_from(batch->first_answer);
    i64 same = str_find(first, STR(",\"state\""));
    if (same < 0 || strncmp(batch->first_answer, request->text, (size_t)same) != 0) {
        sim_violate("I3", "batch %s was answered %s, and later %s", batch->id, batch->first_answer,
                    request->text);
    }
}

static void note_reused(i32 index, i32 generation)
{
    struct sim_batch *batch = &sim->batches[index];
    bool others = false;
    for (i32 i = 0; i < batch->body_count; i++) {
        others = others || (i != generation && batch->sent[i]);
    }
    if (!others || (batch->acknowledged == generation && !is_forgotten(batch))) {
        sim_violate("I3", "batch %s, body %d: refused as reused", batch->id, generation);
    }
}

static void note_answer(i32 index, i32 generation, const struct sim_request *request)
{
    sim_trace("producer: %s body %d: answer %d %s", sim->batches[index].id, generation,
              (int)request->answer, request->text);
    if (request->answer == SIM_ANSWER_ACCEPTED) {
        note_accepted(index, generation, request);
    } else if (request->answer == SIM_ANSWER_REUSED) {
        note_reused(index, generation);
    }
}

/* ---- again, days later ---- */

static void run_replay(struct actor *actor)
{
    i32 index = (i32)(intptr_t)actor->argument;
    struct sim_batch *batch = &sim->batches[index];
    i64 until = batch->sent_at + 6 * TIME_DAY_US;
    i64 span = num_min_i64(sim->horizon, until) - sim->now;
    if (span <= 0) {
        return;
    }
    i64 wait = (i64)sim_below((u64)span);
    wait = sim_below(2) == 0 ? num_min_i64(wait, 3 * SIM_HOUR) : wait;
    sim_wait(wait);
    if (sim->stopping) {
        return;
    }
    bool grown = batch->body_count > 1 && sim_below(3) == 0;
    i32 generation = grown ? 1 - batch->acknowledged : batch->acknowledged;
    const struct sim_request *request = send_once(index, generation, sim_hash(5, (u64)index, 1000));
    if (sim->stopping) {
        return;
    }
    bool forgotten = is_forgotten(batch);
    note_answer(index, generation, request);
    if (!grown && request->answer == SIM_ANSWER_ACCEPTED && !request->duplicate && !forgotten) {
        sim_violate("I3", "batch %s was accepted as new again", batch->id);
    }
}

/* ---- a batch, until it is known ---- */

static i64 pause_before(u64 attempt)
{
    i64 rest = num_max_i64(sim->horizon - sim->now, 1);
    u64 lot = sim_below(10);
    if (lot < 6) {
        return sim_between(100000, 10 * TIME_SECOND_US);
    }
    if (lot < 9 || attempt < 2) {
        return num_min_i64(rest, sim_between(TIME_SECOND_US, 30 * 60 * TIME_SECOND_US));
    }
    return num_min_i64(rest, sim_between(0, 2 * TIME_DAY_US));
}

static void send_batch(i32 index)
{
    struct sim_batch *batch = &sim->batches[index];
    i32 generation = 0;
    for (u64 attempt = 0; attempt < ATTEMPTS_MAX && !sim->stopping; attempt++) {
        if (attempt > 0) {
            sim_wait(pause_before(attempt));
        }
        if (sim->now - batch->sent_at > 6 * TIME_DAY_US && batch->sent_at > 0) {
            return;
        }
        if (sim->stopping || sim->now > sim->horizon) {
            return;
        }
        const struct sim_request *request = send_once(index, generation,
                                                      sim_hash(5, (u64)index, attempt));
        if (sim->stopping) {
            return;
        }
        note_answer(index, generation, request);
        if (request->answer == SIM_ANSWER_ACCEPTED) {
            if (sim_part(SIM_REPLAYS) && sim_below(3) == 0) {
                (void)sim_spawn("replay", sim_hash(6, (u64)index, 0), NULL, run_replay,
                                (void *)(intptr_t)index, 0);
            }
            return;
        }
        if (request->answer == SIM_ANSWER_DELETED || (sim->faults && sim_below(24) == 0)) {
            return; /* given up */
        }
        if (request->answer == SIM_ANSWER_REUSED) {
            generation = (generation + 1) % batch->body_count;
        } else if (generation + 1 < batch->body_count && sim_below(8) == 0) {
            generation++;
        }
    }
}

static void run_one(struct actor *actor)
{
    i32 slot = (i32)(intptr_t)actor->argument;
    i32 sink = sim_sink_of_slot(slot);
    i32 index = sink < 0 ? -1 : new_batch(sink);
    if (index >= 0) {
        send_batch(index);
    }
    sim->producers_left--;
}

void sim_send_soon(i32 slot, i64 delay_us)
{
    sim->producers_left++;
    (void)sim_spawn("producer", sim_hash(13, (u64)sim->sends_soon++, 0), NULL, run_one,
                    (void *)(intptr_t)slot, delay_us);
}

/* Others send to the same sink at about the same time. */
static void burst(i32 slot)
{
    if (sim_part(SIM_BURSTS) && sim_below(2) == 0) {
        i64 others = sim_between(1, BURST_MAX);
        for (i64 i = 0; i < others; i++) {
            sim_send_soon(slot, sim_between(0, 20000));
        }
    }
}

static void run_producer(struct actor *actor)
{
    i64 wanted = sim_between(1, sim->scope->sends);
    (void)actor;
    for (i64 i = 0; i < wanted && !sim->stopping; i++) {
        i64 left = num_max_i64(sim->horizon - sim->now, 1);
        sim_wait((i64)sim_below((u64)(left / (wanted - i) + 1)));
        if (sim->stopping || sim->now > sim->horizon) {
            break;
        }
        i32 slot = (i32)sim_below((u64)sim->slot_count);
        i32 sink = sim_sink_of_slot(slot);
        i32 index = sink < 0 ? -1 : new_batch(sink);
        if (index >= 0) {
            burst(slot);
            send_batch(index);
        }
    }
    sim->producers_left--;
}

void sim_start_producers(void)
{
    u64 drawn = sim_hash(sim->config->seed ^ 0x9d, 0, 0);
    i32 count = 1 + (i32)(drawn % (u64)sim->scope->producers);
    if (sim->config->producers_max >= 0) {
        count = (i32)num_min_i64(count, sim->config->producers_max);
    }
    for (i32 i = 0; i < count; i++) {
        sim->producers_left++;
        (void)sim_spawn("producer", sim_hash(4, (u64)i, 0), NULL, run_producer, NULL,
                        sim_between(0, 1000000));
    }
}
