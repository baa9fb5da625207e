#include "sim_main.h"

#include "base/assert.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

enum { SECONDS_MAX = 60, TRIES_MAX = 3000 };

void sim_limit_processor(i32 seconds)
{
    const struct itimerval limit = {.it_value = {.tv_sec = seconds}};
    int set = setitimer(ITIMER_PROF, &limit, NULL);
    assert(set == 0);
}

void sim_try(const struct sim_config *config, struct sim_result *out_result)
{
    static struct sim_result *shared;
    if (shared == NULL) {
        shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1,
                      0);
        assert(shared != MAP_FAILED);
    }
    memset(shared, 0, sizeof(*shared));
    (void)fflush(NULL);
    pid_t child = fork();
    assert(child >= 0);
    if (child == 0) {
        sim_limit_processor(SECONDS_MAX);
        if (!config->trace) {
            int quiet = dup2(fileno(fopen("/dev/null", "w")), STDERR_FILENO);
            assert(quiet >= 0);
        }
        sim_run(config, shared);
        (void)fflush(NULL);
        _exit(0);
    }
    int status = 0;
    pid_t waited = waitpid(child, &status, 0);
    assert(waited == child);
    *out_result = *shared;
    if (!WIFEXITED(status) || WEXITSTATUS(status) != 0) {
        out_result->failed = true;
        (void)snprintf(out_result->violation.rule, sizeof(out_result->violation.rule), "crash");
        (void)snprintf(out_result->violation.text, sizeof(out_result->violation.text),
                       "the process ended with status %d (signal %d)", status,
                       WIFSIGNALED(status) ? WTERMSIG(status) : 0);
    }
}

static i32 tries;

static bool still_fails(const struct sim_config *config, const char *rule,
                        struct sim_result *out_result)
{
    static struct sim_result result;
    if (tries++ > TRIES_MAX) {
        return false;
    }
    sim_try(config, &result);
    bool same = result.failed && strcmp(result.violation.rule, rule) == 0;
    if (same && out_result != NULL) {
        *out_result = result;
    }
    return same;
}

static void drop_bits(struct sim_config *config, const char *rule, u32 *bits, i32 count)
{
    for (i32 i = 0; i < count; i++) {
        u32 before = *bits;
        *bits |= 1U << i;
        if (*bits != before && !still_fails(config, rule, NULL)) {
            *bits = before;
        }
    }
}

static void lower(struct sim_config *config, const char *rule, i32 *limit, i32 from)
{
    i32 before = *limit;
    for (i32 i = 1; i <= from; i++) {
        *limit = i;
        if (still_fails(config, rule, NULL)) {
            return;
        }
    }
    *limit = before;
}

/* Leaves out ever smaller runs of the faults that struck. */
static void drop_faults(struct sim_config *config, const char *rule, u64 *only)
{
    static struct sim_result result;
    if (!still_fails(config, rule, &result)) {
        return;
    }
    size_t count = result.fault_count;
    memcpy(only, result.faults, count * sizeof(*only));
    config->only = only;
    config->only_count = count;
    if (!still_fails(config, rule, NULL)) {
        config->only = NULL;
        config->only_count = 0;
        return;
    }
    static u64 kept[SIM_FAULTS_MAX];
    for (size_t chunk = (count + 1) / 2; chunk > 0; chunk = chunk == 1 ? 0 : (chunk + 1) / 2) {
        for (size_t at = 0; at < config->only_count;) {
            size_t before = config->only_count;
            size_t gone = chunk < before - at ? chunk : before - at;
            memcpy(kept, only, before * sizeof(*kept));
            memmove(only + at, only + at + gone, (before - at - gone) * sizeof(*only));
            config->only_count = before - gone;
            if (!still_fails(config, rule, NULL)) {
                memcpy(only, kept, before * sizeof(*kept));
                config->only_count = before;
                at += chunk;
            }
        }
    }
}

void sim_minimise(struct sim_config *config, const char *rule, u64 *only)
{
    tries = 0;
    drop_faults(config, rule, only);
    drop_bits(config, rule, &config->parts_off, SIM_PART_COUNT);
    lower(config, rule, &config->batches_max, 8);
    lower(config, rule, &config->producers_max, 3);
    lower(config, rule, &config->rollers_max, 3);
    lower(config, rule, &config->intakes_max, 3);
    drop_faults(config, rule, only);
}

void sim_print_command(const struct sim_config *config)
{
    (void)printf("  again: lhbox_sim replay %llu", (unsigned long long)config->seed);
    if (config->planted != 0) {
        (void)printf(" --planted=%d", config->planted);
    }
    for (i32 i = 0; i < SIM_PART_COUNT; i++) {
        if ((config->parts_off & (1U << i)) != 0) {
            (void)printf(" --without=%s", sim_part_name((enum sim_part)i));
        }
    }
    const struct {
        const char *name;
        i32 value;
    } limits[] = {{"batches", config->batches_max},
                  {"producers", config->producers_max},
                  {"rollers", config->rollers_max},
                  {"intakes", config->intakes_max}};
    for (size_t i = 0; i < ARRAY_COUNT(limits); i++) {
        if (limits[i].value >= 0) {
            (void)printf(" --%s=%d", limits[i].name, limits[i].value);
        }
    }
    if (config->only != NULL) {
        (void)printf(" --only=none");
    }
    for (size_t i = 0; i < config->only_count; i++) {
        (void)printf(" --only=%llx", (unsigned long long)config->only[i]);
    }
    (void)printf("\n");
}
