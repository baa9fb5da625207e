/* json_element: a whole object or array, checked in one pass. For format/json_array alone.
 *
 * Says yes to what it is sure of; anything else is for the steps of json_array to judge, and no
 * offset of an error comes from here. Pure. */
#ifndef LHBOX_FORMAT_JSON_ELEMENT_H
#define LHBOX_FORMAT_JSON_ELEMENT_H

#include "base/num.h"

/* `at` is its first byte. Returns the byte behind it, and how many levels it has; NULL: it does not
 * end well before `end`, or is deeper than a few levels, or is no JSON. */
typedef const u8 *json_element_function(const u8 *at, const u8 *end, i32 *out_depth);
json_element_function json_element_portable;
json_element_function json_element_wide; /* AVX2 */

#endif
