#include "sink/intake_line.h"

#include "base/assert.h"

/* So that a group is chosen without rendering anything. */
size_t intake_line_entry_max(const struct intake_send *send)
{
    return send->batch_id.size + sizeof(";,12345678,12345678,123456,123456,,") + 43 + 22;
}

/* ---- the ids of a group: an open hash table of fingerprints, half full at most ---- */

static size_t id_place(const struct intake_group *group, u64 id_hash)
{
    size_t place = id_hash % INTAKE_GROUP_PLACES;
    while (group->ids[place] != 0 && group->ids[place] != id_hash) {
        place = (place + 1) % INTAKE_GROUP_PLACES;
    }
    return place;
}

/* Two ids with one fingerprint count as one: then the second waits for nothing once in an age. */
static bool id_in_group(const struct intake_group *group, const struct intake_send *send)
{
    return group->ids[id_place(group, send->id_hash)] != 0;
}

static bool id_in_flight(const struct intake_sink *sink, const struct intake_send *send)
{
    for (const struct intake_group *group = sink->in_flight; group != NULL; group = group->next) {
        if (id_in_group(group, send)) {
            return true;
        }
    }
    return false;
}

static void group_add(struct intake_group *group, struct intake_send *send)
{
    assert(group->count < INTAKE_GROUP_MAX && send->id_hash != 0);
    group->ids[id_place(group, send->id_hash)] = send->id_hash;
    group->sends[group->count++] = send;
}

/* What is to become of the next send that waits. */
enum fit { FIT_TAKE, FIT_LOOK_AGAIN, FIT_LATER, FIT_FULL };

struct room {
    size_t meta;
    size_t meta_max;
    size_t bytes;
    size_t bytes_max;
};

/* A store that takes more metadata than others has no other bound of its own (decisions 46). */
size_t intake_line_entries_max(const struct warehouse *warehouse)
{
    size_t store_max = warehouse != NULL ? store_meta_bytes_max(&warehouse->files)
                                         : (size_t)STORE_META_BYTES_MAX;
    size_t beside = sizeof("sinkreceivedrowsbatches") + ID_SHORT_SIZE + TIME_TEXT_SIZE +
                    sizeof("1234567890");
    return store_max - STORE_META_BYTES_MAX + INTAKE_META_BYTES_MAX - beside;
}

static struct room group_room(const struct intake_group *group)
{
    bool logged = group->warehouse != NULL &&
                  intake_log_takes(group->groups->log, group->warehouse);
    return (struct room){
        .meta_max = intake_line_entries_max(group->warehouse),
        .bytes_max = logged ? INTAKE_LOG_GROUP_BYTES_MAX : INTAKE_GROUP_BYTES_MAX,
    };
}

/* The sends of before a lost lease have the old node id. They do not go into one object with those
 * of after it: an object's rows come with one transaction, which is under one lease. Else a roll
 * could end between two, and give up the object under the second one's rows. */
static bool same_node(const struct intake_group *group, const struct intake_send *send)
{
    return group->count == 0 || memcmp(group->sends[0]->node_id, send->node_id, ID_SHORT_SIZE) == 0;
}

static enum fit group_fit(const struct intake_group *group, struct intake_send *send,
                          struct room *room)
{
    if (id_in_group(group, send) || id_in_flight(group->sink, send)) {
        send->look_again = true;
        send->is_new = false;
        return FIT_LATER;
    }
    if (send->look_again) {
        return FIT_LOOK_AGAIN;
    }
    /* Those that are surely new can be answered earlier, among themselves. They are never
     * overtaken, for another one of their id is behind them and is not new. */
    if (group->count > 0 && group->sends[0]->is_new && !send->is_new) {
        return FIT_LATER;
    }
    size_t meta = room->meta + (intake_send_has_rows(send) ? intake_line_entry_max(send) : 0);
    size_t bytes = room->bytes + intake_body_stored(&send->body).size + INTAKE_LOG_BATCH_BYTES;
    bool over = meta > room->meta_max || bytes > room->bytes_max;
    bool ends = over || !same_node(group, send);
    if (group->count == INTAKE_GROUP_MAX || (group->count > 0 && ends)) {
        return FIT_FULL;
    }
    room->meta = meta;
    room->bytes = bytes;
    return FIT_TAKE;
}

/* With the sink's lock: moves what fits from the waiting list into the group, in order of arrival.
 */
static void group_fill(struct intake_group *group)
{
    struct intake_sink *sink = group->sink;
    struct room room = group_room(group);
    struct intake_send **link = &sink->first;
    struct intake_send *kept = NULL;
    while (*link != NULL) {
        struct intake_send *send = *link;
        enum fit fit = group_fit(group, send, &room);
        if (fit == FIT_FULL) {
            return; /* the list's end stays where it is */
        }
        if (fit == FIT_LATER) {
            kept = send;
            link = &send->next;
            continue;
        }
        *link = send->next;
        send->next = NULL;
        if (fit == FIT_TAKE) {
            group_add(group, send);
        } else {
            send->next = group->again;
            group->again = send;
        }
    }
    sink->last = kept;
}

/* Takes the next group and counts it as in flight; false when nothing can be taken now. What cannot
 * waits for a group in flight, whose driver looks again. */
bool intake_line_take(struct intake_group *group)
{
    struct intake_sink *sink = group->sink;
    (void)pthread_mutex_lock(&sink->lock);
    group->warehouse = sink->first != NULL ? sink->first->warehouse : group->warehouse;
    group_fill(group);
    bool any = group->count > 0 || group->again != NULL;
    if (any) {
        group->next = sink->in_flight;
        sink->in_flight = group;
    } else {
        sink->groups--;
    }
    (void)pthread_mutex_unlock(&sink->lock);
    return any;
}

/* With the lock. */
static struct intake_send *take_all(struct intake_sink *sink)
{
    struct intake_send *first = sink->first;
    sink->first = NULL;
    sink->last = NULL;
    return first;
}

static void refuse_all(struct intake_send *first, enum error_code code)
{
    while (first != NULL) {
        struct intake_send *next = first->next;
        intake_send_refuse_code(first, code);
        first = next;
    }
}

void intake_line_delay(struct intake_sink *sink, enum error_code code)
{
    (void)pthread_mutex_lock(&sink->lock);
    sink->delayed = true;
    sink->delay_code = code;
    struct intake_send *first = take_all(sink);
    (void)pthread_mutex_unlock(&sink->lock);
    refuse_all(first, code);
}

void intake_line_give_up(struct intake_sink *sink, enum error_code code)
{
    (void)pthread_mutex_lock(&sink->lock);
    sink->groups--;
    struct intake_send *first = take_all(sink);
    (void)pthread_mutex_unlock(&sink->lock);
    refuse_all(first, code);
}

void intake_line_go_on(struct intake_sink *sink)
{
    (void)pthread_mutex_lock(&sink->lock);
    sink->delayed = false;
    (void)pthread_mutex_unlock(&sink->lock);
}

/* Before its sends are answered: those that wait for an id of it may go on. */
void intake_line_leave(struct intake_group *group)
{
    struct intake_sink *sink = group->sink;
    (void)pthread_mutex_lock(&sink->lock);
    struct intake_group **link = &sink->in_flight;
    while (*link != group) {
        link = &(*link)->next;
    }
    *link = group->next;
    (void)pthread_mutex_unlock(&sink->lock);
}

void intake_line_append(struct intake_sink *sink, struct intake_send *send)
{
    if (sink->last != NULL) {
        sink->last->next = send;
    } else {
        sink->first = send;
    }
    sink->last = send;
}
