#include "sink/reject.h"

#include "base/assert.h"
#include "base/base64.h"
#include "base/utf8.h"
#include "format/json.h"
#include "io/crypto.h"

#define ELLIPSIS "\xE2\x80\xA6"

str reject_reason_text(enum reject_reason reason)
{
    static const str texts[REJECT_REASON_COUNT] = {
#define X(name, text) [REJECT_##name] = STR_INIT(text),
#include "sink/reject_reasons.def"
#undef X
    };
    assert(reason < REJECT_REASON_COUNT);
    return texts[reason];
}

/* Text with each surrogate, three bytes ED A0..BF xx, as U+FFFD: any reader takes that. The size
 * stays the same. */
static void reject_make_readable(char *text, size_t size)
{
    for (size_t i = 0; i + 2 < size; i++) {
        if ((u8)text[i] == 0xED && (u8)text[i + 1] >= 0xA0) {
            memcpy(text + i, "\xEF\xBF\xBD", 3);
        }
    }
}

/* A path: readable, at most REJECT_COLUMN_BYTES_MAX bytes and then an ellipsis; or null. */
static void reject_append_path(buf *out, str path)
{
    if (path.data == NULL) {
        buf_append(out, STR("null"));
        return;
    }
    /* Three bytes more than are shown, so that what is cut off can be seen to be a whole
     * character. */
    char text[REJECT_COLUMN_BYTES_MAX + 3 + sizeof(ELLIPSIS)];
    size_t size = path.size < REJECT_COLUMN_BYTES_MAX + 3 ? path.size : REJECT_COLUMN_BYTES_MAX + 3;
    if (size > 0) {
        memcpy(text, path.data, size);
    }
    reject_make_readable(text, size);
    if (path.size > REJECT_COLUMN_BYTES_MAX) {
        size = REJECT_COLUMN_BYTES_MAX;
        while (size > 0 && ((u8)text[size] & 0xC0) == 0x80) {
            size--;
        }
        memcpy(text + size, ELLIPSIS, sizeof(ELLIPSIS) - 1);
        size += sizeof(ELLIPSIS) - 1;
    }
    buf_append_json_string(out, (str){text, size});
}

static void reject_append_also(buf *out, const struct reject_row *row)
{
    if (row->hit_count == 1) {
        buf_append(out, STR(",\"also\":[]"));
        return;
    }
    buf_append(out, STR(",\"also\":["));
    for (size_t i = 1; i < row->hit_count && i <= REJECT_ALSO_MAX; i++) {
        if (i > 1) {
            buf_append_byte(out, ',');
        }
        buf_append(out, STR("{\"column\":"));
        reject_append_path(out, row->hits[i].column);
        buf_append(out, STR(",\"reason\":\""));
        buf_append(out, reject_reason_text(row->hits[i].reason));
        buf_append(out, STR("\"}"));
    }
    buf_append_byte(out, ']');
}

/* Whether any JSON reader takes the bytes: JSON, UTF-8, and no half of a surrogate pair (one such
 * line makes a whole file unreadable to DuckDB's read_json). */
static bool reject_is_plain(const struct reject_row *row)
{
    str data = row->data;
    if (row->is_json) {
        return !json_has_lone_surrogate(data);
    }
    if (!utf8_valid(data)) {
        return false;
    }
    struct json_reader reader;
    json_reader_init(&reader, data);
    enum json_token token;
    do {
        token = json_next(&reader);
    } while (token != JSON_TOKEN_END && token != JSON_TOKEN_INVALID);
    return token == JSON_TOKEN_END && !json_has_lone_surrogate(data);
}

/* CR and LF stand only between tokens; on one line they are spaces. */
static void reject_append_one_line(buf *out, str data)
{
    size_t start = out->size;
    buf_append(out, data);
    if (!buf_ok(out)) {
        return;
    }
    if (memchr(data.data, '\r', data.size) == NULL && memchr(data.data, '\n', data.size) == NULL) {
        return;
    }
    for (char *at = out->data + start; at < out->data + out->size; at++) {
        if (*at == '\r' || *at == '\n') {
            *at = ' ';
        }
    }
}

static void reject_append_data(buf *out, const struct reject_row *row)
{
    str data = row->data;
    if (data.data == NULL) {
        buf_append(out, STR(",\"data\":null"));
    } else if (reject_is_plain(row)) {
        buf_append(out, STR(",\"data\":"));
        reject_append_one_line(out, data);
    } else {
        buf_append(out, STR(",\"data_base64\":\""));
        base64_encode(out, data);
        buf_append_byte(out, '"');
    }
}

static void reject_append_number(buf *out, str name, i64 value)
{
    buf_append(out, name);
    if (value < 0) {
        buf_append(out, STR("null"));
    } else {
        buf_append_i64(out, value);
    }
}

void reject_record(buf *out, const struct reject_batch *batch, const struct reject_row *row)
{
    assert(row->hit_count > 0);
    const struct reject_hit *first = &row->hits[0];
    char received_at[TIME_TEXT_SIZE];

    buf_append(out, STR("{\"batch_id\":"));
    buf_append_json_string(out, batch->batch_id);
    reject_append_number(out, STR(",\"row\":"), row->row);
    buf_append(out, STR(",\"reason\":\""));
    buf_append(out, reject_reason_text(first->reason));
    buf_append(out, STR("\",\"column\":"));
    reject_append_path(out, first->column);
    buf_append(out, STR(",\"detail\":"));
    buf_append_json_string(out, first->detail);
    if (row->did_you_mean.data != NULL) {
        buf_append(out, STR(",\"did_you_mean\":"));
        reject_append_path(out, row->did_you_mean);
    }
    reject_append_also(out, row);
    buf_append(out, STR(",\"received_at\":\""));
    buf_append(out, time_format(batch->received_at, received_at));
    reject_append_number(out, STR("\",\"schema_id\":"), batch->schema_id);
    reject_append_number(out, STR(",\"mapping_version\":"), batch->mapping_version);
    reject_append_data(out, row);
    buf_append(out, STR("}\n"));
}

str reject_hash(struct arena *arena, str bytes)
{
    struct sha256 hash = crypto_sha256(bytes);
    buf text = buf_create(arena, 2 * sizeof(hash.bytes), 2 * sizeof(hash.bytes));
    base64_hex(&text, (str){(const char *)hash.bytes, sizeof(hash.bytes)});
    return buf_ok(&text) ? buf_str(&text) : (str){NULL, 0};
}
