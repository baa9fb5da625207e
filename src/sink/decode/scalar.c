#include "sink/decode/scalar.h"

#include "base/assert.h"
#include "base/base64.h"
#include "base/decimal.h"
#include "base/id.h"
#include "base/real.h"

#include <math.h>

static enum decode_fit misfit(enum reject_reason reason, enum reject_reason *out_reason)
{
    *out_reason = reason;
    return DECODE_MISFITS;
}

/* ---- numbers ---- */

/* Up to 18 digits and nothing else but a minus: what nearly all integers look like. */
static bool integer_is_short(str text, i64 *out_value)
{
    size_t start = text.data[0] == '-' ? 1 : 0;
    if (text.size - start > 18) {
        return false;
    }
    i64 value = 0;
    for (size_t i = start; i < text.size; i++) {
        u8 digit = (u8)(text.data[i] - '0');
        if (digit > 9) {
            return false;
        }
        value = value * 10 + digit;
    }
    *out_value = start == 1 ? -value : value;
    return true;
}

static enum decode_fit integer_read(str text, enum type_kind kind, struct decode_scalar *out,
                                    enum reject_reason *out_reason)
{
    i64 value = 0;
    if (!integer_is_short(text, &value)) {
        switch (decimal_parse_i64(text, &value)) {
        case DECIMAL_OK:
            break;
        case DECIMAL_INEXACT:
            return misfit(REJECT_NOT_INTEGRAL, out_reason);
        case DECIMAL_OUT_OF_RANGE:
            return misfit(REJECT_OUT_OF_RANGE, out_reason);
        }
    }
    if (kind == TYPE_LONG) {
        memcpy(out->fixed, &value, sizeof(value));
        return DECODE_FITS;
    }
    if (value < INT32_MIN || value > INT32_MAX) {
        return misfit(REJECT_OUT_OF_RANGE, out_reason);
    }
    i32 narrow = (i32)value;
    memcpy(out->fixed, &narrow, sizeof(narrow));
    return DECODE_FITS;
}

static enum decode_fit double_read(str text, struct decode_scalar *out,
                                   enum reject_reason *out_reason)
{
    double value = 0;
    if (!real_parse_double(text, &value)) {
        return misfit(REJECT_OUT_OF_RANGE, out_reason);
    }
    memcpy(out->fixed, &value, sizeof(value));
    return DECODE_FITS;
}

static enum decode_fit float_read(str text, struct decode_scalar *out,
                                  enum reject_reason *out_reason)
{
    float value = 0;
    if (!real_parse_float(text, &value)) {
        return misfit(REJECT_OUT_OF_RANGE, out_reason);
    }
    memcpy(out->fixed, &value, sizeof(value));
    return DECODE_FITS;
}

static enum decode_fit decimal_read(str text, const struct type *type, struct decode_scalar *out,
                                    enum reject_reason *out_reason)
{
    i128 unscaled = 0;
    switch (decimal_parse(text, type->precision, type->scale, &unscaled)) {
    case DECIMAL_OK:
        memcpy(out->fixed, &unscaled, sizeof(unscaled));
        return DECODE_FITS;
    case DECIMAL_INEXACT:
        return misfit(REJECT_DECIMAL_SCALE, out_reason);
    case DECIMAL_OUT_OF_RANGE:
        break;
    }
    return misfit(REJECT_OUT_OF_RANGE, out_reason);
}

/* `text` has JSON's number form. */
static enum decode_fit number_read(const struct type *type, str text, struct decode_scalar *out,
                                   enum reject_reason *out_reason)
{
    if (type->kind == TYPE_INT || type->kind == TYPE_LONG) {
        return integer_read(text, type->kind, out, out_reason);
    }
    if (type->kind == TYPE_DOUBLE) {
        return double_read(text, out, out_reason);
    }
    if (type->kind == TYPE_FLOAT) {
        return float_read(text, out, out_reason);
    }
    if (type->kind == TYPE_DECIMAL) {
        return decimal_read(text, type, out, out_reason);
    }
    return misfit(REJECT_WRONG_TYPE, out_reason);
}

/* NaN and the infinities have a string form only. */
static bool special_read(enum type_kind kind, str text, struct decode_scalar *out)
{
    double value = 0;
    if (str_equal(text, STR("NaN"))) {
        value = (double)NAN;
    } else if (str_equal(text, STR("Infinity"))) {
        value = (double)INFINITY;
    } else if (str_equal(text, STR("-Infinity"))) {
        value = (double)-INFINITY;
    } else {
        return false;
    }
    float narrow = (float)value;
    if (kind == TYPE_DOUBLE) {
        memcpy(out->fixed, &value, sizeof(value));
    } else {
        memcpy(out->fixed, &narrow, sizeof(narrow));
    }
    return true;
}

static enum decode_fit number_text_read(const struct type *type, str text,
                                        struct decode_scalar *out, enum reject_reason *out_reason)
{
    bool integral = type->kind == TYPE_INT || type->kind == TYPE_LONG;
    bool floating = type->kind == TYPE_FLOAT || type->kind == TYPE_DOUBLE;
    if (floating && special_read(type->kind, text, out)) {
        return DECODE_FITS;
    }
    if (integral ? !decode_is_integer(text) : !decode_is_number(text)) {
        return misfit(REJECT_BAD_NUMBER, out_reason);
    }
    return number_read(type, text, out, out_reason);
}

/* ---- strings ---- */

static enum decode_fit time_read(enum type_kind kind, str text, struct decode_scalar *out,
                                 enum reject_reason *out_reason)
{
    i64 units = 0;
    i32 days = 0;
    if (kind == TYPE_DATE) {
        enum decode_fit fit = decode_date(text, &days, out_reason);
        memcpy(out->fixed, &days, sizeof(days));
        return fit;
    }
    enum decode_fit fit = kind == TYPE_TIME ? decode_time(text, &units, out_reason)
                                            : decode_timestamp(text, kind, &units, out_reason);
    memcpy(out->fixed, &units, sizeof(units));
    return fit;
}

static enum decode_fit uuid_read(str text, struct decode_scalar *out,
                                 enum reject_reason *out_reason)
{
    struct uuid uuid;
    if (!id_uuid_parse(text, &uuid)) {
        return misfit(REJECT_BAD_UUID, out_reason);
    }
    memcpy(out->fixed, uuid.bytes, sizeof(uuid.bytes));
    return DECODE_FITS;
}

static enum decode_fit bytes_read(const struct type *type, str text, buf *scratch,
                                  struct decode_scalar *out, enum reject_reason *out_reason)
{
    size_t start = scratch->size;
    if (!base64_decode(scratch, text)) {
        assert(buf_ok(scratch));
        return misfit(REJECT_BAD_BASE64, out_reason);
    }
    out->bytes = str_slice(buf_str(scratch), start, scratch->size);
    if (type->kind == TYPE_FIXED && out->bytes.size != (size_t)type->length) {
        return misfit(REJECT_WRONG_LENGTH, out_reason);
    }
    return DECODE_FITS;
}

static enum decode_fit string_read(const struct type *type, str token, buf *scratch,
                                   struct decode_scalar *out, enum reject_reason *out_reason)
{
    bool lone = false;
    str text = json_unescape(scratch, token, &lone);
    assert(text.data != NULL);
    switch (type->kind) {
    case TYPE_STRING:
        out->bytes = text;
        return lone ? misfit(REJECT_BAD_UNICODE, out_reason) : DECODE_FITS;
    case TYPE_INT:
    case TYPE_LONG:
    case TYPE_FLOAT:
    case TYPE_DOUBLE:
    case TYPE_DECIMAL:
        return number_text_read(type, text, out, out_reason);
    case TYPE_DATE:
    case TYPE_TIME:
    case TYPE_TIMESTAMP:
    case TYPE_TIMESTAMPTZ:
    case TYPE_TIMESTAMP_NS:
    case TYPE_TIMESTAMPTZ_NS:
        return time_read(type->kind, text, out, out_reason);
    case TYPE_UUID:
        return uuid_read(text, out, out_reason);
    case TYPE_FIXED:
    case TYPE_BINARY:
        return bytes_read(type, text, scratch, out, out_reason);
    case TYPE_BOOLEAN:
    case TYPE_UNKNOWN:
    case TYPE_STRUCT:
    case TYPE_LIST:
    case TYPE_MAP:
    case TYPE_VARIANT:
    case TYPE_GEOMETRY:
    case TYPE_GEOGRAPHY:
        break;
    }
    return misfit(REJECT_WRONG_TYPE, out_reason);
}

enum decode_fit decode_scalar_read(const struct type *type, enum json_kind kind, str token,
                                   buf *scratch, struct decode_scalar *out,
                                   enum reject_reason *out_reason)
{
    switch (kind) {
    case JSON_KIND_NUMBER:
        return number_read(type, token, out, out_reason);
    case JSON_KIND_STRING:
        return string_read(type, token, scratch, out, out_reason);
    case JSON_KIND_TRUE:
    case JSON_KIND_FALSE:
        if (type->kind == TYPE_BOOLEAN) {
            out->fixed[0] = kind == JSON_KIND_TRUE;
            return DECODE_FITS;
        }
        break;
    case JSON_KIND_OBJECT:
    case JSON_KIND_ARRAY:
    case JSON_KIND_NULL:
        break;
    }
    return misfit(REJECT_WRONG_TYPE, out_reason);
}
