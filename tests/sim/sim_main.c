#include "sim_main.h"

#include "base/assert.h"
#include "base/log.h"

#include <malloc.h>
#include <signal.h>
#include <sqlite3.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

/* lhbox_sim run     [--from=N] [--count=N] [--jobs=N] [--planted=N]   many schedules; fails if one
 * fails lhbox_sim planted [--count=N] [--jobs=N]                            every planted fault
 * must be found lhbox_sim replay SEED [what `run` printed]                          one schedule,
 * told step by step lhbox_sim reduce SEED [...]                                         the least
 * that still fails */

enum { JOBS_MAX = 16, FAILURES_MAX = 64, CHUNK = 16, SECONDS_MAX = 120, PROGRESS = 10000 };

struct failure {
    u64 seed;
    struct sim_violation violation;
};

/* Between the workers. */
struct shared {
    atomic_ullong next;
    atomic_ullong done;
    atomic_ullong steps;
    atomic_ullong batches;
    atomic_ullong acknowledged;
    atomic_ullong commits;
    atomic_ullong merges;
    atomic_uint failure_count;
    atomic_bool enough;
    u64 current[JOBS_MAX];
    struct failure failures[FAILURES_MAX];
};

struct options {
    u64 from;
    u64 count;
    i32 jobs;
    u32 failures_max;
    struct sim_config config;
    u64 only[SIM_FAULTS_MAX];
};

static void note_failure(struct shared *shared, const struct options *options, u64 seed,
                         const struct sim_violation *violation)
{
    u32 index = atomic_fetch_add(&shared->failure_count, 1);
    if (options->config.planted == 0) { /* long runs are read while they go on */
        (void)printf("seed %llu fails: %s\n", (unsigned long long)seed, violation->rule);
        (void)fflush(stdout);
    }
    if (index < FAILURES_MAX) {
        shared->failures[index] = (struct failure){seed, *violation};
    }
    if (index + 1 >= options->failures_max) {
        atomic_store(&shared->enough, true);
    }
}

static void note_progress(const struct shared *shared, const struct options *options, u64 done)
{
    if (done % PROGRESS == 0 && done < options->count) {
        (void)printf("%llu schedules, %u failed\n", (unsigned long long)done,
                     atomic_load(&shared->failure_count));
        (void)fflush(stdout);
    }
}

static void work(struct shared *shared, const struct options *options, i32 job)
{
    static struct sim_result result;
    struct sim_config config = options->config;
    u64 end = options->from + options->count;
    for (;;) {
        u64 from = atomic_fetch_add(&shared->next, CHUNK);
        for (u64 seed = from; seed < from + CHUNK; seed++) {
            if (seed >= end || atomic_load(&shared->enough)) {
                sim_actors_free();
                return;
            }
            config.seed = seed;
            shared->current[job] = seed;
            sim_limit_processor(SECONDS_MAX);
            sim_run(&config, &result);
            sim_limit_processor(0);
            note_progress(shared, options, atomic_fetch_add(&shared->done, 1) + 1);
            atomic_fetch_add(&shared->steps, (u64)result.steps);
            atomic_fetch_add(&shared->batches, (u64)result.batches);
            atomic_fetch_add(&shared->acknowledged, (u64)result.acknowledged);
            atomic_fetch_add(&shared->commits, (u64)result.commits);
            atomic_fetch_add(&shared->merges, (u64)result.merges);
            if (result.failed) {
                note_failure(shared, options, seed, &result.violation);
            }
        }
    }
}

static pid_t start_worker(struct shared *shared, const struct options *options, i32 job)
{
    (void)fflush(NULL);
    pid_t child = fork();
    assert(child >= 0);
    if (child == 0) {
        work(shared, options, job);
        (void)fflush(NULL);
        _exit(0);
    }
    return child;
}

/* A worker that was killed takes its chunk's rest with it; a new one goes on behind. */
static void await_workers(struct shared *shared, const struct options *options, pid_t *workers)
{
    i32 running = options->jobs;
    while (running > 0) {
        int status = 0;
        pid_t ended = waitpid(-1, &status, 0);
        assert(ended > 0);
        i32 job = 0;
        while (job < options->jobs && workers[job] != ended) {
            job++;
        }
        if (job == options->jobs) {
            continue;
        }
        if (WIFEXITED(status) && WEXITSTATUS(status) == 0) {
            running--;
            continue;
        }
        struct sim_violation crash = {.rule = "crash"};
        (void)snprintf(crash.text, sizeof(crash.text), "the process ended by signal %d",
                       WIFSIGNALED(status) ? WTERMSIG(status) : 0);
        note_failure(shared, options, shared->current[job], &crash);
        workers[job] = start_worker(shared, options, job);
    }
}

static struct shared *run_many(const struct options *options)
{
    struct shared *shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE,
                                 MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    assert(shared != MAP_FAILED);
    pid_t workers[JOBS_MAX] = {0};
    atomic_store(&shared->next, options->from);
    for (i32 i = 0; i < options->jobs; i++) {
        workers[i] = start_worker(shared, options, i);
    }
    await_workers(shared, options, workers);
    return shared;
}

/* ---- telling ---- */

static void tell_failure(const struct options *options, const struct failure *failure)
{
    struct sim_config config = options->config;
    config.seed = failure->seed;
    (void)printf("FAILED seed %llu: %s: %s\n", (unsigned long long)failure->seed,
                 failure->violation.rule, failure->violation.text);
    sim_print_command(&config);
}

static void tell_least(const struct options *options, const struct failure *failure)
{
    static u64 only[SIM_FAULTS_MAX];
    static struct sim_result result;
    struct sim_config config = options->config;
    config.seed = failure->seed;
    sim_minimise(&config, failure->violation.rule, only);
    (void)printf("The least of seed %llu that still breaks %s:\n",
                 (unsigned long long)failure->seed, failure->violation.rule);
    sim_print_command(&config);
    config.trace = true;
    sim_try(&config, &result);
}

/* What all workers together have used of the processors. */
static double worker_seconds(void)
{
    struct rusage usage = {0};
    int got = getrusage(RUSAGE_CHILDREN, &usage);
    assert(got == 0);
    return (double)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
           (double)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) / 1e6;
}

/* A core is its processor time: what others take of a shared machine does not count. */
static void tell_numbers(const struct shared *shared, const struct options *options, i64 began_us)
{
    double seconds = (double)(seam_monotonic_us(seam_system()) - began_us) / 1e6;
    u64 done = atomic_load(&shared->done);
    (void)printf(
        "%llu schedules in %.1f s on %d processes, %.0f for each second of a core; %llu steps, "
        "%llu batches, %llu acknowledged, %llu snapshots, %llu of them merges; %u failed\n",
        (unsigned long long)done, seconds, options->jobs, (double)done / worker_seconds(),
        (unsigned long long)atomic_load(&shared->steps),
        (unsigned long long)atomic_load(&shared->batches),
        (unsigned long long)atomic_load(&shared->acknowledged),
        (unsigned long long)atomic_load(&shared->commits),
        (unsigned long long)atomic_load(&shared->merges), atomic_load(&shared->failure_count));
}

static int command_run(const struct options *options)
{
    i64 began = seam_monotonic_us(seam_system());
    struct shared *shared = run_many(options);
    u32 failures = atomic_load(&shared->failure_count);
    for (u32 i = 0; i < failures && i < FAILURES_MAX; i++) {
        tell_failure(options, &shared->failures[i]);
    }
    tell_numbers(shared, options, began);
    if (failures > 0) {
        tell_least(options, &shared->failures[0]);
    }
    return failures > 0 ? 1 : 0;
}

/* Each planted fault is found, or the simulator is broken. */
static int command_planted(const struct options *options)
{
    i32 number = 0;
    const char *meaning = NULL;
    int missed = 0;
    if (!sim_plant(0) || !sim_plant(1)) {
        (void)fprintf(stderr, "lhbox_sim: this build has no planted faults (-Dplanted=true)\n");
        return 2;
    }
    for (size_t i = 0; sim_planted_at(i, &number, &meaning); i++) {
        struct options one = *options;
        if (options->config.planted != 0 && options->config.planted != number) {
            continue;
        }
        one.config.planted = number;
        one.failures_max = 1;
        struct shared *shared = run_many(&one);
        u32 found = atomic_load(&shared->failure_count);
        (void)printf("%2d %-55s ", number, meaning);
        if (found == 0) {
            (void)printf("NOT FOUND in %llu schedules\n",
                         (unsigned long long)atomic_load(&shared->done));
            missed++;
        } else {
            (void)printf("%6llu schedules, seed %llu: %s: %s\n",
                         (unsigned long long)atomic_load(&shared->done) + 1,
                         (unsigned long long)shared->failures[0].seed,
                         shared->failures[0].violation.rule, shared->failures[0].violation.text);
        }
        (void)fflush(stdout);
    }
    (void)printf("%d planted faults were missed\n", missed);
    return missed > 0 ? 1 : 0;
}

static int command_replay(const struct options *options)
{
    static struct sim_result result;
    struct sim_config config = options->config;
    config.seed = options->from;
    config.trace = true;
    sim_try(&config, &result);
    if (result.failed) {
        (void)printf("FAILED seed %llu: %s: %s\n", (unsigned long long)config.seed,
                     result.violation.rule, result.violation.text);
    } else {
        (void)printf("seed %llu: nothing is wrong\n", (unsigned long long)config.seed);
    }
    return result.failed ? 1 : 0;
}

static int command_reduce(const struct options *options)
{
    static struct sim_result result;
    struct sim_config config = options->config;
    config.seed = options->from;
    sim_try(&config, &result);
    if (!result.failed) {
        (void)printf("seed %llu: nothing is wrong\n", (unsigned long long)config.seed);
        return 0;
    }
    const struct failure failure = {config.seed, result.violation};
    tell_least(options, &failure);
    return 1;
}

/* ---- options ---- */

static bool number_option(str argument, const char *name, u64 *out_value)
{
    str prefix = str_from(name);
    if (!str_starts(argument, prefix)) {
        return false;
    }
    *out_value = strtoull(argument.data + prefix.size, NULL, 10);
    return true;
}

static bool limit_option(str argument, const char *name, i32 *out_limit)
{
    u64 value = 0;
    if (!number_option(argument, name, &value)) {
        return false;
    }
    *out_limit = (i32)value;
    return true;
}

static bool part_option(str argument, struct sim_config *config)
{
    str prefix = STR("--without=");
    str name = str_slice(argument, prefix.size, argument.size);
    for (i32 i = 0; i < SIM_PART_COUNT && str_starts(argument, prefix); i++) {
        if (str_equal(name, str_from(sim_part_name((enum sim_part)i)))) {
            config->parts_off |= 1U << i;
            return true;
        }
    }
    return false;
}

static bool only_option(str argument, struct options *options)
{
    if (!str_starts(argument, STR("--only="))) {
        return false;
    }
    options->config.only = options->only;
    if (!str_equal(argument, STR("--only=none")) && options->config.only_count < SIM_FAULTS_MAX) {
        options->only[options->config.only_count++] = strtoull(argument.data + 7, NULL, 16);
    }
    return true;
}

static bool take_option(str argument, struct options *options)
{
    u64 most = options->failures_max;
    bool failures = number_option(argument, "--failures=", &most);
    options->failures_max = (u32)most;
    return failures || number_option(argument, "--from=", &options->from) ||
           number_option(argument, "--count=", &options->count) ||
           limit_option(argument, "--jobs=", &options->jobs) ||
           limit_option(argument, "--planted=", &options->config.planted) ||
           limit_option(argument, "--batches=", &options->config.batches_max) ||
           limit_option(argument, "--producers=", &options->config.producers_max) ||
           limit_option(argument, "--rollers=", &options->config.rollers_max) ||
           limit_option(argument, "--intakes=", &options->config.intakes_max) ||
           part_option(argument, &options->config) || only_option(argument, options);
}

int main(int argc, char **argv)
{
    static struct options options = {
        .from = 1,
        .count = 20000,
        .jobs = 2,
        .failures_max = 5,
        .config = {.producers_max = -1, .intakes_max = -1, .rollers_max = -1, .batches_max = -1},
    };
    int configured = sqlite3_config(SQLITE_CONFIG_SINGLETHREAD);
    assert(configured == SQLITE_OK);
    configured = sqlite3_config(SQLITE_CONFIG_MEMSTATUS, 0);
    assert(configured == SQLITE_OK);
    (void)mallopt(M_MMAP_THRESHOLD, 64 * MIB);
    (void)mallopt(M_MXFAST, 0);
    (void)mallopt(M_TRIM_THRESHOLD, 256 * MIB);
    log_init(seam_system(), (enum log_level)(LOG_ERROR + 1));
    str command = argc > 1 ? str_from(argv[1]) : STR("");
    for (int i = 2; i < argc; i++) {
        i64 seed = 0;
        if (str_to_i64(str_from(argv[i]), &seed)) {
            options.from = (u64)seed;
        } else if (!take_option(str_from(argv[i]), &options)) {
            (void)fprintf(stderr, "lhbox_sim: %s is not known\n", argv[i]);
            return 2;
        }
    }
    if (options.jobs < 1 || options.jobs > JOBS_MAX) {
        options.jobs = 1;
    }
    if (str_equal(command, STR("run"))) {
        return command_run(&options);
    }
    if (str_equal(command, STR("planted"))) {
        return command_planted(&options);
    }
    if (str_equal(command, STR("replay"))) {
        return command_replay(&options);
    }
    if (str_equal(command, STR("reduce"))) {
        return command_reduce(&options);
    }
    (void)fprintf(stderr, "usage: lhbox_sim run|planted|replay|reduce …\n");
    return 2;
}
