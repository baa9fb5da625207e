#include "base/id.h"

#include "base/arena.h"
#include "base/assert.h"
#include "base/base64.h"

static const char base32_lower[] = "0123456789abcdefghjkmnpqrstvwxyz";
static const char base32_upper[] = "0123456789ABCDEFGHJKMNPQRSTVWXYZ";
static const char hex_lower[] = "0123456789abcdef";

/* `count` digits of 5 bits each, from bit `skip` of the bytes on. */
static void base32_put(const u8 *bytes, size_t skip, size_t count, const char *alphabet, char *out)
{
    for (size_t i = 0; i < count; i++) {
        u32 digit = 0;
        for (size_t bit = skip + i * 5; bit < skip + i * 5 + 5; bit++) {
            digit = digit << 1 | ((u32)bytes[bit / 8] >> (7 - bit % 8) & 1);
        }
        out[i] = alphabet[digit];
    }
}

void id_base32_26(const u8 bytes[17], char out[ID_UID_SIZE])
{
    base32_put(bytes, 0, ID_UID_SIZE, base32_lower, out);
}

struct uid id_uid_make(const struct seam *seam)
{
    u8 bytes[17] = {0};
    seam_random(seam, bytes, 16);
    struct uid uid = {{0}};
    id_base32_26(bytes, uid.text);
    return uid;
}

static bool is_in(str text, const char *alphabet)
{
    for (size_t i = 0; i < text.size; i++) {
        if (text.data[i] == '\0' || strchr(alphabet, text.data[i]) == NULL) {
            return false;
        }
    }
    return true;
}

bool id_uid_parse(str text, struct uid *out_uid)
{
    if (text.size != ID_UID_SIZE || !is_in(text, base32_lower)) {
        return false;
    }
    memcpy(out_uid->text, text.data, ID_UID_SIZE);
    return true;
}

struct uuid id_uuid_make(const struct seam *seam)
{
    struct uuid uuid = {{0}};
    seam_random(seam, uuid.bytes, sizeof(uuid.bytes));
    uuid.bytes[6] = (u8)((uuid.bytes[6] & 0x0f) | 0x40);
    uuid.bytes[8] = (u8)((uuid.bytes[8] & 0x3f) | 0x80);
    return uuid;
}

static int hex_value(char digit)
{
    if (digit >= '0' && digit <= '9') {
        return digit - '0';
    }
    char lower = (char)(digit | 0x20);
    return lower >= 'a' && lower <= 'f' ? lower - 'a' + 10 : -1;
}

static bool is_dash_place(size_t place)
{
    return place == 8 || place == 13 || place == 18 || place == 23;
}

bool id_uuid_parse(str text, struct uuid *out_uuid)
{
    if (text.size != ID_UUID_SIZE) {
        return false;
    }
    struct uuid uuid = {{0}};
    size_t digits = 0;
    for (size_t i = 0; i < text.size; i++) {
        if (is_dash_place(i)) {
            if (text.data[i] != '-') {
                return false;
            }
            continue;
        }
        int value = hex_value(text.data[i]);
        if (value < 0) {
            return false;
        }
        u8 *byte = &uuid.bytes[digits / 2];
        *byte = (u8)(*byte << 4 | value);
        digits++;
    }
    *out_uuid = uuid;
    return true;
}

static void hex_put(const u8 *bytes, size_t count, char *out)
{
    for (size_t i = 0; i < count; i++) {
        out[i] = hex_lower[i % 2 == 0 ? bytes[i / 2] >> 4 : bytes[i / 2] & 15];
    }
}

str id_uuid_format(struct uuid uuid, char out[ID_UUID_SIZE])
{
    char digits[32];
    hex_put(uuid.bytes, sizeof(digits), digits);
    size_t next = 0;
    for (size_t i = 0; i < ID_UUID_SIZE; i++) {
        out[i] = is_dash_place(i) ? '-' : digits[next++];
    }
    return (str){out, ID_UUID_SIZE};
}

str id_ulid_make(const struct seam *seam, char out[ID_ULID_SIZE])
{
    u64 milliseconds = (u64)seam_now(seam) / 1000;
    u8 bytes[17] = {0};
    for (size_t i = 0; i < 6; i++) {
        bytes[i] = (u8)(milliseconds >> (8 * (5 - i)));
    }
    seam_random(seam, bytes + 6, 10);
    /* 26 digits hold 130 bits: two zero bits stand before the 128. */
    u8 shifted[17] = {0};
    for (size_t i = 0; i < 17; i++) {
        shifted[i] = (u8)(bytes[i] >> 2 | (i > 0 ? bytes[i - 1] << 6 : 0));
    }
    base32_put(shifted, 0, ID_ULID_SIZE, base32_upper, out);
    return (str){out, ID_ULID_SIZE};
}

enum { SHORT_PREFIX_SIZE = 4, PUBLIC_ID_SIZE = 12, KEY_CHECKSUM_SIZE = 6, KEY_RANDOM_SIZE = 32 };

str id_short_make(struct arena *arena, const struct seam *seam, const char *prefix)
{
    assert(strlen(prefix) == SHORT_PREFIX_SIZE);
    char text[ID_SHORT_SIZE];
    memcpy(text, prefix, SHORT_PREFIX_SIZE);
    u8 bytes[PUBLIC_ID_SIZE / 2];
    seam_random(seam, bytes, sizeof(bytes));
    hex_put(bytes, PUBLIC_ID_SIZE, text + SHORT_PREFIX_SIZE);
    return str_copy(arena, (str){text, sizeof(text)});
}

static str key_prefix(enum id_key_kind kind)
{
    switch (kind) {
    case ID_KEY_API:
        return STR("al_key_");
    case ID_KEY_SEND:
        return STR("al_send_");
    case ID_KEY_TOKEN:
        return STR("al_tok_");
    }
    return STR("");
}

/* CRC-32 of RFC 1952. Keys are short, so bit by bit is enough. */
static u32 crc32_of(str bytes)
{
    u32 crc = 0xffffffffU;
    for (size_t i = 0; i < bytes.size; i++) {
        crc ^= (u8)bytes.data[i];
        for (int bit = 0; bit < 8; bit++) {
            crc = (crc >> 1) ^ (0xedb88320U & (0U - (crc & 1U)));
        }
    }
    return ~crc;
}

/* A buffer over `room` bytes at `out` that cannot grow. */
static buf fixed_buf(char *out, size_t room)
{
    return (buf){.data = out, .capacity = room, .size_max = room};
}

static void key_checksum(str before, char out[KEY_CHECKSUM_SIZE])
{
    u32 crc = crc32_of(before);
    char bytes[4] = {(char)(u8)(crc >> 24), (char)(u8)(crc >> 16), (char)(u8)(crc >> 8),
                     (char)(u8)crc};
    buf text = fixed_buf(out, KEY_CHECKSUM_SIZE);
    base64_encode_url(&text, (str){bytes, sizeof(bytes)});
    assert(buf_ok(&text) && text.size == KEY_CHECKSUM_SIZE);
}

str id_key_make(struct arena *arena, const struct seam *seam, enum id_key_kind kind)
{
    u8 public_bytes[PUBLIC_ID_SIZE / 2];
    char secret_bytes[KEY_RANDOM_SIZE];
    char public_text[PUBLIC_ID_SIZE];
    seam_random(seam, public_bytes, sizeof(public_bytes));
    seam_random(seam, secret_bytes, sizeof(secret_bytes));
    hex_put(public_bytes, PUBLIC_ID_SIZE, public_text);

    char room[ID_KEY_SIZE_MAX];
    buf text = fixed_buf(room, sizeof(room));
    buf_append(&text, key_prefix(kind));
    buf_append_bytes(&text, public_text, sizeof(public_text));
    buf_append_byte(&text, '_');
    base64_encode_url(&text, (str){secret_bytes, sizeof(secret_bytes)});
    assert(buf_ok(&text));

    size_t checked = text.size - KEY_CHECKSUM_SIZE;
    key_checksum((str){room, checked}, room + checked);
    str key = str_copy(arena, buf_str(&text));
    explicit_bzero(room, sizeof(room));
    explicit_bzero(secret_bytes, sizeof(secret_bytes));
    return key;
}

static bool key_parse_kind(str text, enum id_key_kind *out_kind)
{
    static const enum id_key_kind kinds[] = {ID_KEY_API, ID_KEY_SEND, ID_KEY_TOKEN};
    for (size_t i = 0; i < ARRAY_COUNT(kinds); i++) {
        if (str_starts(text, key_prefix(kinds[i]))) {
            *out_kind = kinds[i];
            return true;
        }
    }
    return false;
}

bool id_key_parse(str text, struct id_key *out_key)
{
    static const char base64url[] =
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
    enum id_key_kind kind = ID_KEY_API;
    if (!key_parse_kind(text, &kind)) {
        return false;
    }
    size_t prefix = key_prefix(kind).size;
    if (text.size != prefix + PUBLIC_ID_SIZE + 1 + ID_KEY_SECRET_SIZE) {
        return false;
    }
    str public_id = str_slice(text, prefix, prefix + PUBLIC_ID_SIZE);
    str secret = str_slice(text, prefix + PUBLIC_ID_SIZE + 1, text.size);
    if (!is_in(public_id, hex_lower) || text.data[prefix + PUBLIC_ID_SIZE] != '_' ||
        !is_in(secret, base64url)) {
        return false;
    }
    size_t checked = text.size - KEY_CHECKSUM_SIZE;
    char checksum[KEY_CHECKSUM_SIZE];
    key_checksum(str_slice(text, 0, checked), checksum);
    if (memcmp(checksum, text.data + checked, KEY_CHECKSUM_SIZE) != 0) {
        return false;
    }
    *out_key = (struct id_key){.kind = kind, .text = text, .public_id = public_id};
    return true;
}

str id_bearer(str authorization)
{
    str scheme = str_slice(authorization, 0, 7);
    if (!str_equal_ignore_case(scheme, STR("Bearer ")) &&
        !str_equal_ignore_case(scheme, STR("Bearer\t"))) {
        return (str){NULL, 0};
    }
    return str_trim(str_slice(authorization, 7, authorization.size));
}
