/* sim: a whole installation on one thread, driven by one seed.
 *
 * The shipped code of accepting, rolling, deleting and sweeping runs unchanged over simulated
 * seams: clock, random, store, ledger, catalog. Each actor is a coroutine; each seam call hands
 * over to the scheduler, lets virtual time pass, and may go wrong in every way the law names.
 * Beneath the seams are the real store in memory, the real SQLite connection and the real embedded
 * catalog.
 *
 * A process that dies is not destroyed: all its seam calls fail from then on and have no effect,
 * until its coroutines have run out. To the world that is the same, and no memory is lost.
 *
 * Every draw is a hash of (seed, actor, number of the draw), so that leaving one actor or one fault
 * out disturbs the others little: that is what the minimiser lives on. */
#ifndef LHBOX_SIM_H
#define LHBOX_SIM_H

#include "base/map.h"
#include "base/seam.h"
#include "io/db.h"
#include "io/db_statement.h"
#include "io/journal.h"
#include "sink/recover.h"
#include "sink/roll.h"
#include "table/catalog_local.h"

enum {
    SIM_TABLES_MAX = 8,
    SIM_PROCESSES_MAX = 2048,
    SIM_LIVES_MAX = 2048,
    SIM_SINKS_MAX = 16,
    SIM_BATCHES_MAX = 64,
    SIM_ROWS_MAX = 6,
    SIM_BODIES_MAX = 3,
    SIM_FAULTS_MAX = 4096,
    SIM_SNAPSHOTS_MAX = 400,
    SIM_VERSIONS_MAX = 2048,
    SIM_LATE_MAX = 32,
    SIM_UNSYNCED_MAX = 512,
    SIM_LATER_MAX = 64,
};
#define SIM_EPOCH ((instant)1790000000 * TIME_SECOND_US)
#define SIM_HOUR  (3600 * TIME_SECOND_US)

/* ---- what a schedule is made of ---- */

enum sim_part {
    SIM_FOREIGN,
    SIM_COMPACTOR,
    SIM_EXPIRER,
    SIM_ROLLBACK,
    SIM_UNSETTER,
    SIM_RENAMER,
    SIM_DROPPER,
    SIM_ALTERER,
    SIM_PATCHER,
    SIM_DELETER,
    SIM_CLOCKS,
    SIM_FREEZES,
    SIM_RESTORER,
    SIM_DEATHS,
    SIM_REPLAYS,
    SIM_GROWTH,
    SIM_REJECTS,
    SIM_BURSTS,
    SIM_MERGES,
    SIM_PART_COUNT,
};

struct sim_config {
    u64 seed;
    u32 parts_off;     /* bits of enum sim_part */
    u32 faults_off;    /* bits of enum sim_fault */
    i32 producers_max; /* -1: as drawn */
    i32 intakes_max;
    i32 rollers_max;
    i32 batches_max;
    const u64 *only; /* NULL: any fault may strike; else these alone, by their identity */
    size_t only_count;
    i32 planted; /* the fault that is switched on in the product; 0: none */
    bool trace;
};

enum sim_fault {
    SIM_FAULT_NONE,
    SIM_FAULT_BEFORE,  /* fails, surely not done */
    SIM_FAULT_FULL,    /* the disk is full */
    SIM_FAULT_LOST,    /* not done, and not told: UNKNOWN */
    SIM_FAULT_DONE,    /* done, and not told: UNKNOWN */
    SIM_FAULT_LATE,    /* UNKNOWN now, done later */
    SIM_FAULT_REFUSED, /* done, and told CONFLICT: an answer to a hidden second sending */
    SIM_FAULT_STALE,   /* an older version is read */
    SIM_FAULT_PARTIAL, /* fewer bytes, or entries, than there are */
    SIM_FAULT_SLOW,
    SIM_FAULT_FREEZE, /* the process stands still, before or after the effect */
    SIM_FAULT_DIE_BEFORE,
    SIM_FAULT_DIE_AFTER,
    SIM_FAULT_COUNT,
};

struct sim_violation {
    char rule[32];
    char text[512];
};

struct sim_result {
    bool failed;
    struct sim_violation violation;
    u64 faults[SIM_FAULTS_MAX]; /* identities of those that struck */
    size_t fault_count;
    i64 steps;
    i64 batches;
    i64 acknowledged;
    i64 commits;
    i64 merges; /* of manifests */
    i64 rejected;
};

/* ---- actors ---- */

struct sim_process;
struct sim_journal;

struct actor {
    void *left_at; /* on its stack */
    void *stack;
    char name[40];
    u64 id;                      /* stable over changes of the schedule */
    u64 draws;                   /* of faults and delays */
    u64 randoms;                 /* of the random seam */
    u64 calls;                   /* of seams */
    struct sim_process *process; /* NULL: outside */
    void (*run)(struct actor *actor);
    void *argument;
    u64 token; /* of the wake-up that counts */
    bool done;
    struct actor *next;
};

/* One process: its own clocks, its own doors to the world. */
enum sim_role { SIM_INTAKE, SIM_ROLLER, SIM_COLLECTOR, SIM_RECOVERER, SIM_STARTER };
struct sim_process {
    enum sim_role role;
    i32 slot;
    i32 incarnation;
    char name[24];
    bool dead;
    i64 frozen_until;
    i64 started_at;
    i64 wall_offset;
    i64 actors; /* that still run in it */
    struct seam seam;
    struct db db;
    struct location location;
    struct location_set locations;
    struct warehouse warehouse;
    struct sim_node *node; /* intakes */
};

/* ---- the model ---- */

struct sim_sink {
    char id[ID_SHORT_SIZE + 1];
    i32 slot; /* of its table */
    i32 table;
    bool deleting; /* a delete was called */
    i64 deleting_at;
    bool deleted; /* it was answered */
};

/* What a body says of one row. */
enum sim_row { SIM_ROW_GOOD, SIM_ROW_BAD, SIM_ROW_NARROW, SIM_ROW_REFUSED };

struct sim_batch {
    i32 sink;
    char id[32];
    enum sim_row rows[SIM_ROWS_MAX]; /* of the longest body; shorter ones are its beginnings */
    i32 row_counts[SIM_BODIES_MAX];
    i32 body_count;
    i32 acknowledged; /* the body that was answered 2xx, or -1 */
    i64 acknowledged_at;
    i64 answered_at; /* when first_answer was noted */
    i64 sent_at;     /* first: what was sent may be stored since, and forgotten 7 days later */
    bool forgotten;  /* the ledger's copy is older, and nothing was stored to make its row from */
    bool sent[SIM_BODIES_MAX];
    i32 landed[SIM_ROWS_MAX]; /* how often the row was committed */
    u8 rejects[SIM_ROWS_MAX]; /* it stands in the batch's rejects file, as last written */
    bool rejects_seen;
    char first_answer[512];
};

struct sim_snapshot {
    i64 id;
    i64 parent;
    i64 at;    /* when it was first seen */
    u16 *rows; /* that it brought */
    size_t row_count;
    char uuid[ID_UUID_SIZE + 1];
    str *manifests; /* paths */
    size_t manifest_count;
};

/* A version of a table that once was current: what a stale load reads. */
struct sim_version {
    i32 table;
    i64 at;
    str location;
    struct metadata *metadata; /* a reference; files are written once and never changed */
};

/* One table from its making to its end; a name may see several. */
struct sim_table {
    i32 slot; /* which name */
    char name[24];
    char uuid[ID_UUID_SIZE + 1];
    str pointer; /* as last seen */
    bool partitioned;
    bool gone;
    bool touched; /* the owner broke the sink's claim: it may stop for good */
    bool rewound; /* the owner rolled main back: rows of it may be gone */
};

struct sim_event;

/* How much happens in a schedule, at most. */
struct sim_scope {
    i64 minutes; /* until the faults end */
    i64 ticks;   /* of a roller until the faults end */
    i32 producers;
    i64 sends; /* of each producer */
    i64 acts;  /* of each other writer, caller or operator */
    i32 rollers;
};

struct sim_world {
    const struct sim_config *config;
    const struct sim_scope *scope;
    struct sim_result *result;
    struct arena *arena; /* of the run */
    struct arena *scratch;
    i64 now; /* microseconds of virtual time since the start */
    i64 horizon;
    bool faults; /* still on */
    bool stopping;
    i64 next_late;
    i64 late_bases[SIM_LATE_MAX]; /* what commit requests on their way assert of main; 0: none */
    /* how hostile the schedule is, in parts of 65536 for each call */
    u32 p_fail;
    u32 p_unknown;
    u32 p_die;
    u32 p_freeze;
    u32 p_slow;
    u32 p_read;
    i64 freeze_max;
    i64 late_max;
    bool unsettled; /* loads lag behind, settings change while commits are under way */
    i64 storm_us;   /* the length of a time in which no commit is answered; 0: never */
    /* the scheduler */
    struct sim_event *events;
    size_t event_count;
    size_t event_capacity;
    u64 event_order;
    u64 outside_draws;
    u64 outside_randoms;
    bool in_body; /* of a transaction: nothing may hand over */
    struct actor *actors;
    struct actor *current;
    void *left_at; /* the scheduler, on its stack */
    i64 actor_count;
    i64 steps_max;
    /* the world beneath the seams */
    i64 ledger_offset; /* of the ledger's clock */
    i64 ledger_offset_max;
    i64 errands; /* deletes and patches under way */
    struct seam ledger_seam;
    struct seam quiet_seam;
    struct db_connection *connection;
    struct db raw_db;
    struct db apart_db;            /* of a catalog that is a service of its own */
    i64 old_until;                 /* readers see what was before a commit in doubt; 0: none is */
    struct sim_ledger *old_ledger; /* what that is; NULL: it stands in its connection already */
    struct store raw_store;
    struct map *times; /* of objects: key to virtual time */
    struct location raw_location;
    struct location_set raw_locations;
    struct catalog catalog;
    struct warehouse raw_warehouse;
    str installation;
    bool embedded; /* the catalog shares the ledger, and its own seam calls go wrong */
    struct sim_process *processes[SIM_PROCESSES_MAX];
    size_t process_count;
    struct sim_process *intakes[8];
    i32 intake_count;
    struct sim_process *rollers[8];
    i32 roller_count;
    i64 roll_seconds;
    i64 tick_us;
    bool restoring; /* the ledger was put back, and nothing is served yet */
    /* One machine with an intake log: its processes die together, and often its power fails. */
    bool logged;
    bool down;                  /* it has died, and its log is not replayed yet */
    bool watched;               /* somebody sees to it that it starts again */
    struct intake_early *early; /* of its present life; NULL: not logged */
    struct intake_early *lives[SIM_LIVES_MAX];
    size_t life_count;
    i64 starters;
    struct sim_journal *journal; /* as last opened */
    struct sim_unsynced {
        str key;
        i64 number;
    } unsynced[SIM_UNSYNCED_MAX]; /* objects that a power loss may take or tear */
    size_t unsynced_count;
    i64 unsynced_number;
    size_t later_count; /* of the ledger's last commits that are not durable */
    bool pointers_old;  /* and so were the embedded catalog's pointers */
    i64 restored_at;    /* the last time it was put back; 0: never */
    i32 recoverers;     /* processes that ran `recover` */
    /* the model */
    struct sim_sink sinks[SIM_SINKS_MAX];
    i32 sink_count;
    struct sim_batch batches[SIM_BATCHES_MAX];
    i32 batch_count;
    struct sim_table tables[SIM_TABLES_MAX];
    i32 table_count;
    i32 slot_count; /* names */
    i32 renames;
    struct sim_snapshot *snapshots;
    size_t snapshot_count;
    struct map *manifests; /* those read, by path */
    struct sim_version *versions;
    size_t version_count;
    struct map *shadow; /* batch rows as last seen, by sink and id */
    i64 transactions;
    i64 ledger_version; /* as long as it stays, rollers see the same */
    i32 producers_left;
    i64 sends_soon;
};

extern struct sim_world *sim;

/* ---- sim_actor: coroutines, time, chance ---- */

u64 sim_hash(u64 a, u64 b, u64 c);
u64 sim_draw(void); /* of the present actor */
u64 sim_below(u64 bound);
bool sim_chance(u32 parts); /* of 65536 */
i64 sim_between(i64 low, i64 high);
/* The actor begins after delay_us. */
struct actor *sim_spawn(const char *name, u64 id, struct sim_process *process,
                        void (*run)(struct actor *), void *argument, i64 delay_us);
void sim_wait(i64 microseconds); /* of a dead process: returns at once */
/* Waits to be woken, or for so long. */
void sim_sleep(i64 microseconds);
void sim_wake(struct actor *actor);
/* A thing that happens to the world at a time. */
void sim_later(i64 delay_us, void (*happen)(void *argument), void *argument);
bool sim_dead(void); /* the present actor's process has ended */
void sim_kill(struct sim_process *process);
void sim_thaw(struct sim_process *process);
void sim_scheduler(i64 until);
/* All processes die; their actors run out. */
void sim_finish_actors(void);
void sim_actors_free(void);
struct seam sim_seam(struct sim_process *process); /* NULL: the ledger's clock */

/* ---- sim_fault ---- */

/* Time passes; then the fault that strikes this call, of those allowed. After it the process may be
 * dead. */
enum sim_fault sim_strike(u32 allowed, const char *what, str about);
#define SIM_ALLOW(fault) (1U << (fault))
/* After the effect: the process may die or freeze. */
void sim_after(enum sim_fault fault);
err sim_failed(enum sim_fault fault, struct error *error);
i64 sim_late_delay(void);

/* ---- the seams ---- */

struct db sim_db(struct sim_process *process);
void sim_db_open(void);
void sim_db_close(void);
/* The ledger as it stands; and an older one in its place. Only while no process is alive. */
struct sim_ledger *sim_db_copy(struct arena *arena);
void sim_db_put_back(const struct sim_ledger *copy);
void sim_db_power_loss(void);
void sim_store_power_loss(void);
/* The journal of the machine's log, as a process that begins finds it. */
struct journal sim_journal_open(struct sim_process *process);
void sim_journal_erase(void);
void sim_journal_died(struct sim_journal *journal); /* its process did; NULL: none */
struct store sim_store(struct sim_process *process);
struct catalog sim_catalog(struct sim_process *process);
err sim_catalog_open(void);
void sim_catalog_close(void);    /* those of the processes too */
bool sim_commit_under_way(void); /* some request has not landed yet */

/* ---- sim_table: what stands in the tables ---- */

/* After every change: new versions and snapshots are taken into the model, and judged. `after`:
 * what a commit has just answered, or NULL. */
void sim_table_observe(const struct table *after);
void sim_table_check_final(void);
void sim_versions_close(void);
bool sim_is_there(struct arena *arena, str uri); /* the file of a table */
/* The catalog's pointers were put back and moved forward again: names and snapshots follow. */
void sim_table_restored(void);
bool sim_table_broken(str uuid);
/* Rows of the snapshot that is main's, in the arena. */
size_t sim_table_rows(struct arena *arena, const struct metadata *metadata, u16 **out_rows);
/* Rows of the model that a file's bytes name; each at most once. Returns how many. */
size_t sim_rows_in(str bytes, u16 *out_rows, size_t max);

/* ---- actors of the schedule ---- */

void sim_process_start(enum sim_role role, i32 slot, i32 incarnation);
void sim_node_open(struct sim_process *process);
void sim_node_died(struct sim_process *process);
bool sim_node_idle(const struct sim_process *process); /* no request is open */
void sim_roller_open(struct sim_process *process);
void sim_collector_open(struct sim_process *process);
/* One run of `recover`; the actor of a process of its own. */
void sim_recover(struct actor *actor);
/* A start of the machine: the log is replayed; the actor of a process of its own. */
void sim_start_up(struct actor *actor);
err sim_replay(struct sim_process *process, struct arena *arena, struct error *error);
/* The machine's next life begins: what was answered early is known by the log alone. */
void sim_live(void);
void sim_lives_free(void);
bool sim_stopped(void); /* nothing is served at the moment */
void sim_run_restorer(struct actor *actor);
struct roll_env sim_roll_env(struct sim_process *process, const char *holder);
void sim_process_died(struct sim_process *process); /* it is started again some time */
void sim_start_producers(void);
/* A batch to the newest sink of the slot, beside those of the producers. */
void sim_send_soon(i32 slot, i64 delay_us);
/* The ledger's copy of that moment took its place. */
void sim_forget_unstored(i64 copied_at);
void sim_start_owners(void);
void sim_await_trouble(enum sim_part part, i32 slot);
i32 sim_make_sink(i32 slot);    /* index, or -1 */
i32 sim_sink_of_slot(i32 slot); /* the newest one, or -1 */
void sim_make_table(i32 slot);
struct sim_table *sim_table_of_slot(i32 slot); /* NULL: it is gone */
void sim_operate(void);                        /* the operator looks at what is disabled */

/* One request to an intake. */
enum sim_answer {
    SIM_ANSWER_NONE,
    SIM_ANSWER_ACCEPTED,
    SIM_ANSWER_REUSED,
    SIM_ANSWER_DELETED,
    SIM_ANSWER_ERROR
};
struct sim_request {
    struct sim_process *process;
    const char *sink_id;
    const char *batch_id;
    str body;
    enum sim_answer answer;
    bool duplicate;
    bool finished; /* answered, or never to be */
    char text[512];
    struct actor *waiter;
    i64 sent_at;
};
void sim_node_send(struct sim_request *request, u64 id);

/* ---- the model and its judge ---- */

void sim_violate(const char *rule, const char *format, ...) __attribute__((format(printf, 2, 3)));
void sim_trace(const char *format, ...) __attribute__((format(printf, 1, 2)));
void sim_check_ledger(void);                  /* at any instant */
void sim_check_remove(str key, i64 sent_at);  /* before an object goes */
void sim_check_commit(const json_t *request); /* before a request of ours goes */
void sim_check_landed(str property);
void sim_check_put(str key, str body);
bool sim_recovering(str sink_id); /* nothing of it is served */
void sim_check_final(void);

/* ---- a run ---- */

const char *sim_part_name(enum sim_part part);
/* False: this build has no planted faults. 0: none. */
bool sim_plant(i32 number);
/* A fault that only meetings of one kind show is looked for where they happen. */
enum {
    SIM_PROFILE_RESTORES = 2,
    SIM_PROFILE_VOIDS = 4,
    SIM_PROFILE_BURSTS = 7
}; /* places in PROFILES, from 1 */
i32 sim_planted_profile(i32 number);
/* False past the last one. */
bool sim_planted_at(size_t index, i32 *out_number, const char **out_meaning);

void sim_run(const struct sim_config *config, struct sim_result *result);
bool sim_part(enum sim_part part);

#endif
