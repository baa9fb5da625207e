#include "sink/incarnation.h"

#include "base/buf.h"
#include "base/log.h"
#include "sink/ledger_recover.h"
#include "table/document.h"

#define INCARNATION_KEY "_sink/incarnation.json"

enum { INCARNATION_BYTES_MAX = 4096, INCARNATION_SCRATCH_BYTES_MAX = 1024 * 1024 };

/* ---- one bucket ---- */

/* -1: it has none. */
static err read_bucket(const struct incarnation *incarnation, const struct warehouse *warehouse,
                       i64 *out_number, struct error *error)
{
    struct arena *arena AUTO_ARENA = arena_create(INCARNATION_SCRATCH_BYTES_MAX);
    struct store_object object = {0};
    struct error told = {0};
    err got = store_get(&warehouse->files, arena, STR(INCARNATION_KEY), &object, &told);
    if (got == NOT_FOUND) {
        *out_number = -1;
        return OK;
    }
    if (got != OK) {
        return error_set(error, got, told.code, "%s", told.message);
    }
    json_t *document = json_loadb(object.body.data, object.body.size, 0, NULL);
    const json_t *number = json_object_get(document, "incarnation");
    str owner = document_text(document, "installation");
    bool good = json_is_integer(number) && json_integer_value(number) >= 0;
    bool ours = str_equal(owner, incarnation->installation_id);
    *out_number = json_integer_value(number);
    json_decref(document);
    if (!good) {
        return error_set(error, CORRUPT, ERROR_INTERNAL,
                         INCARNATION_KEY " of warehouse %.*s is damaged", STR_ARG(warehouse->name));
    }
    if (!ours) {
        err result = error_set(error, CORRUPT, ERROR_INTERNAL,
                               "the files of warehouse %.*s belong to another installation",
                               STR_ARG(warehouse->name));
        error_hint(error, "put back the ledger (lhbox.db) that was made with them");
        return result;
    }
    return OK;
}

static err write_bucket(const struct incarnation *incarnation, const struct warehouse *warehouse,
                        i64 number, struct error *error)
{
    struct arena *arena AUTO_ARENA = arena_create(INCARNATION_SCRATCH_BYTES_MAX);
    buf text = buf_create(arena, 128, INCARNATION_BYTES_MAX);
    buf_append(&text, STR("{\"format\":1,\"installation\":"));
    buf_append_json_string(&text, incarnation->installation_id);
    buf_append_format(&text, ",\"incarnation\":%lld}\n", (long long)number);
    if (!buf_ok(&text)) {
        return error_memory(error);
    }
    const struct store_meta meta = {.content_type = STR_INIT("application/json")};
    return store_put(&warehouse->files, STR(INCARNATION_KEY), buf_str(&text), &meta, error);
}

/* ---- all of them ---- */

static err compare_bucket(struct incarnation *incarnation, const struct warehouse *warehouse,
                          bool *out_behind, struct error *error)
{
    i64 stored = -1;
    i64 known = -1;
    TRY(read_bucket(incarnation, warehouse, &stored, error));
    TRY(ledger_bucket_incarnation(incarnation->db, warehouse->name, &known, error));
    if (stored < known) {
        err result = error_set(error, CORRUPT, ERROR_INTERNAL,
                               "the files of warehouse %.*s are older than the ledger (%lld, not "
                               "%lld)",
                               STR_ARG(warehouse->name), (long long)stored, (long long)known);
        error_hint(error, "the store lost what the ledger calls durable: put its files back");
        return result;
    }
    *out_behind = stored > known;
    incarnation->seen = num_max_i64(incarnation->seen, stored);
    return OK;
}

err incarnation_read(struct incarnation *incarnation, enum incarnation_reading *out_reading,
                     struct error *error)
{
    struct ledger_incarnation ledger = {0};
    TRY(ledger_read_incarnation(incarnation->db, &ledger, error));
    bool behind = ledger.copied || ledger.number < incarnation->seen;
    for (size_t i = 0; i < incarnation->count; i++) {
        bool one = false;
        TRY(compare_bucket(incarnation, incarnation->warehouses[i], &one, error));
        behind = behind || one;
    }
    *out_reading = behind ? INCARNATION_BEHIND : INCARNATION_FINE;
    return OK;
}

err incarnation_raise(struct incarnation *incarnation, struct error *error)
{
    struct arena *arena AUTO_ARENA = arena_create(INCARNATION_SCRATCH_BYTES_MAX);
    struct ledger_incarnation ledger = {0};
    str *raised = arena_array(arena, incarnation->count, sizeof(*raised));
    size_t count = 0;
    if (raised == NULL) {
        return error_memory(error);
    }
    TRY(ledger_read_incarnation(incarnation->db, &ledger, error));
    i64 to = num_max_i64(ledger.number, incarnation->seen) + 1;
    for (size_t i = 0; i < incarnation->count; i++) {
        const struct warehouse *warehouse = incarnation->warehouses[i];
        struct error told = {0};
        err written = write_bucket(incarnation, warehouse, to, &told);
        if (written == OK) {
            raised[count++] = warehouse->name;
        } else {
            log_error("incarnation_not_raised", written, &told, warehouse->name);
        }
    }
    CRASH_POINT(incarnation_stored);
    TRY(ledger_raise_incarnation(incarnation->db, ledger.number, to, raised, count, error));
    incarnation->seen = to;
    return OK;
}

err incarnation_watch(struct incarnation *incarnation, enum incarnation_reading *out_reading,
                      struct error *error)
{
    struct ledger_incarnation ledger = {0};
    TRY(ledger_read_incarnation(incarnation->db, &ledger, error));
    if (ledger.number < incarnation->seen) {
        *out_reading = INCARNATION_BEHIND;
        return OK;
    }
    TRY(incarnation_raise(incarnation, error));
    *out_reading = INCARNATION_FINE;
    return OK;
}
