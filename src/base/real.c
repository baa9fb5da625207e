#include "base/real.h"

#include "base/assert.h"

/* ---- the two formats ---- */

struct real_format {
    i32 bits;         /* of the mantissa as stored */
    i32 exponent_min; /* of the bias */
    i32 exponent_end; /* as stored, of infinity */
    i32 ten_min;      /* 19 digits x 10^less are zero */
    i32 ten_max;      /* one digit x 10^more is infinity */
    i32 even_min;     /* powers of ten with which a product of 64 bits can lie */
    i32 even_max;     /* halfway between two numbers */
    u64 sign;
};

static const struct real_format format_double = {52,  -1023, 0x7ff, -342,
                                                 308, -4,    23,    UINT64_C(1) << 63};
static const struct real_format format_float = {23, -127, 0xff, -65,
                                                38, -17,  10,   UINT64_C(1) << 31};

/* A number in its format without its sign, or that it could not be told. */
struct real_bits {
    bool told;
    u64 bits;
};

static u64 bits_infinite(const struct real_format *format)
{
    return (u64)format->exponent_end << format->bits;
}

/* ---- by a product of 128 bits ---- */

enum { POWER_MIN = -342, POWER_MAX = 308 };

static const u64 powers[POWER_MAX - POWER_MIN + 1][2] = {
#define X(high, low) {UINT64_C(high), UINT64_C(low)},
#include "base/real_powers.def"
#undef X
};

/* The upper 128 bits of w x 5^q; the lowest of them can be too small by one where all bits below
 * the wanted ones are set. */
static u128 product_of(u64 w, i32 q, i32 wanted)
{
    const u64 *power = powers[q - POWER_MIN];
    u128 product = (u128)w * power[0];
    u64 below = UINT64_MAX >> wanted;
    if (((u64)(product >> 64) & below) == below) {
        product += (u64)(((u128)w * power[1]) >> 64);
    }
    return product;
}

/* Rounds m, which has one bit more than is stored with the leading one, and puts it together. */
static u64 bits_round(const struct real_format *format, u64 m, i32 exponent)
{
    m = (m + (m & 1)) >> 1;
    if (m >= UINT64_C(2) << format->bits) {
        m = UINT64_C(1) << format->bits;
        exponent++;
    }
    m &= ~(UINT64_C(1) << format->bits);
    return exponent >= format->exponent_end ? bits_infinite(format)
                                            : (u64)exponent << format->bits | m;
}

/* Below the normal numbers the leading one is stored, too. */
static u64 bits_round_small(u64 m, i32 exponent)
{
    if (1 - exponent >= 64) {
        return 0;
    }
    m >>= 1 - exponent;
    return (m + (m & 1)) >> 1;
}

/* D. Lemire, Number parsing at a gigabyte per second, algorithm 1. */
static struct real_bits bits_of_product(const struct real_format *format, u64 w, i64 ten)
{
    if (w == 0 || ten < format->ten_min) {
        return (struct real_bits){true, 0};
    }
    if (ten > format->ten_max) {
        return (struct real_bits){true, bits_infinite(format)};
    }
    i32 q = (i32)ten;
    i32 zeros = __builtin_clzll(w);
    u128 product = product_of(w << zeros, q, format->bits + 3);
    u64 high = (u64)(product >> 64);
    u64 low = (u64)product;
    if (low == UINT64_MAX && (q < -27 || q > 55)) {
        return (struct real_bits){false, 0};
    }
    i32 upper = (i32)(high >> 63);
    i32 shift = upper + 64 - format->bits - 3;
    u64 m = high >> shift;
    i32 exponent = ((217706 * q) >> 16) + 63 + upper - zeros - format->exponent_min;
    if (exponent <= 0) {
        return (struct real_bits){true, bits_round_small(m, exponent)};
    }
    bool halfway = low <= 1 && q >= format->even_min && q <= format->even_max && (m & 3) == 1 &&
                   m << shift == high;
    return (struct real_bits){true, bits_round(format, halfway ? m & ~UINT64_C(1) : m, exponent)};
}

/* ---- by exact division ---- */

enum {
    LIMBS_MAX = 256,        /* 8192 bits */
    EXACT_DIGITS_MAX = 800, /* no point between two doubles has more; beyond, any digit is alike */
    EXACT_TEN_MAX = 1400,
};

/* A natural number, its lowest limb first. */
struct natural {
    u32 limbs[LIMBS_MAX];
    i32 count;
};

static void natural_scale(struct natural *number, u32 factor, u32 more)
{
    u64 carry = more;
    for (i32 i = 0; i < number->count; i++) {
        carry += (u64)number->limbs[i] * factor;
        number->limbs[i] = (u32)carry;
        carry >>= 32;
    }
    if (carry > 0) {
        assert(number->count < LIMBS_MAX);
        number->limbs[number->count++] = (u32)carry;
    }
}

static void natural_times_ten(struct natural *number, i64 power)
{
    assert(power <= EXACT_TEN_MAX);
    for (i64 i = 0; i < power; i++) {
        natural_scale(number, 10, 0);
    }
}

static i32 natural_bits(const struct natural *number)
{
    i32 count = number->count;
    return count == 0 ? 0 : 32 * count - __builtin_clz(number->limbs[count - 1]);
}

static void natural_shift(struct natural *number, i32 bits)
{
    i32 limbs = bits / 32;
    assert(number->count + limbs <= LIMBS_MAX);
    if (number->count > 0 && limbs > 0) {
        memmove(number->limbs + limbs, number->limbs, (size_t)number->count * sizeof(u32));
        memset(number->limbs, 0, (size_t)limbs * sizeof(u32));
        number->count += limbs;
    }
    natural_scale(number, UINT32_C(1) << (bits % 32), 0);
}

static bool natural_less(const struct natural *a, const struct natural *b)
{
    if (a->count != b->count) {
        return a->count < b->count;
    }
    for (i32 i = a->count - 1; i >= 0; i--) {
        if (a->limbs[i] != b->limbs[i]) {
            return a->limbs[i] < b->limbs[i];
        }
    }
    return false;
}

/* a is no less than b. */
static void natural_subtract(struct natural *a, const struct natural *b)
{
    i64 borrow = 0;
    for (i32 i = 0; i < a->count; i++) {
        i64 difference = (i64)a->limbs[i] - (i < b->count ? b->limbs[i] : 0) - borrow;
        borrow = difference < 0 ? 1 : 0;
        a->limbs[i] = (u32)difference;
    }
    while (a->count > 0 && a->limbs[a->count - 1] == 0) {
        a->count--;
    }
}

/* The quotient of `bits` bits; *a becomes what tells whether there was a rest. */
static u64 natural_divide(struct natural *a, struct natural *b, i32 bits)
{
    natural_shift(b, bits - 1);
    u64 quotient = 0;
    for (i32 i = 0; i < bits; i++) {
        quotient <<= 1;
        if (!natural_less(a, b)) {
            natural_subtract(a, b);
            quotient |= 1;
        }
        natural_shift(a, 1);
    }
    return quotient;
}

/* quotient x 2^exponent, and a rest, rounded to the format; the quotient has at least two bits more
 * than are stored. */
static u64 bits_of_quotient(const struct real_format *format, u64 quotient, bool rest, i32 exponent)
{
    i32 least = format->exponent_min + 1 - format->bits; /* of the smallest number */
    i32 cut = 64 - __builtin_clzll(quotient) - (format->bits + 1);
    cut = exponent + cut < least ? least - exponent : cut;
    if (cut > 63) {
        return 0;
    }
    u64 half = UINT64_C(1) << (cut - 1);
    u64 below = quotient & (2 * half - 1);
    u64 m = quotient >> cut;
    m += below > half || (below == half && (rest || (m & 1) != 0)) ? 1 : 0;
    if (m >> format->bits == 0) {
        return m;
    }
    if (m == UINT64_C(2) << format->bits) {
        m >>= 1;
        cut++;
    }
    i32 stored = exponent + cut - least + 1;
    return stored >= format->exponent_end
               ? bits_infinite(format)
               : ((u64)stored << format->bits) + (m - (UINT64_C(1) << format->bits));
}

/* `more`: there are digits after those of the number. */
static u64 bits_exact(const struct real_format *format, struct natural *digits, i64 ten, bool more)
{
    if (digits->count == 0 || ten < -EXACT_TEN_MAX) {
        return 0;
    }
    if (ten > POWER_MAX + 1) {
        return bits_infinite(format);
    }
    struct natural divisor = {.limbs = {1}, .count = 1};
    natural_times_ten(digits, num_max_i64(ten, 0));
    natural_times_ten(&divisor, num_max_i64(-ten, 0));
    i32 wanted = format->bits + 4;
    i32 exponent = natural_bits(digits) - natural_bits(&divisor) - wanted + 1;
    if (exponent < 0) {
        natural_shift(digits, -exponent);
    } else {
        natural_shift(&divisor, exponent);
    }
    u64 quotient = natural_divide(digits, &divisor, wanted);
    return bits_of_quotient(format, quotient, more || digits->count > 0, exponent);
}

static u64 bits_exact_of_mantissa(const struct real_format *format, u64 mantissa, i32 ten)
{
    struct natural digits = {.limbs = {(u32)mantissa, (u32)(mantissa >> 32)}, .count = 2};
    digits.count -= mantissa >> 32 == 0 ? 1 : 0;
    return bits_exact(format, &digits, ten, false);
}

/* ---- text ---- */

enum { MANTISSA_DIGITS_MAX = 19 };

/* mantissa x 10^ten, and, where it is cut, less than one more in the mantissa. */
struct real_parts {
    str digits; /* and at most one point */
    u64 mantissa;
    i32 count; /* of the mantissa's digits, zeros before the first other digit left out */
    bool cut;
    bool negative;
    i32 written; /* of real_written_exponent */
    i64 ten;
};

i32 real_written_exponent(str text)
{
    bool negative = str_starts(text, STR("-"));
    i32 value = 0;
    for (size_t i = 0; i < text.size && value <= REAL_WRITTEN_MAX; i++) {
        if (text.data[i] >= '0' && text.data[i] <= '9') {
            value = value * 10 + (text.data[i] - '0');
        }
    }
    value = value > REAL_WRITTEN_MAX ? REAL_WRITTEN_MAX + 1 : value;
    return negative ? -value : value;
}

static struct real_parts parts_of(str text)
{
    struct real_parts parts = {.negative = str_starts(text, STR("-"))};
    i64 ten = 0;
    bool after_point = false;
    size_t start = parts.negative ? 1 : 0;
    size_t i = start;
    for (; i < text.size && (text.data[i] | 0x20) != 'e'; i++) {
        if (text.data[i] == '.') {
            after_point = true;
            continue;
        }
        ten -= after_point ? 1 : 0;
        if (parts.count == MANTISSA_DIGITS_MAX) {
            parts.cut = parts.cut || text.data[i] != '0';
            ten++;
            continue;
        }
        parts.mantissa = parts.mantissa * 10 + (u64)(text.data[i] - '0');
        parts.count += parts.mantissa > 0 ? 1 : 0;
    }
    parts.digits = str_slice(text, start, i);
    parts.written = real_written_exponent(str_slice(text, i < text.size ? i + 1 : i, text.size));
    parts.ten = ten + parts.written;
    return parts;
}

static u64 bits_exact_of_parts(const struct real_format *format, const struct real_parts *parts)
{
    struct natural digits = {.count = 0};
    i32 count = 0;
    i64 ten = 0;
    bool more = false;
    bool after_point = false;
    for (size_t i = 0; i < parts->digits.size; i++) {
        char byte = parts->digits.data[i];
        if (byte == '.') {
            after_point = true;
            continue;
        }
        ten -= after_point ? 1 : 0;
        if (count == EXACT_DIGITS_MAX) {
            more = more || byte != '0';
            ten++;
            continue;
        }
        natural_scale(&digits, 10, (u32)(byte - '0'));
        count += digits.count > 0 ? 1 : 0;
    }
    return bits_exact(format, &digits, ten + parts->written, more);
}

static u64 bits_of_parts(const struct real_format *format, const struct real_parts *parts)
{
    if (parts->count == 0 || parts->written < -REAL_WRITTEN_MAX) {
        return 0;
    }
    if (parts->written > REAL_WRITTEN_MAX) {
        return bits_infinite(format);
    }
    struct real_bits least = bits_of_product(format, parts->mantissa, parts->ten);
    struct real_bits most = parts->cut ? bits_of_product(format, parts->mantissa + 1, parts->ten)
                                       : least;
    bool told = least.told && most.told && least.bits == most.bits;
    return told ? least.bits : bits_exact_of_parts(format, parts);
}

static u64 bits_of_exact_text(const struct real_format *format, const struct real_parts *parts)
{
    if (parts->written < -REAL_WRITTEN_MAX || parts->count == 0) {
        return 0;
    }
    return parts->written > REAL_WRITTEN_MAX ? bits_infinite(format)
                                             : bits_exact_of_parts(format, parts);
}

/* ---- what is given out ---- */

static bool give_double(u64 bits, bool negative, double *out_value)
{
    u64 value = negative ? bits | format_double.sign : bits;
    memcpy(out_value, &value, sizeof(*out_value));
    return bits != bits_infinite(&format_double);
}

static bool give_float(u64 bits, bool negative, float *out_value)
{
    u32 value = (u32)(negative ? bits | format_float.sign : bits);
    memcpy(out_value, &value, sizeof(*out_value));
    return bits != bits_infinite(&format_float);
}

bool real_parse_double(str text, double *out_value)
{
    struct real_parts parts = parts_of(text);
    return give_double(bits_of_parts(&format_double, &parts), parts.negative, out_value);
}

bool real_parse_float(str text, float *out_value)
{
    struct real_parts parts = parts_of(text);
    return give_float(bits_of_parts(&format_float, &parts), parts.negative, out_value);
}

bool real_exact_double(str text, double *out_value)
{
    struct real_parts parts = parts_of(text);
    return give_double(bits_of_exact_text(&format_double, &parts), parts.negative, out_value);
}

bool real_exact_float(str text, float *out_value)
{
    struct real_parts parts = parts_of(text);
    return give_float(bits_of_exact_text(&format_float, &parts), parts.negative, out_value);
}

const double real_tens[23] = {1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,
                              1e8,  1e9,  1e10, 1e11, 1e12, 1e13, 1e14, 1e15,
                              1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22};

bool real_double_of_any(u64 mantissa, i32 exponent, double *out_value)
{
    struct real_bits found = bits_of_product(&format_double, mantissa, exponent);
    u64 bits = found.told ? found.bits : bits_exact_of_mantissa(&format_double, mantissa, exponent);
    return give_double(bits, false, out_value);
}

bool real_float(u64 mantissa, i32 exponent, float *out_value)
{
    struct real_bits found = bits_of_product(&format_float, mantissa, exponent);
    u64 bits = found.told ? found.bits : bits_exact_of_mantissa(&format_float, mantissa, exponent);
    return give_float(bits, false, out_value);
}
