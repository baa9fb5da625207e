#include "base/planted.h"
#include "sink/decode.h"
#include "sink/roll_steps.h"
#include "table/document.h"

/* The claim (first roll, end of step 3): none -> attempted -> claimed, never back.
 *
 *   absent, or a deleted sink of ours:  mark attempted, send, load again
 *   (0, claim id):                      claimed, once the store tells of this version
 *   this sink, n >= 1:                  another roller was faster, or the table is ahead
 *   anything else:                      table_claimed (O17) */

enum { CLAIM_TRIES = 5, CLAIM_APART_MS = 500 };

#define NAME_MAPPING_PROPERTY "schema.name-mapping.default"

enum claim_reading {
    CLAIM_OPEN,    /* it may be sent */
    CLAIM_OURS,    /* it has landed */
    CLAIM_BEYOND,  /* this sink has rolled already */
    CLAIM_FOREIGN, /* somebody else's */
};

/* A deleted sink's last fence removes the property; an old ledger may have missed it. */
static err judge_other_sink(struct roll *roll, str sink_id, enum claim_reading *out_reading,
                            struct error *error)
{
    struct ledger_sink other = {0};
    struct error ignored = {0};
    err found = ledger_find_sink(roll->env->db, roll->arena, STR(""), sink_id, &other, &ignored);
    if (found != OK && found != NOT_FOUND) {
        return error_set(error, found, ignored.code, "%s", ignored.message);
    }
    bool deleted = found == OK && other.state == SINK_DELETED;
    *out_reading = deleted ? CLAIM_OPEN : CLAIM_FOREIGN;
    return OK;
}

static err judge_claim(struct roll *roll, const struct table *table,
                       enum claim_reading *out_reading, struct error *error)
{
    str text = metadata_property(table->metadata, METADATA_ROLL_PROPERTY);
    struct plan_property read = {0};
    if (text.data == NULL) {
        *out_reading = CLAIM_OPEN;
        return OK;
    }
    *out_reading = CLAIM_FOREIGN;
    if (!plan_parse_property(text, &read) ||
        !str_equal(read.installation, roll->env->installation_id)) {
        return OK;
    }
    if (!str_equal(read.sink_id, roll->sink.id)) {
        return judge_other_sink(roll, read.sink_id, out_reading, error);
    }
    if (read.n >= 1) {
        *out_reading = CLAIM_BEYOND;
    } else if (str_equal(read.id, roll->sink.claim_id)) {
        *out_reading = CLAIM_OURS;
    }
    return OK;
}

/* ---- the request ---- */

static const json_t *current_schema(const struct metadata *metadata)
{
    const json_t *root = metadata_json(metadata);
    json_int_t id = json_integer_value(json_object_get(root, "current-schema-id"));
    const json_t *schemas = json_object_get(root, "schemas");
    for (size_t i = 0; i < json_array_size(schemas); i++) {
        const json_t *schema = json_array_get(schemas, i);
        if (json_integer_value(json_object_get(schema, "schema-id")) == id) {
            return schema;
        }
    }
    return NULL;
}

static bool has_ingest_column(const json_t *schema)
{
    const json_t *fields = json_object_get(schema, "fields");
    for (size_t i = 0; i < json_array_size(fields); i++) {
        const char *name = json_string_value(json_object_get(json_array_get(fields, i), "name"));
        if (name != NULL && strcmp(name, DECODE_INGEST_COLUMN) == 0) {
            return true;
        }
    }
    return false;
}

static i64 new_column_id(const struct metadata *metadata)
{
    return (i64)metadata_last_column_id(metadata) + 1;
}

/* The schema as it stands, unknown members kept, with one more optional column. */
static json_t *schema_update(const struct metadata *metadata, const json_t *schema)
{
    i64 column_id = new_column_id(metadata);
    json_t *grown = json_deep_copy(schema);
    json_t *field = json_pack("{s:I, s:s, s:b, s:s}", "id", (json_int_t)column_id, "name",
                              DECODE_INGEST_COLUMN, "required", 0, "type", "timestamptz");
    json_array_append_new(json_object_get(grown, "fields"), field);
    json_object_del(grown, "schema-id");
    return json_pack("{s:s, s:o, s:I}", "action", "add-schema", "schema", grown, "last-column-id",
                     (json_int_t)column_id);
}

struct claim_entries {
    struct commit_entry items[4];
    size_t count;
};

static err claim_properties(struct roll *roll, const struct table *table,
                            struct claim_entries *out_entries, struct error *error)
{
    const struct commit_entry retention[] = {
        {STR_INIT("write.metadata.delete-after-commit.enabled"), STR_INIT("true")},
        {STR_INIT("write.metadata.previous-versions-max"), STR_INIT("5")},
    };
    struct claim_entries entries = {0};
    for (size_t i = 0; i < ARRAY_COUNT(retention); i++) {
        if (metadata_property(table->metadata, retention[i].key.data).data == NULL) {
            entries.items[entries.count++] = retention[i];
        }
    }
    const struct plan_property property = {.installation = roll->env->installation_id,
                                           .sink_id = roll->sink.id,
                                           .n = 0,
                                           .id = roll->sink.claim_id};
    entries.items[entries.count++] = (struct commit_entry){
        STR(METADATA_ROLL_PROPERTY), plan_print_property(roll->arena, &property)};
    if (entries.items[entries.count - 1].value.data == NULL) {
        return error_memory(error);
    }
    *out_entries = entries;
    return OK;
}

/* A table that says which names stand for which fields in files without ids says so of the new
 * column, too. One that does not is left so: some catalogs refuse the property. */
static err claim_name_mapping(struct roll *roll, const struct table *table,
                              struct claim_entries *entries, struct error *error)
{
    str text = metadata_property(table->metadata, NAME_MAPPING_PROPERTY);
    json_t *mapping = text.data == NULL ? NULL : json_loadb(text.data, text.size, 0, NULL);
    str grown = {NULL, 0};
    err printed = OK;
    if (json_is_array(mapping)) {
        json_array_append_new(mapping, json_pack("{s:I, s:[s]}", "field-id",
                                                 (json_int_t)new_column_id(table->metadata),
                                                 "names", DECODE_INGEST_COLUMN));
        printed = document_print(roll->arena, mapping, &grown, error);
    }
    json_decref(mapping);
    if (printed == OK && grown.data != NULL) {
        entries->items[entries->count++] = (struct commit_entry){STR(NAME_MAPPING_PROPERTY), grown};
    }
    return printed;
}

static json_t *set_properties(const struct claim_entries *entries)
{
    json_t *updates = json_object();
    for (size_t i = 0; i < entries->count; i++) {
        const struct commit_entry *entry = &entries->items[i];
        json_object_setn_new(updates, entry->key.data, entry->key.size,
                             json_stringn(entry->value.data, entry->value.size));
    }
    return json_pack("{s:s, s:o}", "action", "set-properties", "updates", updates);
}

static json_t *assert_last_field(const struct table *table)
{
    return json_pack("{s:s, s:i}", "type", "assert-last-assigned-field-id",
                     "last-assigned-field-id", (int)metadata_last_column_id(table->metadata));
}

/* With a new column: a change of metadata alone. The new schema id keeps a late copy away. */
static json_t *column_request(const struct table *table, const json_t *schema,
                              const struct claim_entries *entries)
{
    str uuid = metadata_uuid(table->metadata);
    i64 base = 0;
    bool has_base = metadata_main(table->metadata, &base);
    json_t *requirements = json_array();
    json_array_append_new(requirements, json_pack("{s:s, s:s%}", "type", "assert-table-uuid",
                                                  "uuid", uuid.data, uuid.size));
    json_array_append_new(requirements,
                          json_pack("{s:s, s:s, s:o}", "type", "assert-ref-snapshot-id", "ref",
                                    "main", "snapshot-id",
                                    has_base ? json_integer((json_int_t)base) : json_null()));
    json_array_append_new(
        requirements,
        json_pack("{s:s, s:O}", "type", "assert-current-schema-id", "current-schema-id",
                  json_object_get(metadata_json(table->metadata), "current-schema-id")));
    json_array_append_new(requirements, assert_last_field(table));
    json_t *updates = json_array();
    json_array_append_new(updates, schema_update(table->metadata, schema));
    json_array_append_new(updates,
                          json_pack("{s:s, s:i}", "action", "set-current-schema", "schema-id", -1));
    json_array_append_new(updates, set_properties(entries));
    return json_pack("{s:o, s:o}", "requirements", requirements, "updates", updates);
}

/* Without one: an empty append carries the claim, so that a late copy cannot land after main was
 * rolled back. */
static err append_request(struct roll *roll, const struct table *table,
                          struct claim_entries *entries, json_t **out_request, struct error *error)
{
    struct append append = commit_begin(roll->env->seam);
    append.properties = entries->items;
    append.property_count = entries->count;
    json_t *request = NULL;
    TRY(commit_append(roll->arena, &roll->env->warehouse->locations, table, roll->env->seam,
                      &append, &request, error));
    json_array_append_new(json_object_get(request, "requirements"), assert_last_field(table));
    PLANTED_ACT(33, true, request, NULL, NULL);
    *out_request = request;
    return OK;
}

static err claim_request(struct roll *roll, const struct table *table, json_t **out_request,
                         struct error *error)
{
    struct claim_entries entries = {0};
    TRY(claim_properties(roll, table, &entries, error));
    const json_t *schema = current_schema(table->metadata);
    if (schema == NULL) {
        return error_set(error, CORRUPT, ERROR_INTERNAL, "the table has no current schema");
    }
    if (has_ingest_column(schema)) {
        return append_request(roll, table, &entries, out_request, error);
    }
    TRY(claim_name_mapping(roll, table, &entries, error));
    *out_request = column_request(table, schema, &entries);
    return OK;
}

/* ---- the tries ---- */

static err send_claim(struct roll *roll, const struct table *table, enum roll_step *out_step,
                      struct error *error)
{
    json_t *request = NULL;
    TRY(claim_request(roll, table, &request, error));
    struct error lost = {0};
    err marked = ledger_attempt_claim(roll->env->db, roll->sink.id, &lost);
    if (marked == OK) {
        CRASH_POINT(claim_attempted);
        struct table after AUTO_TABLE = {0};
        roll_send(roll, request, NULL, &after);
        CRASH_POINT(claim_sent);
    }
    json_decref(request);
    /* CONFLICT: claimed by another roller, or stopped. The next look knows. */
    *out_step = marked == OK ? STEP_GO : STEP_AGAIN;
    return marked == OK || marked == CONFLICT
               ? OK
               : error_set(error, marked, lost.code, "%s", lost.message);
}

/* The ledger's claim may still be none when the copy is older than the claim. */
static err finish_claim(struct roll *roll, enum roll_step *out_step, struct error *error)
{
    if (roll->sink.claim_state == CLAIM_NONE) {
        struct error ignored = {0};
        err marked = ledger_attempt_claim(roll->env->db, roll->sink.id, &ignored);
        if (marked != OK && marked != CONFLICT) {
            return error_set(error, marked, ignored.code, "%s", ignored.message);
        }
    }
    /* Else an older ledger leads the table back to before its claim, and the plan objects, which
     * follow a claim and tell of it for good, say that somebody took the property away. */
    TRY(roll_point_store(roll, error));
    TRY(ledger_finish_claim(roll->env->db, roll->sink.id, error));
    *out_step = STEP_AGAIN;
    return OK;
}

/* Another roller claimed and rolled, or the ledger is older than the table. */
static err beyond_claim(struct roll *roll, const struct table *table, enum roll_step *out_step,
                        struct error *error)
{
    TRY(roll_read_sink(roll, roll->sink.id, error));
    if (roll->sink.claim_state == CLAIM_CLAIMED) {
        *out_step = STEP_AGAIN;
        return OK;
    }
    return roll_mismatch(roll, PLAN_READS_AHEAD, table, out_step, error);
}

/* One look at the table, and one sending if it is open. STEP_GO: look again. */
static err claim_once(struct roll *roll, enum roll_step *out_step, struct error *error)
{
    struct table table AUTO_TABLE = {0};
    TRY(roll_open_table(roll, &table, out_step, error));
    if (*out_step != STEP_GO) {
        return OK;
    }
    enum claim_reading reading = CLAIM_FOREIGN;
    TRY(judge_claim(roll, &table, &reading, error));
    switch (reading) {
    case CLAIM_OPEN:
        return send_claim(roll, &table, out_step, error);
    case CLAIM_OURS:
        return finish_claim(roll, out_step, error);
    case CLAIM_BEYOND:
        return beyond_claim(roll, &table, out_step, error);
    case CLAIM_FOREIGN:
        break;
    }
    str text = metadata_property(table.metadata, METADATA_ROLL_PROPERTY);
    str detail = str_format(roll->arena, "the table is claimed by %.*s", STR_ARG(text));
    return roll_disable(roll, "table_claimed", detail, out_step, error);
}

err roll_claim(struct roll *roll, enum roll_step *out_step, struct error *error)
{
    for (int tries = 0; tries <= CLAIM_TRIES; tries++) {
        TRY(roll_keep_lease(roll, error));
        TRY(claim_once(roll, out_step, error));
        if (*out_step != STEP_GO) {
            return OK;
        }
        if (roll_stopping(roll)) {
            break;
        }
        /* The first look after a sending comes at once: mostly it has landed. */
        if (tries > 0) {
            seam_wait_us(roll->env->seam, CLAIM_APART_MS * 1000);
        }
    }
    *out_step = STEP_LATER;
    return OK;
}
