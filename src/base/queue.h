/* queue: a bounded first-in-first-out of pointers between threads.
 *
 * A full queue refuses (the caller answers BUSY), an empty one makes the taker wait. Closing wakes
 * all takers; what is inside is still handed out. Thread-safe. */
#ifndef LHBOX_BASE_QUEUE_H
#define LHBOX_BASE_QUEUE_H

#include "base/num.h"

struct queue;

struct queue *queue_create(size_t capacity);
void queue_destroy(struct queue *queue);
/* False when full or closed. */
MUST_USE bool queue_push(struct queue *queue, void *item);
/* Waits up to timeout_us (negative: without end). NULL when it timed out, or closed and empty. */
void *queue_pop(struct queue *queue, i64 timeout_us);
void queue_close(struct queue *queue);

#endif
