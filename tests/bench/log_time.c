/* log_time DIR ROUNDS SECONDS: how long a record of 1 KiB takes to be durable in a log, beside the
 * disk.
 *
 * In turn, so many times: bare writes of 4 KiB (O_DIRECT, O_DSYNC) to a file full of zeros, and
 * records submitted and waited for by 1, 16 and 64 threads, each for so many seconds. Prints one
 * line of JSON a measurement: operations a second, and the median and the 99th of 100 in
 * microseconds. */
#include "io/journal.h"
#include "work.h"

#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <unistd.h>

enum { RECORD_BYTES = 1024, BLOCK_BYTES = 4096, FILE_BLOCKS = 4096, THREADS_MAX = 64 };
enum { TIMES_MAX = 1 << 18 };

struct measure {
    _Atomic u64 count;
    u32 times[TIMES_MAX]; /* microseconds, of the first so many */
};

static struct measure measure;
static atomic_bool stop;

static void note(i64 microseconds)
{
    u64 index = atomic_fetch_add(&measure.count, 1);
    if (index < TIMES_MAX) {
        measure.times[index] = (u32)microseconds;
    }
}

static int ascending(const void *a, const void *b)
{
    u32 left = *(const u32 *)a;
    u32 right = *(const u32 *)b;
    return (left > right) - (left < right);
}

static void report(const char *what, int threads, i64 took_us)
{
    u64 count = measure.count;
    u64 kept = count < TIMES_MAX ? count : TIMES_MAX;
    if (kept == 0) {
        work_fail("nothing was measured");
    }
    qsort(measure.times, kept, sizeof(measure.times[0]), ascending);
    (void)printf("{\"what\":\"%s\",\"threads\":%d,\"per_second\":%.0f,\"p50_us\":%u,"
                 "\"p99_us\":%u}\n",
                 what, threads, (double)count * 1e6 / (double)took_us, measure.times[kept / 2],
                 measure.times[kept * 99 / 100]);
    (void)fflush(stdout);
    measure.count = 0;
}

/* ---- the disk ---- */

static void disk_measure(const char *directory, i64 seconds)
{
    static _Alignas(BLOCK_BYTES) char block[BLOCK_BYTES];
    char path[1024];
    (void)snprintf(path, sizeof(path), "%s/bare", directory);
    int fd = open(path, O_RDWR | O_CREAT, 0600);
    for (int i = 0; fd >= 0 && i < FILE_BLOCKS; i++) {
        if (write(fd, block, sizeof(block)) != BLOCK_BYTES) {
            work_fail("the file cannot be filled");
        }
    }
    if (fd < 0 || fsync(fd) != 0 || close(fd) != 0) {
        work_fail("the file cannot be made");
    }
    fd = open(path, O_RDWR | O_DIRECT | O_DSYNC);
    fd = fd < 0 ? open(path, O_RDWR | O_DSYNC) : fd;
    i64 start = seam_monotonic_us(seam_system());
    i64 before = start;
    for (i64 i = 0; before - start < seconds * TIME_SECOND_US; i++) {
        memset(block, (int)(i % 255) + 1, sizeof(block));
        off_t at = (off_t)(i % FILE_BLOCKS) * BLOCK_BYTES;
        if (pwrite(fd, block, sizeof(block), at) != BLOCK_BYTES) {
            work_fail("the disk refuses a write");
        }
        i64 after = seam_monotonic_us(seam_system());
        note(after - before);
        before = after;
    }
    (void)close(fd);
    report("disk", 1, before - start);
}

/* ---- the log ---- */

static err release_some(const struct journal *journal, u64 position)
{
    struct journal_space space = journal_space(journal);
    return space.used * 2 > space.total ? journal_release(journal, position, NULL) : OK;
}

static void *append_records(void *argument)
{
    const struct journal *journal = argument;
    static const char bytes[RECORD_BYTES] = "x";
    const str record = {bytes, sizeof(bytes)};
    while (!atomic_load(&stop)) {
        u64 position = 0;
        i64 before = seam_monotonic_us(seam_system());
        err result = journal_submit(journal, &record, 1, &position, NULL);
        if (result == OK) {
            result = journal_wait(journal, position, NULL);
        }
        if (result != OK) {
            work_fail("the log refuses a record");
        }
        note(seam_monotonic_us(seam_system()) - before);
        if (release_some(journal, position) != OK) {
            work_fail("the log refuses a release");
        }
    }
    return NULL;
}

static void log_measure(struct journal *journal, int threads, i64 seconds)
{
    pthread_t ids[THREADS_MAX];
    atomic_store(&stop, false);
    i64 start = seam_monotonic_us(seam_system());
    for (int i = 0; i < threads; i++) {
        if (pthread_create(&ids[i], NULL, append_records, journal) != 0) {
            work_fail("no thread");
        }
    }
    seam_wait_us(seam_system(), seconds * TIME_SECOND_US);
    atomic_store(&stop, true);
    for (int i = 0; i < threads; i++) {
        (void)pthread_join(ids[i], NULL);
    }
    report("log", threads, seam_monotonic_us(seam_system()) - start);
}

int main(int argc, char **argv)
{
    AUTO_ARENA struct arena *arena = arena_create((size_t)16 * MIB);
    i64 rounds = 0;
    i64 seconds = 0;
    if (argc != 4 || !str_to_i64(str_from(argv[2]), &rounds) ||
        !str_to_i64(str_from(argv[3]), &seconds)) {
        work_fail("log_time DIR ROUNDS SECONDS");
    }
    const struct journal_options options = {.directory = str_format(arena, "%s/log", argv[1]),
                                            .segment_bytes = 16 * MIB,
                                            .segments = 8,
                                            .identity = STR("bench"),
                                            .seam = seam_system()};
    struct journal journal = {0};
    struct error error = {0};
    i64 start = seam_monotonic_us(seam_system());
    if (journal_open_dir(arena, &options, &journal, &error) != OK) {
        work_fail(error.message);
    }
    (void)printf("{\"what\":\"open\",\"ms\":%lld}\n",
                 (long long)(seam_monotonic_us(seam_system()) - start) / 1000);
    for (i64 i = 0; i < rounds; i++) {
        disk_measure(argv[1], seconds);
        log_measure(&journal, 1, seconds);
        log_measure(&journal, 16, seconds);
        log_measure(&journal, 64, seconds);
    }
    journal_close(&journal);
    return 0;
}
