/* sim_main: many schedules on several processes, one schedule again, and the least that still
 * fails. */
#ifndef LHBOX_SIM_MAIN_H
#define LHBOX_SIM_MAIN_H

#include "sim.h"

/* A schedule that takes more is killed. Of the processor's seconds, not the wall's: on a busy
 * machine it may stand still for minutes. 0: no limit. */
void sim_limit_processor(i32 seconds);
/* Runs the schedule in a process of its own. A crash or a hang is a violation of the rule "crash".
 */
void sim_try(const struct sim_config *config, struct sim_result *out_result);
/* The same seed with as little as possible around it. `only` has room for SIM_FAULTS_MAX. */
void sim_minimise(struct sim_config *config, const char *rule, u64 *only);
void sim_print_command(const struct sim_config *config);

#endif
