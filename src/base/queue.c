#include "base/queue.h"

#include "base/assert.h"
#include "base/seam.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <time.h>

/* A ring. The lock guards everything but `capacity`. */
struct queue {
    pthread_mutex_t lock;
    pthread_cond_t arrived; /* an item, or the closing */
    size_t capacity;
    size_t first;
    size_t count;
    bool closed;
    void *items[];
};

struct queue *queue_create(size_t capacity)
{
    assert(capacity > 0);
    size_t size = 0;
    bool fits = num_mul_size(capacity, sizeof(void *), &size) &&
                num_add_size(size, sizeof(struct queue), &size);
    assert(fits);
    struct queue *queue = calloc(1, size);
    assert(queue != NULL);
    queue->capacity = capacity;

    pthread_condattr_t attributes;
    int failed = pthread_condattr_init(&attributes);
    failed |= pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    failed |= pthread_cond_init(&queue->arrived, &attributes);
    failed |= pthread_condattr_destroy(&attributes);
    failed |= pthread_mutex_init(&queue->lock, NULL);
    assert(failed == 0);
    return queue;
}

void queue_destroy(struct queue *queue)
{
    if (queue == NULL) {
        return;
    }
    int failed = pthread_cond_destroy(&queue->arrived);
    failed |= pthread_mutex_destroy(&queue->lock);
    assert(failed == 0);
    free(queue);
}

static void queue_lock(struct queue *queue)
{
    int failed = pthread_mutex_lock(&queue->lock);
    assert(failed == 0);
}

static void queue_unlock(struct queue *queue)
{
    int failed = pthread_mutex_unlock(&queue->lock);
    assert(failed == 0);
}

bool queue_push(struct queue *queue, void *item)
{
    assert(item != NULL);
    queue_lock(queue);
    bool taken = !queue->closed && queue->count < queue->capacity;
    if (taken) {
        queue->items[(queue->first + queue->count) % queue->capacity] = item;
        queue->count++;
        pthread_cond_signal(&queue->arrived);
    }
    queue_unlock(queue);
    return taken;
}

/* Waits for an item or the closing, with the lock held. */
static void queue_wait(struct queue *queue, i64 timeout_us)
{
    if (timeout_us < 0) {
        while (queue->count == 0 && !queue->closed) {
            pthread_cond_wait(&queue->arrived, &queue->lock);
        }
        return;
    }
    i64 until_us = 0;
    if (!num_add_i64(seam_monotonic_us(seam_system()), timeout_us, &until_us)) {
        until_us = INT64_MAX;
    }
    struct timespec until = {.tv_sec = until_us / TIME_SECOND_US,
                             .tv_nsec = until_us % TIME_SECOND_US * 1000};
    int result = 0;
    while (queue->count == 0 && !queue->closed && result != ETIMEDOUT) {
        result = pthread_cond_timedwait(&queue->arrived, &queue->lock, &until);
        assert(result == 0 || result == ETIMEDOUT);
    }
}

void *queue_pop(struct queue *queue, i64 timeout_us)
{
    queue_lock(queue);
    if (queue->count == 0 && timeout_us != 0) {
        queue_wait(queue, timeout_us);
    }
    void *item = NULL;
    if (queue->count > 0) {
        item = queue->items[queue->first];
        queue->first = (queue->first + 1) % queue->capacity;
        queue->count--;
    }
    queue_unlock(queue);
    return item;
}

void queue_close(struct queue *queue)
{
    queue_lock(queue);
    queue->closed = true;
    pthread_cond_broadcast(&queue->arrived);
    queue_unlock(queue);
}
