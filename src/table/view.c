#include "table/view.h"

#include "base/id.h"
#include "table/document.h"
#include "table/metadata_private.h"

#define VIEW_HISTORY_PROPERTY "version.history.num-entries"
#define VIEW_DIALECT_PROPERTY "replace.drop-dialect.allowed"

/* One list of updates under way. */
struct view_change {
    json_t *root;
    i64 now_ms;
    i64 last_schema;  /* what -1 means; itself -1: none was added */
    i64 last_version; /* likewise */
    json_t *added;    /* the versions that this change made; borrowed items */
    bool changed;
};

MUST_USE static err view_invalid(struct error *error, const char *what)
{
    return error_set(error, INVALID, ERROR_INVALID_VIEW, "%s", what);
}

static str view_property(const json_t *root, const char *key)
{
    return document_text(json_object_get(root, "properties"), key);
}

static json_t *view_version(const json_t *root, i64 id)
{
    return document_find(json_object_get(root, "versions"), "version-id", id);
}

/* ---- a whole document ---- */

/* Every item is an object with an id of its own. */
MUST_USE static err view_check_ids(const json_t *root, const char *list, const char *key,
                                   struct error *error)
{
    const json_t *items = json_object_get(root, list);
    if (json_array_size(items) > VIEW_ITEMS_MAX) {
        return error_set(error, INVALID, ERROR_INVALID_VIEW,
                         "view metadata: %s has more than %d items", list, VIEW_ITEMS_MAX);
    }
    for (size_t i = 0; i < json_array_size(items); i++) {
        const json_t *item = json_array_get(items, i);
        i32 id = 0;
        if (!document_i32(item, key, &id) || document_find(items, key, id) != item) {
            return error_set(error, INVALID, ERROR_INVALID_VIEW,
                             "view metadata: %s: a %s is missing or stands twice", list, key);
        }
    }
    return OK;
}

MUST_USE static err view_validate(json_t *root, struct error *error)
{
    static const char *const LISTS[] = {"schemas", "versions", "version-log"};
    if (!json_is_object(root)) {
        return view_invalid(error, "view metadata: no JSON object");
    }
    if (document_i64_or(root, "format-version", 0) != 1) {
        return view_invalid(error, "view metadata: the format version is not 1");
    }
    if (document_text(root, "view-uuid").size == 0 || document_text(root, "location").size == 0) {
        return view_invalid(error, "view metadata: no view-uuid or no location");
    }
    for (size_t i = 0; i < ARRAY_COUNT(LISTS); i++) {
        document_array(root, LISTS[i]);
    }
    document_object(root, "properties");
    TRY(view_check_ids(root, "schemas", "schema-id", error));
    TRY(view_check_ids(root, "versions", "version-id", error));
    i64 current = document_i64_or(root, "current-version-id", -1);
    if (view_version(root, current) == NULL) {
        return view_invalid(error, "view metadata: there is no current version");
    }
    return OK;
}

err view_parse(str bytes, json_t **out_view, struct error *error)
{
    json_error_t reason;
    json_auto_t *root = json_loadb(bytes.data != NULL ? bytes.data : "", bytes.size,
                                   JSON_REJECT_DUPLICATES | JSON_ALLOW_NUL, &reason);
    if (root == NULL) {
        return error_set(error, CORRUPT, ERROR_INVALID_VIEW,
                         "view metadata is not JSON: %s at byte %d", reason.text, reason.position);
    }
    TRY(view_validate(root, error));
    *out_view = json_incref(root);
    return OK;
}

/* ---- schemas ---- */

static bool view_says_which(const char *key, const char *id_key)
{
    return strcmp(key, id_key) == 0 || strcmp(key, "timestamp-ms") == 0;
}

static size_t view_count_others(const json_t *item, const char *id_key)
{
    const char *const apart[] = {id_key, "timestamp-ms"};
    size_t count = json_object_size(item);
    for (size_t i = 0; i < ARRAY_COUNT(apart); i++) {
        count -= json_object_get(item, apart[i]) != NULL ? 1 : 0;
    }
    return count;
}

/* Equal but for the members that say which and when. Nothing is copied: a commit may compare a
 * million pairs. */
static bool view_same(const json_t *one, const json_t *other, const char *id_key)
{
    const char *key = NULL;
    json_t *value = NULL;
    bool same = view_count_others(one, id_key) == view_count_others(other, id_key);
    json_object_foreach(document_mutable(one), key, value)
    {
        same = same && (view_says_which(key, id_key) ||
                        json_equal(value, json_object_get(other, key)) != 0);
    }
    return same;
}

/* The id of an equal item, *out_present true; else the next after all, `id` at least. */
static i64 view_choose_id(const json_t *items, const json_t *sent, const char *key, i64 id,
                          bool *out_present)
{
    *out_present = false;
    for (size_t i = 0; i < json_array_size(items); i++) {
        const json_t *item = json_array_get(items, i);
        i64 present = document_i64_or(item, key, -1);
        if (view_same(item, sent, key)) {
            *out_present = true;
            return present;
        }
        id = present >= id ? present + 1 : id;
    }
    return id;
}

MUST_USE static err view_check_schema(const json_t *document, struct error *error)
{
    AUTO_ARENA struct arena *arena = arena_create(METADATA_SCRATCH_BYTES_MAX);
    struct schema schema = {0};
    TRY(schema_from_json(arena, document, &schema, error));
    return metadata_check_schema(document, &schema, METADATA_VERSION_MAX, error);
}

static err view_add_schema(struct view_change *change, const json_t *update, struct error *error)
{
    const json_t *sent = json_object_get(update, "schema");
    json_t *schemas = document_array(change->root, "schemas");
    bool present = false;
    TRY(view_check_schema(sent, error));
    i64 id = view_choose_id(schemas, sent, "schema-id", 0, &present);
    if (id > INT32_MAX) {
        return view_invalid(error, "add-schema: the schema ids are used up");
    }
    change->last_schema = id;
    if (!present) {
        json_t *schema = document_copy(sent);
        document_set_i64(schema, "schema-id", id);
        document_append(schemas, schema);
        change->changed = true;
    }
    return OK;
}

/* ---- versions ---- */

MUST_USE static err view_check_representations(const json_t *version, struct error *error)
{
    const json_t *items = json_object_get(version, "representations");
    if (json_array_size(items) == 0) {
        return view_invalid(error, "Invalid view version: it has no representations");
    }
    for (size_t i = 0; i < json_array_size(items); i++) {
        const json_t *item = json_array_get(items, i);
        str dialect = document_text(item, "dialect");
        if (document_text(item, "type").size == 0) {
            return view_invalid(error, "Invalid view version: a representation has no type");
        }
        for (size_t j = 0; j < i && dialect.data != NULL; j++) {
            str other = document_text(json_array_get(items, j), "dialect");
            if (other.data != NULL && str_equal_ignore_case(dialect, other)) {
                return error_set(error, INVALID, ERROR_INVALID_VIEW,
                                 "Invalid view version: Cannot add multiple queries for dialect "
                                 "%.*s",
                                 STR_ARG(dialect));
            }
        }
    }
    return OK;
}

/* Fills what the spec wants and the request may leave open. */
MUST_USE static err view_prepare_version(const struct view_change *change, json_t *version,
                                         struct error *error)
{
    i64 schema = document_i64_or(version, "schema-id", -1);
    if (schema == -1) {
        schema = change->last_schema;
    }
    if (schema == -1) {
        return view_invalid(error, "Cannot set last added schema: no schema has been added");
    }
    if (document_find(json_object_get(change->root, "schemas"), "schema-id", schema) == NULL) {
        return error_set(error, INVALID, ERROR_INVALID_VIEW,
                         "Cannot add version with unknown schema: %lld", (long long)schema);
    }
    document_set_i64(version, "schema-id", schema);
    if (document_i64_or(version, "timestamp-ms", -1) < 0) {
        document_set_i64(version, "timestamp-ms", change->now_ms);
    }
    document_object(version, "summary");
    document_array(version, "default-namespace");
    document_drop_nulls(version);
    return view_check_representations(version, error);
}

static err view_add_version(struct view_change *change, const json_t *update, struct error *error)
{
    const json_t *sent = json_object_get(update, "view-version");
    json_t *versions = document_array(change->root, "versions");
    bool present = false;
    if (!json_is_object(sent)) {
        return view_invalid(error, "add-view-version: no view-version");
    }
    json_auto_t *version = document_copy(sent);
    TRY(view_prepare_version(change, version, error));
    i64 id = view_choose_id(versions, version, "version-id",
                            num_max_i64(1, document_i64_or(version, "version-id", 1)), &present);
    if (id > INT32_MAX) {
        return view_invalid(error, "add-view-version: the version ids are used up");
    }
    change->last_version = id;
    if (!present) {
        document_set_i64(version, "version-id", id);
        document_append(versions, json_incref(version));
        document_append(change->added, json_incref(version));
        change->changed = true;
    }
    return OK;
}

static err view_set_current(struct view_change *change, const json_t *update, struct error *error)
{
    i64 id = document_i64_or(update, "view-version-id", -2);
    if (id == -1) {
        id = change->last_version;
    }
    if (id == -1) {
        return view_invalid(error, "Cannot set last version id: no version has been added");
    }
    const json_t *version = view_version(change->root, id);
    if (version == NULL) {
        return error_set(error, INVALID, ERROR_INVALID_VIEW,
                         "Cannot set current version to unknown version: %lld", (long long)id);
    }
    if (document_i64_or(change->root, "current-version-id", -1) == id) {
        return OK;
    }
    bool fresh = document_find(change->added, "version-id", id) != NULL;
    json_t *entry = json_object();
    document_set_i64(entry, "timestamp-ms",
                     fresh ? document_i64_or(version, "timestamp-ms", 0) : change->now_ms);
    document_set_i64(entry, "version-id", id);
    document_append(document_array(change->root, "version-log"), entry);
    document_set_i64(change->root, "current-version-id", id);
    change->changed = true;
    return OK;
}

/* ---- the view as a whole ---- */

static err view_assign_uuid(struct view_change *change, const json_t *update, struct error *error)
{
    str uuid = document_text(update, "uuid");
    if (!str_equal_ignore_case(uuid, document_text(change->root, "view-uuid"))) {
        return view_invalid(error, "Cannot reassign uuid of a view");
    }
    return OK;
}

static err view_upgrade(struct view_change *change, const json_t *update, struct error *error)
{
    (void)change;
    i64 version = document_i64_or(update, "format-version", 0);
    return version == 1 ? OK
                        : error_set(error, INVALID, ERROR_INVALID_VIEW,
                                    "Cannot upgrade view to unsupported format version: v%lld "
                                    "(supported: v1)",
                                    (long long)version);
}

static err view_set_location(struct view_change *change, const json_t *update, struct error *error)
{
    str location = document_text(update, "location");
    while (location.size > 1 && location.data[location.size - 1] == '/') {
        location.size--;
    }
    if (location.size == 0) {
        return view_invalid(error, "set-location: no location");
    }
    if (!str_equal(location, document_text(change->root, "location"))) {
        document_set_text(change->root, "location", location);
        change->changed = true;
    }
    return OK;
}

static err view_set_properties(struct view_change *change, const json_t *update,
                               struct error *error)
{
    json_t *updates = change_member(update, "updates", "updated");
    json_t *properties = document_object(change->root, "properties");
    const char *key = NULL;
    json_t *value = NULL;
    if (!json_is_object(updates)) {
        return view_invalid(error, "set-properties: no updates");
    }
    json_object_foreach(updates, key, value)
    {
        if (!json_is_string(value)) {
            return error_set(error, INVALID, ERROR_INVALID_VIEW,
                             "set-properties: the value of %.200s is no string", key);
        }
        if (!json_equal(value, json_object_get(properties, key))) {
            document_set(properties, key, json_incref(value));
            change->changed = true;
        }
    }
    return OK;
}

static err view_remove_properties(struct view_change *change, const json_t *update,
                                  struct error *error)
{
    const json_t *removals = change_member(update, "removals", "removed");
    json_t *properties = document_object(change->root, "properties");
    if (!json_is_array(removals)) {
        return view_invalid(error, "remove-properties: no removals");
    }
    for (size_t i = 0; i < json_array_size(removals); i++) {
        str key = document_str(json_array_get(removals, i));
        if (key.data == NULL) {
            return view_invalid(error, "remove-properties: a key is no string");
        }
        if (json_object_del(properties, key.data) == 0) {
            change->changed = true;
        }
    }
    return OK;
}

/* ---- all of them ---- */

static const struct {
    const char *action;
    err (*apply)(struct view_change *change, const json_t *update, struct error *error);
} VIEW_CHANGES[] = {
    {"assign-uuid", view_assign_uuid},
    {"upgrade-format-version", view_upgrade},
    {"add-schema", view_add_schema},
    {"add-view-version", view_add_version},
    {"set-current-view-version", view_set_current},
    {"set-location", view_set_location},
    {"set-properties", view_set_properties},
    {"remove-properties", view_remove_properties},
};

MUST_USE static err view_apply_one(struct view_change *change, const json_t *update,
                                   struct error *error)
{
    str action = document_text(update, "action");
    for (size_t i = 0; i < ARRAY_COUNT(VIEW_CHANGES); i++) {
        if (str_equal(action, str_from(VIEW_CHANGES[i].action))) {
            return VIEW_CHANGES[i].apply(change, update, error);
        }
    }
    return error_set(error, INVALID, ERROR_INVALID_VIEW, "unknown update %.*s", STR_ARG(action));
}

/* ---- requirements ---- */

MUST_USE static err view_check_one(const json_t *view, const json_t *requirement,
                                   struct error *error)
{
    str type = document_text(requirement, "type");
    str uuid = document_text(requirement, "uuid");
    str present = document_text(view, "view-uuid");
    if (!str_equal(type, STR("assert-view-uuid")) || uuid.data == NULL) {
        return error_set(error, INVALID, ERROR_INVALID_VIEW, "unknown requirement %.*s",
                         STR_ARG(type));
    }
    if (!str_equal_ignore_case(uuid, present)) {
        return error_set(error, CONFLICT, ERROR_COMMIT_CONFLICT,
                         "Requirement failed: view UUID does not match: expected %.*s != %.*s",
                         STR_ARG(present), STR_ARG(uuid));
    }
    return OK;
}

err view_check(const json_t *view, const json_t *requirements, struct error *error)
{
    if (requirements != NULL && !json_is_array(requirements)) {
        return view_invalid(error, "requirements must be an array");
    }
    for (size_t i = 0; i < json_array_size(requirements); i++) {
        TRY(view_check_one(view, json_array_get(requirements, i), error));
    }
    return OK;
}

/* ---- what is kept ---- */

static bool view_has_dialect(const json_t *version, str dialect)
{
    const json_t *items = json_object_get(version, "representations");
    for (size_t i = 0; i < json_array_size(items); i++) {
        str other = document_text(json_array_get(items, i), "dialect");
        if (other.data != NULL && str_equal_ignore_case(other, dialect)) {
            return true;
        }
    }
    return false;
}

/* An engine that reads one dialect must not lose the view by another's replace. */
MUST_USE static err view_check_dialects(const json_t *before, const json_t *root,
                                        struct error *error)
{
    const json_t *old = view_version(before, document_i64_or(before, "current-version-id", -1));
    const json_t *new = view_version(root, document_i64_or(root, "current-version-id", -1));
    const json_t *items = json_object_get(old, "representations");
    if (str_equal_ignore_case(view_property(root, VIEW_DIALECT_PROPERTY), STR("true"))) {
        return OK;
    }
    for (size_t i = 0; i < json_array_size(items); i++) {
        str dialect = document_text(json_array_get(items, i), "dialect");
        if (dialect.data != NULL && !view_has_dialect(new, dialect)) {
            return error_set(error, INVALID, ERROR_INVALID_VIEW,
                             "Cannot replace view due to loss of view dialects "
                             "(" VIEW_DIALECT_PROPERTY "=false): %.*s",
                             STR_ARG(dialect));
        }
    }
    return OK;
}

/* The lowest id that is no current version's, of more than one version. */
static size_t view_oldest(const json_t *versions, i64 current)
{
    size_t oldest = 0;
    i64 lowest = INT64_MAX;
    for (size_t i = 0; i < json_array_size(versions); i++) {
        i64 id = document_i64_or(json_array_get(versions, i), "version-id", 0);
        if (id != current && id < lowest) {
            lowest = id;
            oldest = i;
        }
    }
    return oldest;
}

/* The last entries stay. A gap would make a lookup by time answer wrongly: what stands before it
 * goes too. */
static void view_cut_log(json_t *root)
{
    json_t *log = document_array(root, "version-log");
    size_t size = json_array_size(log);
    size_t from = size > VIEW_ITEMS_MAX ? size - VIEW_ITEMS_MAX : 0;
    for (size_t i = from; i < size; i++) {
        i64 id = document_i64_or(json_array_get(log, i), "version-id", -1);
        from = view_version(root, id) == NULL ? i + 1 : from;
    }
    for (size_t i = 0; i < from; i++) {
        json_array_remove(log, 0);
    }
}

/* At least what this change made stays. */
MUST_USE static err view_expire(const struct view_change *change, struct error *error)
{
    i64 keep = VIEW_VERSIONS_KEPT;
    str text = view_property(change->root, VIEW_HISTORY_PROPERTY);
    if (text.data != NULL && (!str_to_i64(text, &keep) || keep < 1)) {
        return error_set(error, INVALID, ERROR_INVALID_VIEW,
                         VIEW_HISTORY_PROPERTY " must be positive but was %.*s", STR_ARG(text));
    }
    keep = num_max_i64(keep, (i64)json_array_size(change->added));
    json_t *versions = document_array(change->root, "versions");
    i64 current = document_i64_or(change->root, "current-version-id", -1);
    while ((i64)json_array_size(versions) > keep) {
        json_array_remove(versions, view_oldest(versions, current));
    }
    view_cut_log(change->root);
    return OK;
}

MUST_USE static err view_run(struct view_change *change, const json_t *updates, struct error *error)
{
    if (!json_is_array(updates) || json_array_size(updates) > VIEW_ITEMS_MAX) {
        return error_set(error, INVALID, ERROR_INVALID_VIEW,
                         "updates must be an array of at most %d", VIEW_ITEMS_MAX);
    }
    for (size_t i = 0; i < json_array_size(updates); i++) {
        TRY(view_apply_one(change, json_array_get(updates, i), error));
    }
    TRY(view_expire(change, error));
    return view_validate(change->root, error);
}

err view_apply(const json_t *view, const json_t *updates, instant now, json_t **out_after,
               bool *out_changed, struct error *error)
{
    json_auto_t *root = document_copy(view);
    json_auto_t *added = json_array();
    struct view_change change = {
        .root = root, .now_ms = now / 1000, .last_schema = -1, .last_version = -1, .added = added};
    TRY(view_run(&change, updates, error));
    TRY(view_check_dialects(view, root, error));
    *out_after = json_incref(root);
    *out_changed = change.changed;
    return OK;
}

/* ---- the first one ---- */

/* The list of updates that makes a view out of nothing; a new reference. */
static json_t *view_first_updates(const json_t *request)
{
    const json_t *schema = json_object_get(request, "schema");
    json_t *version = json_deep_copy(json_object_get(request, "view-version"));
    i64 sent = document_i64_or(schema, "schema-id", 0);
    if (json_is_object(version) && document_i64_or(version, "schema-id", sent) == sent) {
        document_set_i64(version, "schema-id", -1);
    }
    const json_t *properties = json_object_get(request, "properties");
    bool none = properties == NULL || json_is_null(properties);
    return json_pack("[{s:s, s:O?}, {s:s, s:o?}, {s:s, s:i}, {s:s, s:o}]", "action", "add-schema",
                     "schema", schema, "action", "add-view-version", "view-version", version,
                     "action", "set-current-view-version", "view-version-id", -1, "action",
                     "set-properties", "updates", none ? json_object() : document_copy(properties));
}

err view_create(const json_t *request, str location, const struct seam *seam, json_t **out_view,
                struct error *error)
{
    char uuid[ID_UUID_SIZE];
    json_auto_t *root = json_object();
    json_auto_t *added = json_array();
    json_auto_t *updates = view_first_updates(request);
    struct view_change change = {.root = root,
                                 .now_ms = seam_now(seam) / 1000,
                                 .last_schema = -1,
                                 .last_version = -1,
                                 .added = added};
    document_set_text(root, "view-uuid", id_uuid_format(id_uuid_make(seam), uuid));
    document_set_i64(root, "format-version", 1);
    document_set_text(root, "location", location);
    TRY(view_run(&change, updates, error));
    *out_view = json_incref(root);
    return OK;
}
