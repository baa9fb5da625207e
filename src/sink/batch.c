#include "sink/batch.h"

#include "base/assert.h"
#include "base/planted.h"
#include "io/crypto.h"

enum { BATCH_CUT = 100, BATCH_ENCODED_MAX = BATCH_ID_MAX * 3 };

static bool id_byte(char byte)
{
    return (byte >= 'A' && byte <= 'Z') || (byte >= 'a' && byte <= 'z') ||
           (byte >= '0' && byte <= '9') || byte == '.' || byte == '_' || byte == ':' || byte == '-';
}

static bool id_well_formed(str id)
{
    for (size_t i = 0; i < id.size; i++) {
        if (!id_byte(id.data[i])) {
            return false;
        }
    }
    return id.size > 0 && id.size <= BATCH_ID_MAX;
}

err batch_id_parse(str header, str *out_id, struct error *error)
{
    static const str reserved[] = {STR_INIT("dev."), STR_INIT("idx."), STR_INIT("sql."),
                                   STR_INIT("srv."), STR_INIT("replay.")};
    str id = header;
    if (id.size >= 2 && id.data[0] == '"' && id.data[id.size - 1] == '"') {
        id = str_slice(id, 1, id.size - 1);
    }
    if (!id_well_formed(id)) {
        err result = error_set(error, INVALID, ERROR_BAD_IDEMPOTENCY_KEY,
                               "an Idempotency-Key is 1 to %d characters", BATCH_ID_MAX);
        error_hint(error, "use A-Z a-z 0-9 . _ : - only");
        return result;
    }
    for (size_t i = 0; i < ARRAY_COUNT(reserved); i++) {
        if (str_starts(id, reserved[i])) {
            return error_set(error, INVALID, ERROR_BATCH_ID_RESERVED,
                             "ids beginning %.*s are made by the server", STR_ARG(reserved[i]));
        }
    }
    *out_id = id;
    return OK;
}

str batch_path_part(struct arena *arena, str batch_id)
{
    char encoded[BATCH_ENCODED_MAX];
    size_t size = 0;
    assert(id_well_formed(batch_id));
    for (size_t i = 0; i < batch_id.size; i++) {
        char byte = batch_id.data[i];
        if (byte == ':' || (byte == '.' && i == 0)) {
            memcpy(encoded + size, byte == ':' ? "%3A" : "%2E", 3);
            size += 3;
        } else {
            encoded[size++] = byte;
        }
    }
    if (size <= BATCH_PART_MAX) {
        return str_copy(arena, (str){encoded, size});
    }
    char hash[ID_UID_SIZE];
    struct sha256 digest = crypto_sha256(batch_id);
    id_base32_26(digest.bytes, hash);
    return str_format(arena, "%.*s~%.*s", BATCH_CUT, encoded, ID_UID_SIZE, hash);
}

/* `_sink/<sink>/<folder><part><tail>`; data NULL at the arena's limit. */
static str sink_key(struct arena *arena, str sink_id, const char *folder, str part, str tail)
{
    if (part.data == NULL || tail.data == NULL) {
        return (str){NULL, 0};
    }
    return str_format(arena, "_sink/%.*s/%s%.*s%.*s", STR_ARG(sink_id), folder, STR_ARG(part),
                      STR_ARG(tail));
}

str batch_object_key(struct arena *arena, str sink_id, str batch_id, const struct uid *uid)
{
    return sink_key(arena, sink_id, "", batch_path_part(arena, batch_id),
                    PLANTED(25) ? STR(".ndjson")
                                : str_format(arena, ".%.*s.ndjson", STR_ARG(id_uid_str(uid))));
}

str batch_rejects_key(struct arena *arena, str sink_id, str batch_id)
{
    return sink_key(arena, sink_id, "rejects/", batch_path_part(arena, batch_id), STR(".ndjson"));
}

str batch_intake_rejects_key(struct arena *arena, str sink_id, str batch_id, const struct uid *uid)
{
    return sink_key(arena, sink_id, "rejects/", batch_path_part(arena, batch_id),
                    str_format(arena, "~%.*s.intake.ndjson", STR_ARG(id_uid_str(uid))));
}

str batch_plan_key(struct arena *arena, str sink_id, i64 n, str plan_id)
{
    return str_format(arena, "_sink/%.*s/plans/%lld-%.*s.json", STR_ARG(sink_id), (long long)n,
                      STR_ARG(plan_id));
}
