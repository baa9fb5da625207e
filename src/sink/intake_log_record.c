#include "sink/intake_log_record.h"

#include "base/assert.h"

/* The first one had no body_at: no object was shared. */
enum { RECORD_FORMAT_FIRST = 1, RECORD_FORMAT = 2 };

/* ---- printing ---- */

static void put_number(buf *out, u64 value, size_t size)
{
    for (size_t i = 0; i < size; i++) {
        buf_append_byte(out, (u8)(value >> (8 * i)));
    }
}

static void put_text(buf *out, str text)
{
    assert(text.size <= UINT32_MAX);
    put_number(out, text.size, 4);
    buf_append(out, text);
}

static void put_item(buf *out, const struct ledger_accept *item, str rejects)
{
    put_text(out, item->batch_id);
    put_number(out, (u64)item->offset, 8);
    put_number(out, (u64)item->bytes, 8);
    put_number(out, (u64)item->rows, 8);
    put_number(out, (u64)item->refused, 8);
    put_number(out, (u64)item->received_at, 8);
    put_number(out, (u64)item->began_running_us, 8);
    buf_append_bytes(out, item->sha256.bytes, sizeof(item->sha256.bytes));
    buf_append_bytes(out, item->body_hash, sizeof(item->body_hash));
    put_text(out, item->answer);
    put_text(out, item->refused_reasons);
    put_number(out, rejects.size, 4);
}

void intake_log_record_print(buf *out, const struct intake_log_record *record)
{
    assert(record->count > 0);
    assert(record->count <= INTAKE_LOG_BATCHES_MAX);
    put_number(out, RECORD_FORMAT, 1);
    put_number(out, record->kind, 1);
    put_number(out, record->count, 2);
    buf_append(out, id_uid_str(&record->uid));
    put_text(out, record->sink_id);
    put_number(out, (u64)record->body_at, 8);
    if (record->kind == INTAKE_LOG_VOID) {
        for (size_t i = 0; i < record->count; i++) {
            put_number(out, record->voided[i] ? 1 : 0, 1);
        }
        return;
    }
    put_text(out, record->warehouse);
    put_text(out, record->object_key);
    put_number(out, record->body.size, 4);
    for (size_t i = 0; i < record->count; i++) {
        put_item(out, &record->items[i], record->rejects[i]);
    }
}

/* ---- reading ---- */

struct reader {
    str rest;
    bool good;
};

static str take(struct reader *reader, size_t size)
{
    if (!reader->good || reader->rest.size < size) {
        reader->good = false;
        return STR("");
    }
    str taken = str_slice(reader->rest, 0, size);
    reader->rest = str_slice(reader->rest, size, reader->rest.size);
    return taken;
}

static u64 take_number(struct reader *reader, size_t size)
{
    str bytes = take(reader, size);
    u64 value = 0;
    for (size_t i = 0; i < bytes.size; i++) {
        value |= (u64)(u8)bytes.data[i] << (8 * i);
    }
    return value;
}

/* Counts, sizes and times: never negative. */
static i64 take_count(struct reader *reader)
{
    u64 value = take_number(reader, 8);
    reader->good = reader->good && value <= INT64_MAX;
    return reader->good ? (i64)value : 0;
}

static str take_text(struct reader *reader)
{
    return take(reader, (size_t)take_number(reader, 4));
}

static void take_hash(struct reader *reader, u8 *out, size_t size)
{
    str bytes = take(reader, size);
    if (bytes.size == size) {
        memcpy(out, bytes.data, size);
    }
}

/* *rejects_size: of what stands behind the object's body. */
static void take_item(struct reader *reader, struct ledger_accept *item, size_t *rejects_size)
{
    item->batch_id = take_text(reader);
    item->offset = take_count(reader);
    item->bytes = take_count(reader);
    item->rows = take_count(reader);
    item->refused = take_count(reader);
    item->received_at = (i64)take_number(reader, 8);
    item->began_running_us = take_count(reader);
    take_hash(reader, item->sha256.bytes, sizeof(item->sha256.bytes));
    take_hash(reader, item->body_hash, sizeof(item->body_hash));
    item->answer = take_text(reader);
    item->refused_reasons = take_text(reader);
    *rejects_size = (size_t)take_number(reader, 4);
}

static bool segment_fits(const struct ledger_accept *item, i64 body_at, size_t body_size)
{
    u64 size = body_size;
    if (item->rows == 0) {
        return true;
    }
    u64 offset = (u64)(item->offset - body_at);
    return item->offset >= body_at && offset <= size && (u64)item->bytes <= size - offset;
}

static void take_accept(struct reader *reader, struct intake_log_record *record, size_t *sizes)
{
    record->warehouse = take_text(reader);
    record->object_key = take_text(reader);
    size_t body_size = (size_t)take_number(reader, 4);
    for (size_t i = 0; i < record->count && reader->good; i++) {
        struct ledger_accept *item = &record->items[i];
        take_item(reader, item, &sizes[i]);
        item->uid = record->uid;
        item->object_key = item->rows > 0 ? record->object_key : STR("");
        reader->good = reader->good && item->batch_id.size > 0 &&
                       segment_fits(item, record->body_at, body_size);
    }
    record->body = take(reader, body_size);
    for (size_t i = 0; i < record->count; i++) {
        record->rejects[i] = take(reader, sizes[i]);
    }
}

static void take_voids(struct reader *reader, struct intake_log_record *record)
{
    for (size_t i = 0; i < record->count; i++) {
        u64 voided = take_number(reader, 1);
        reader->good = reader->good && voided <= 1;
        record->voided[i] = voided == 1;
    }
}

static err parse_trouble(struct error *error)
{
    return error_set(error, CORRUPT, ERROR_INTERNAL, "a record of the intake log cannot be read");
}

err intake_log_record_parse(struct arena *arena, str bytes, struct intake_log_record *out_record,
                            struct error *error)
{
    struct reader reader = {.rest = bytes, .good = true};
    struct intake_log_record record = {0};
    u64 format = take_number(&reader, 1);
    record.kind = (enum intake_log_kind)take_number(&reader, 1);
    record.count = (size_t)take_number(&reader, 2);
    str uid = take(&reader, ID_UID_SIZE);
    bool known = record.kind == INTAKE_LOG_ACCEPT || record.kind == INTAKE_LOG_VOID;
    bool readable = format == RECORD_FORMAT || format == RECORD_FORMAT_FIRST;
    if (!reader.good || !readable || !known || record.count == 0 ||
        record.count > INTAKE_LOG_BATCHES_MAX || !id_uid_parse(uid, &record.uid)) {
        return parse_trouble(error);
    }
    record.sink_id = take_text(&reader);
    record.body_at = format == RECORD_FORMAT_FIRST ? 0 : take_count(&reader);
    record.items = arena_array(arena, record.count, sizeof(*record.items));
    record.rejects = arena_array(arena, record.count, sizeof(*record.rejects));
    record.voided = arena_array(arena, record.count, sizeof(*record.voided));
    size_t *sizes = arena_array(arena, record.count, sizeof(*sizes));
    if (record.items == NULL || record.rejects == NULL || record.voided == NULL || sizes == NULL) {
        return error_memory(error);
    }
    if (record.kind == INTAKE_LOG_ACCEPT) {
        take_accept(&reader, &record, sizes);
    } else {
        take_voids(&reader, &record);
    }
    if (!reader.good || reader.rest.size != 0) {
        return parse_trouble(error);
    }
    *out_record = record;
    return OK;
}
