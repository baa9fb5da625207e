/* doors: a door in front of every seam call, which a test can make fail; and the loops over it: the
 * n-th call fails, for every n; the n-th growth of an arena fails, for every n.
 *
 * What is tested goes through the doors; the test looks at what lies behind them. */
#ifndef LHBOX_TESTS_DOORS_H
#define LHBOX_TESTS_DOORS_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/arena.h"
#include "io/db.h"
#include "io/store.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

/* What befalls the call numbered `fault_at`, counted from arming. */
enum door_fault {
    DOOR_SOUND,
    DOOR_FAILS,       /* nothing happens, and it says so */
    DOOR_LOSES,       /* it happens; the answer is UNKNOWN */
    DOOR_DIES_BEFORE, /* the process dies: nothing happens, then or later */
    DOOR_DIES_AFTER,  /* it happens, then the process dies */
    DOOR_LIES_409,    /* a commit happens and is answered CONFLICT; other calls are sound */
    DOOR_STARVES,     /* no call fails, but the growth of an arena that has this number */
    DOOR_STARVES_ANY, /* the same for each allocation */
};

struct doors {
    enum door_fault fault;
    i64 fault_at;
    _Atomic i64 calls;
    _Atomic bool dead;
    /* done before the call numbered `meddle_at`, counted like `fault_at` */
    void (*meddle)(void *context);
    void *meddle_context;
    i64 meddle_at;
    str poison; /* after a put of these bytes memory runs out once; data NULL: never */
};

/* ---- one call ---- */

enum door_way { DOOR_PASS, DOOR_STOP, DOOR_PASS_UNTOLD, DOOR_PASS_409 };

static inline enum door_way door_way(struct doors *doors)
{
    i64 call = atomic_fetch_add(&doors->calls, 1) + 1;
    if (doors->dead) {
        return DOOR_STOP;
    }
    if (doors->meddle != NULL && call == doors->meddle_at) {
        doors->meddle(doors->meddle_context);
        return DOOR_PASS;
    }
    if (call != doors->fault_at) {
        return DOOR_PASS;
    }
    switch (doors->fault) {
    case DOOR_SOUND:
    case DOOR_STARVES:
    case DOOR_STARVES_ANY:
        return DOOR_PASS;
    case DOOR_FAILS:
        return DOOR_STOP;
    case DOOR_LOSES:
        return DOOR_PASS_UNTOLD;
    case DOOR_DIES_BEFORE:
        doors->dead = true;
        return DOOR_STOP;
    case DOOR_DIES_AFTER:
        doors->dead = true;
        return DOOR_PASS_UNTOLD;
    case DOOR_LIES_409:
        return DOOR_PASS_409;
    }
    return DOOR_PASS;
}

/* Reads have no answer to lose but the one that they are for. */
static inline bool door_stops_read(struct doors *doors)
{
    enum door_way way = door_way(doors);
    return way == DOOR_STOP || way == DOOR_PASS_UNTOLD;
}

static inline err door_stopped(struct error *error)
{
    return error_set(error, IO, ERROR_UNAVAILABLE, "the test's door is shut");
}

static inline err door_untold(enum door_way way, err result, struct error *error)
{
    if (way != DOOR_PASS_UNTOLD || result != OK) {
        return result;
    }
    return error_set(error, UNKNOWN, ERROR_UNAVAILABLE, "the answer is lost");
}

/* ---- a database behind a door ---- */

struct door_db {
    struct doors *doors;
    struct db inner;
};

static inline err door_transact(void *self, db_body body, void *context, struct error *error)
{
    struct door_db *door = self;
    enum door_way way = door_way(door->doors);
    if (way == DOOR_STOP) {
        return door_stopped(error);
    }
    return door_untold(way, db_transact(&door->inner, body, context, error), error);
}

static inline err door_transact_later(void *self, db_body body, void *context, struct error *error)
{
    struct door_db *door = self;
    enum door_way way = door_way(door->doors);
    if (way == DOOR_STOP) {
        return door_stopped(error);
    }
    return door_untold(way, db_transact_later(&door->inner, body, context, error), error);
}

static inline err door_read(void *self, db_body body, void *context, struct error *error)
{
    struct door_db *door = self;
    return door_stops_read(door->doors) ? door_stopped(error)
                                        : db_read(&door->inner, body, context, error);
}

static inline err door_backup(void *self, str path, struct error *error)
{
    struct door_db *door = self;
    return door_stops_read(door->doors) ? door_stopped(error)
                                        : db_backup(&door->inner, path, error);
}

static inline void door_close_db(void *self)
{
    db_close(&((struct door_db *)self)->inner);
}

static inline struct db door_db_open(struct door_db *door)
{
    static const struct db_ops ops = {.transact = door_transact,
                                      .transact_later = door_transact_later,
                                      .read = door_read,
                                      .backup = door_backup,
                                      .close = door_close_db};
    return (struct db){&ops, door};
}

/* ---- a store behind a door ---- */

struct door_store {
    struct doors *doors;
    struct store inner;
    size_t page; /* keys of a list at most; 0: as asked */
    /* May change what a list says; NULL: nothing. */
    void (*listed)(void *context, struct store_list *list);
    void *context;
};

static inline err door_put(void *self, str key, const str *pieces, size_t count,
                           const struct store_meta *meta, struct error *error)
{
    struct door_store *door = self;
    enum door_way way = door_way(door->doors);
    if (way == DOOR_STOP) {
        return door_stopped(error);
    }
    str poison = door->doors->poison;
    if (poison.data != NULL && count > 0 && str_find(pieces[0], poison) >= 0) {
        arena_fail_growth_at(1);
    }
    return door_untold(way, store_put_pieces(&door->inner, key, pieces, count, meta, error), error);
}

static inline err door_get(void *self, struct arena *arena, str key,
                           struct store_object *out_object, struct error *error)
{
    struct door_store *door = self;
    return door_stops_read(door->doors) ? door_stopped(error)
                                        : store_get(&door->inner, arena, key, out_object, error);
}

static inline err door_head(void *self, struct arena *arena, str key,
                            struct store_object *out_object, struct error *error)
{
    struct door_store *door = self;
    return door_stops_read(door->doors) ? door_stopped(error)
                                        : store_head(&door->inner, arena, key, out_object, error);
}

static inline err door_remove(void *self, str key, struct error *error)
{
    struct door_store *door = self;
    enum door_way way = door_way(door->doors);
    if (way == DOOR_STOP) {
        return door_stopped(error);
    }
    return door_untold(way, store_remove(&door->inner, key, error), error);
}

static inline err door_list(void *self, struct arena *arena, str prefix, str after, size_t limit,
                            struct store_list *out_list, struct error *error)
{
    struct door_store *door = self;
    if (door_stops_read(door->doors)) {
        return door_stopped(error);
    }
    size_t page = door->page > 0 && door->page < limit ? door->page : limit;
    TRY(store_list(&door->inner, arena, prefix, after, page, out_list, error));
    if (door->listed != NULL) {
        door->listed(door->context, out_list);
    }
    return OK;
}

static inline err door_sync_store(void *self, struct error *error)
{
    struct door_store *door = self;
    enum door_way way = door_way(door->doors);
    if (way == DOOR_STOP) {
        return door_stopped(error);
    }
    return door_untold(way, store_sync(&door->inner, error), error);
}

static inline void door_close_store(void *self)
{
    store_close(&((struct door_store *)self)->inner);
}

static inline struct store door_store_open(struct door_store *door)
{
    static const struct store_ops ops = {.put = door_put,
                                         .get = door_get,
                                         .head = door_head,
                                         .remove = door_remove,
                                         .list = door_list,
                                         .sync = door_sync_store,
                                         .close = door_close_store};
    return (struct store){.ops = &ops, .self = door, .puts_in_flight_max = 1};
}

/* ---- arming ---- */

static inline void doors_arm(struct doors *doors, enum door_fault fault, i64 at)
{
    doors->fault = fault;
    doors->fault_at = at;
    doors->calls = 0;
    doors->dead = false;
    arena_fail_growth_at(fault == DOOR_STARVES ? at : 0);
    if (fault == DOOR_STARVES_ANY) {
        arena_fail_allocation_at(at);
    }
}

static inline void doors_heal(struct doors *doors)
{
    doors->fault = DOOR_SOUND;
    doors->dead = false;
    doors->meddle = NULL;
    arena_fail_growth_at(0);
}

/* ---- every n ---- */

/* A world, what is done in it through the doors, and what must hold whatever came of it: `settle`
 * looks, does it again soundly, and sees that it is complete and was done once. */
struct door_scene {
    const char *name;
    void *(*open)(void);
    struct doors *(*doors)(void *world);
    err (*act)(void *world, struct error *error);
    void (*settle)(void *world, err result);
    void (*close)(void *world);
};

enum { DOOR_CALLS_MAX = 20000 };

/* True in the long tier of the tests. */
static inline bool door_takes_its_time(void)
{
    const char *tier = getenv("LHBOX_TEST_TIER");
    return tier != NULL && strcmp(tier, "all") == 0;
}

/* Returns how often the fault was met. */
static inline i64 door_every(const struct door_scene *scene, enum door_fault fault)
{
    bool met = true;
    for (i64 at = 1; met; at++) {
        void *world = scene->open();
        struct doors *doors = scene->doors(world);
        struct error told = {0};
        doors_arm(doors, fault, at);
        err result = scene->act(world, &told);
        bool starves = fault == DOOR_STARVES || fault == DOOR_STARVES_ANY;
        met = (starves ? arena_growths() : doors->calls) >= at;
        doors_heal(doors);
        if (result != OK && (told.code == ERROR_NONE || told.message[0] == '\0')) {
            fail_msg("%s: fault %d at %lld: %s without a word", scene->name, (int)fault,
                     (long long)at, err_text(result));
        }
        if (!met && result != OK) {
            fail_msg("%s: fails without a fault: %s", scene->name, told.message);
        }
        scene->settle(world, result);
        scene->close(world);
        assert_true(at < DOOR_CALLS_MAX);
        if (!met) {
            return at - 1;
        }
    }
    return 0;
}

#endif
