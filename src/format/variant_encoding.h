/* variant_encoding: the numbers of the variant encoding (Parquet format, VariantEncoding.md), for
 * its writer and its reader alone. */
#ifndef LHBOX_FORMAT_VARIANT_ENCODING_H
#define LHBOX_FORMAT_VARIANT_ENCODING_H

enum {
    /* The metadata's first byte. */
    VARIANT_VERSION = 1,
    VARIANT_META_VERSION_MASK = 0x0F,
    VARIANT_META_SORTED = 0x10,
    VARIANT_META_WIDTH_SHIFT = 6,

    /* Basic types, the two lowest bits of a value's first byte. */
    VARIANT_BASIC_PRIMITIVE = 0,
    VARIANT_BASIC_SHORT_STRING = 1,
    VARIANT_BASIC_OBJECT = 2,
    VARIANT_BASIC_ARRAY = 3,

    /* Primitive types, the other six bits. */
    VARIANT_NULL = 0,
    VARIANT_TRUE = 1,
    VARIANT_FALSE = 2,
    VARIANT_INT8 = 3,
    VARIANT_INT16 = 4,
    VARIANT_INT32 = 5,
    VARIANT_INT64 = 6,
    VARIANT_DOUBLE = 7,
    VARIANT_DECIMAL4 = 8,
    VARIANT_DECIMAL8 = 9,
    VARIANT_DECIMAL16 = 10,
    VARIANT_STRING = 16,
};

#endif
