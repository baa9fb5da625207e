#include "sim.h"

#include "base/assert.h"
#include "base/log.h"

#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

int main(int argc, char **argv)
{
    (void)mallopt(M_MMAP_THRESHOLD, 64 * MIB);
    (void)mallopt(M_TRIM_THRESHOLD, 256 * MIB);
    log_init(seam_system(), (enum log_level)(LOG_ERROR + 1));
    u64 from = argc > 1 ? strtoull(argv[1], NULL, 10) : 1;
    u64 count = argc > 2 ? strtoull(argv[2], NULL, 10) : 1;
    bool trace = argc > 3;
    i64 steps = 0, commits = 0, acks = 0;
    for (u64 seed = from; seed < from + count; seed++) {
        struct sim_config config = {.seed = seed, .producers_max = -1, .intakes_max = -1, .rollers_max = -1, .batches_max = -1, .trace = trace};
        static struct sim_result result;
        sim_run(&config, &result);
        steps += result.steps; commits += result.commits; acks += result.acknowledged;
        if (result.failed) {
            printf("seed %llu: %s: %s\n", (unsigned long long)seed, result.violation.rule, result.violation.text);
        }
    }
    printf("steps %lld commits %lld acks %lld\n", (long long)steps, (long long)commits, (long long)acks);
    return 0;
}
