/* A record of the intake log as a disk gives it back: refused, or taken with every slice inside the
 * bytes, and printed to the very bytes again. */
#include "base/assert.h"
#include "fuzz.h"
#include "sink/intake_log_record.h"

enum { INPUT_MAX = 64 * KIB };

static void check_inside(str bytes, str part)
{
    assert(part.size <= bytes.size);
    assert(part.size == 0 ||
           (part.data >= bytes.data && part.data + part.size <= bytes.data + bytes.size));
}

static void check_accept(str bytes, const struct intake_log_record *record, buf *out)
{
    check_inside(bytes, record->warehouse);
    check_inside(bytes, record->body);
    buf_append(out, record->body);
    for (size_t i = 0; i < record->count; i++) {
        const struct ledger_accept *item = &record->items[i];
        check_inside(bytes, item->batch_id);
        check_inside(bytes, item->answer);
        assert(item->rows == 0 || (size_t)item->offset + (size_t)item->bytes <= record->body.size);
        buf_append(out, record->rejects[i]);
    }
}

/* body_at came with the second one. */
enum { FIRST_FORMAT = 1, AS_PRINTED_TODAY = 8 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size > INPUT_MAX) {
        return 0;
    }
    AUTO_ARENA struct arena *arena = arena_create((size_t)8 * MIB);
    str bytes = {(const char *)data, size};
    struct intake_log_record record = {0};
    err parsed = intake_log_record_parse(arena, bytes, &record, NULL);
    assert(parsed == OK || parsed == CORRUPT);
    if (parsed != OK) {
        return 0;
    }
    assert(record.count > 0 && record.count <= INTAKE_LOG_BATCHES_MAX);
    check_inside(bytes, record.sink_id);
    buf out = buf_create(arena, size + 1, size + AS_PRINTED_TODAY + 1);
    intake_log_record_print(&out, &record);
    if (record.kind == INTAKE_LOG_ACCEPT) {
        check_accept(bytes, &record, &out);
    }
    assert(buf_ok(&out));
    /* Records of the first format are read, but not printed any more. */
    if (data[0] == FIRST_FORMAT) {
        assert(out.size == size + AS_PRINTED_TODAY);
    } else {
        assert(str_equal(buf_str(&out), bytes));
    }
    return 0;
}
