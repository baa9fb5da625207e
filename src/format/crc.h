/* crc: the CRC-32 of zlib and gzip (IEEE 802.3), sixteen bytes at a time where the processor can.
 *
 * Pure; any thread. */
#ifndef LHBOX_FORMAT_CRC_H
#define LHBOX_FORMAT_CRC_H

#include "base/str.h"

u32 crc_of(str bytes);
u32 crc_portable(str bytes); /* the same */

#endif
