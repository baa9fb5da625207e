/* fuzz: what a harness offers to libFuzzer and to replay.c. A harness aborts (base/assert) when
 * a promise is broken; it never fails quietly. */
#ifndef LHBOX_FUZZ_H
#define LHBOX_FUZZ_H

#include <stddef.h>
#include <stdint.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#endif
