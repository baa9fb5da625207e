/* What a commit may ask of the present table before anything of it is applied. */
#include "base/assert.h"
#include "table/metadata_private.h"

MUST_USE static err require_malformed(struct error *error, const char *type, const char *member)
{
    return error_set(error, INVALID, ERROR_INVALID_REQUEST, "requirement %s: no %s", type, member);
}

MUST_USE static err require_uuid(const json_t *root, const json_t *requirement, struct error *error)
{
    str wanted = document_text(requirement, "uuid");
    str uuid = document_text(root, "table-uuid");
    if (wanted.data == NULL) {
        return require_malformed(error, "assert-table-uuid", "uuid");
    }
    if (!str_equal_ignore_case(wanted, uuid)) {
        return error_set(error, CONFLICT, ERROR_COMMIT_CONFLICT,
                         "Requirement failed: UUID does not match: expected %.*s != %.*s",
                         STR_ARG(uuid), STR_ARG(wanted));
    }
    return OK;
}

MUST_USE static err require_ref_absent(const json_t *ref, str name, struct error *error)
{
    if (ref == NULL) {
        return OK;
    }
    str type = document_text(ref, "type");
    return error_set(error, CONFLICT, ERROR_COMMIT_CONFLICT,
                     "Requirement failed: %.*s %.*s was created concurrently", STR_ARG(type),
                     STR_ARG(name));
}

MUST_USE static err require_ref(const json_t *root, const json_t *requirement, struct error *error)
{
    str name = document_text(requirement, "ref");
    const json_t *wanted = json_object_get(requirement, "snapshot-id");
    bool wants_none = wanted == NULL || json_is_null(wanted) || json_integer_value(wanted) == -1;
    if (name.data == NULL) {
        return require_malformed(error, "assert-ref-snapshot-id", "ref");
    }
    if (!wants_none && !json_is_integer(wanted)) {
        return require_malformed(error, "assert-ref-snapshot-id", "snapshot-id");
    }
    const json_t *ref = json_object_get(json_object_get(root, "refs"), name.data);
    if (wants_none) {
        return require_ref_absent(ref, name, error);
    }
    long long expected = json_integer_value(wanted);
    if (ref == NULL) {
        return error_set(error, CONFLICT, ERROR_COMMIT_CONFLICT,
                         "Requirement failed: branch or tag %.*s is missing, expected %lld",
                         STR_ARG(name), expected);
    }
    long long present = document_i64_or(ref, "snapshot-id", -1);
    if (present != expected) {
        str type = document_text(ref, "type");
        return error_set(error, CONFLICT, ERROR_COMMIT_CONFLICT,
                         "Requirement failed: %.*s %.*s has changed: expected id %lld != %lld",
                         STR_ARG(type), STR_ARG(name), expected, present);
    }
    return OK;
}

/* Requirements that compare one integer. */
static const struct require_number {
    const char *type;
    const char *member;
    const char *field;
    const char *message;
} REQUIRE_NUMBERS[] = {
    {"assert-last-assigned-field-id", "last-assigned-field-id", "last-column-id",
     "last assigned field id changed"},
    {"assert-current-schema-id", "current-schema-id", "current-schema-id",
     "current schema changed"},
    {"assert-last-assigned-partition-id", "last-assigned-partition-id", "last-partition-id",
     "last assigned partition id changed"},
    {"assert-default-spec-id", "default-spec-id", "default-spec-id",
     "default partition spec changed"},
    {"assert-default-sort-order-id", "default-sort-order-id", "default-sort-order-id",
     "default sort order changed"},
};

MUST_USE static err require_number(const json_t *root, const json_t *requirement,
                                   const struct require_number *rule, struct error *error)
{
    i64 wanted = 0;
    if (!document_i64(requirement, rule->member, &wanted)) {
        return require_malformed(error, rule->type, rule->member);
    }
    i64 present = document_i64_or(root, rule->field, -1);
    if (present != wanted) {
        return error_set(error, CONFLICT, ERROR_COMMIT_CONFLICT,
                         "Requirement failed: %s: expected id %lld != %lld", rule->message,
                         (long long)wanted, (long long)present);
    }
    return OK;
}

static const struct require_number *require_number_find(str type)
{
    for (size_t i = 0; i < ARRAY_COUNT(REQUIRE_NUMBERS); i++) {
        if (str_equal(type, str_from(REQUIRE_NUMBERS[i].type))) {
            return &REQUIRE_NUMBERS[i];
        }
    }
    return NULL;
}

MUST_USE static err require_known(const json_t *requirement, struct error *error)
{
    str type = document_text(requirement, "type");
    if (type.data == NULL) {
        return require_malformed(error, "without a name", "type");
    }
    if (str_equal(type, STR("assert-create")) || str_equal(type, STR("assert-table-uuid")) ||
        str_equal(type, STR("assert-ref-snapshot-id")) || require_number_find(type) != NULL) {
        return OK;
    }
    return error_set(error, INVALID, ERROR_INVALID_REQUEST, "unknown requirement %.*s",
                     STR_ARG(type));
}

MUST_USE static err require_one(const json_t *root, const json_t *requirement, struct error *error)
{
    str type = document_text(requirement, "type");
    bool is_create = str_equal(type, STR("assert-create"));
    if (is_create && root != NULL) {
        return error_set(error, CONFLICT, ERROR_COMMIT_CONFLICT,
                         "Requirement failed: table already exists");
    }
    if (is_create) {
        return OK;
    }
    if (root == NULL) {
        return error_set(error, CONFLICT, ERROR_COMMIT_CONFLICT,
                         "Requirement failed: current table metadata is missing");
    }
    if (str_equal(type, STR("assert-table-uuid"))) {
        return require_uuid(root, requirement, error);
    }
    if (str_equal(type, STR("assert-ref-snapshot-id"))) {
        return require_ref(root, requirement, error);
    }
    const struct require_number *rule = require_number_find(type);
    assert(rule != NULL);
    return require_number(root, requirement, rule, error);
}

err metadata_check(const struct metadata *metadata, const json_t *requirements, struct error *error)
{
    if (requirements != NULL && !json_is_array(requirements)) {
        return error_set(error, INVALID, ERROR_INVALID_REQUEST, "requirements is no array");
    }
    /* An unknown one first: then the request itself is wrong, whatever the table looks like. */
    size_t count = json_array_size(requirements);
    for (size_t i = 0; i < count; i++) {
        TRY(require_known(json_array_get(requirements, i), error));
    }
    for (size_t i = 0; i < count; i++) {
        TRY(require_one(metadata_json(metadata), json_array_get(requirements, i), error));
    }
    return OK;
}
