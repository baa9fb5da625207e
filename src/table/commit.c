#include "table/commit.h"

#include "base/assert.h"
#include "base/planted.h"
#include "table/commit_summary.h"
#include "table/document.h"
#include "table/merge.h"
#include "table/write.h"

enum { SNAPSHOT_ID_BITS = 53 };

#define COMMIT_METADATA_PATH_PROPERTY "write.metadata.path"

/* What one try works on. */
struct commit_try {
    struct arena *arena;
    const struct location_set *locations;
    const struct metadata *metadata;
    struct append *append;
    struct store_group *group;
    i32 format_version;
    bool has_parent;
    i64 parent_id;
    const json_t *parent; /* NULL: the table is empty */
    i64 sequence_number;
    i64 first_row_id; /* version 3; -1 before */
    i64 next_row_id;
    i64 timestamp_ms;
    struct schema schema;
    struct partition_spec spec; /* of the files, else the default */
    struct manifest_list list;
    struct summary_manifests manifests;
    str list_path;
};

i64 commit_snapshot_id(const struct seam *seam)
{
    i64 id = 0;
    while (id == 0) {
        u64 bits = 0;
        seam_random(seam, &bits, sizeof(bits));
        id = (i64)(bits >> (64 - SNAPSHOT_ID_BITS));
    }
    return id;
}

struct append commit_begin(const struct seam *seam)
{
    struct append append = {.snapshot_id = commit_snapshot_id(seam)};
    (void)id_uuid_format(id_uuid_make(seam), append.commit_uuid);
    return append;
}

/* ---- paths ---- */

/* A name beside the metadata. */
MUST_USE static err commit_stem(const struct commit_try *commit, str name, str *out_path,
                                struct error *error)
{
    str folder = write_folder(commit->arena, commit->metadata, COMMIT_METADATA_PATH_PROPERTY,
                              "metadata");
    str path = str_format(commit->arena, "%.*s/%.*s", STR_ARG(folder), STR_ARG(name));
    if (folder.data == NULL || name.data == NULL || path.data == NULL) {
        return error_memory(error);
    }
    *out_path = path;
    return OK;
}

/* Readers pick what they read by the suffix. */
MUST_USE static err commit_file_path(const struct commit_try *commit, str name, str *out_path,
                                     struct error *error)
{
    str stem = {NULL, 0};
    TRY(commit_stem(commit, name, &stem, error));
    *out_path = str_format(commit->arena, "%.*s.avro", STR_ARG(stem));
    return out_path->data == NULL ? error_memory(error) : OK;
}

/* ---- the base ---- */

MUST_USE static err commit_find_parent(struct commit_try *commit, struct error *error)
{
    commit->has_parent = metadata_main(commit->metadata, &commit->parent_id);
    if (!commit->has_parent) {
        return OK;
    }
    commit->parent = metadata_snapshot(commit->metadata, commit->parent_id);
    if (commit->parent == NULL) {
        return error_set(error, CORRUPT, ERROR_INTERNAL, "the table has no snapshot %lld",
                         (long long)commit->parent_id);
    }
    return OK;
}

MUST_USE static err commit_open(struct commit_try *commit, const struct seam *seam,
                                struct error *error)
{
    const struct metadata *metadata = commit->metadata;
    const struct append *append = commit->append;
    commit->format_version = metadata_format_version(metadata);
    if (commit->format_version < 2) {
        return error_set(error, INVALID, ERROR_FORMAT_VERSION_UNSUPPORTED,
                         "tables of format version 1 are not written");
    }
    TRY(commit_find_parent(commit, error));
    TRY(metadata_schema(commit->arena, metadata, &commit->schema, error));
    TRY(metadata_spec(commit->arena, metadata, &commit->spec, error));
    if (append->file_count > 0) { /* files keep the spec under which they were written */
        TRY(metadata_spec_by_id(commit->arena, metadata, append->files[0].spec_id, &commit->spec,
                                error));
    }
    commit->first_row_id = metadata_next_row_id(metadata);
    commit->next_row_id = commit->first_row_id;
    commit->timestamp_ms = num_max_i64(seam_now(seam) / 1000,
                                       metadata_last_updated(metadata) / 1000 + 1);
    if (!num_add_i64(metadata_last_sequence_number(metadata), 1, &commit->sequence_number)) {
        return error_set(error, CORRUPT, ERROR_INTERNAL, "sequence numbers are used up");
    }
    return OK;
}

/* ---- the files ---- */

MUST_USE static err commit_write_manifest(struct commit_try *commit, struct error *error)
{
    struct append *append = commit->append;
    if (append->manifest_written || append->file_count == 0) {
        return OK;
    }
    str name = str_format(commit->arena, "%.*s-m0", (int)sizeof(append->commit_uuid),
                          append->commit_uuid);
    str path = {NULL, 0};
    str bytes = {NULL, 0};
    struct manifest_file manifest = {0};
    TRY(commit_file_path(commit, name, &path, error));
    TRY(manifest_write(commit->arena, commit->metadata, &commit->schema, &commit->spec,
                       append->snapshot_id, append->files, append->file_count, path, &bytes,
                       &manifest, error));
    TRY(location_group_put(commit->locations, commit->arena, path, commit->group, &bytes, 1,
                           error));
    append->manifest = manifest;
    append->manifest_written = true;
    CRASH_POINT(commit_manifest_written);
    return OK;
}

static bool commit_lacks_counts(const struct manifest_file *file)
{
    return file->added_files < 0 || file->existing_files < 0 || file->deleted_files < 0 ||
           file->added_rows < 0 || file->existing_rows < 0 || file->deleted_rows < 0;
}

/* A file that the table names must be there. "Not found" would be read as: no such table. */
MUST_USE static err commit_get(const struct commit_try *commit, str path, str *out_bytes,
                               struct error *error)
{
    err result = location_get(commit->locations, commit->arena, path, out_bytes, error);
    if (result == NOT_FOUND) {
        return error_set(error, CORRUPT, ERROR_INTERNAL, "%.*s is gone", STR_ARG(path));
    }
    return result;
}

MUST_USE static err commit_read_parent(const struct commit_try *commit,
                                       struct manifest_list *out_list, struct error *error)
{
    str bytes = {NULL, 0};
    str path = document_text(commit->parent, "manifest-list");
    if (path.size == 0) {
        return error_set(error, INVALID, ERROR_FORMAT_VERSION_UNSUPPORTED,
                         "the table's snapshot is of format version 1 and has no manifest list");
    }
    TRY(commit_get(commit, path, &bytes, error));
    TRY(manifest_list_read(commit->arena, bytes, out_list, error));
    for (size_t i = 0; i < out_list->count; i++) {
        struct manifest_file *file = &out_list->files[i];
        if (commit_lacks_counts(file)) {
            TRY(commit_get(commit, file->path, &bytes, error));
            TRY(manifest_count(commit->arena, bytes, file, error));
        }
    }
    return OK;
}

/* Rows of a data manifest that has no row ids yet take the next ones; those of deletes never do. */
MUST_USE static err commit_assign_rows(struct commit_try *commit, struct error *error)
{
    for (size_t i = 0; i < commit->list.count && commit->format_version >= 3; i++) {
        struct manifest_file *file = &commit->list.files[i];
        if (file->content != 0) {
            file->first_row_id = -1; /* some writers give one */
            continue;
        }
        if (file->first_row_id >= 0) {
            continue;
        }
        file->first_row_id = commit->next_row_id;
        if (!num_add_i64(commit->next_row_id, file->added_rows, &commit->next_row_id) ||
            !num_add_i64(commit->next_row_id, file->existing_rows, &commit->next_row_id)) {
            return error_set(error, CORRUPT, ERROR_INTERNAL, "row ids are used up");
        }
    }
    return OK;
}

/* The new manifest first, then all of the parent's in their order, deletes included. */
MUST_USE static err commit_make_list(struct commit_try *commit, struct error *error)
{
    struct manifest_list parent = {0};
    const struct append *append = commit->append;
    if (commit->has_parent) {
        TRY(commit_read_parent(commit, &parent, error));
    }
    size_t fresh = append->file_count > 0 ? 1 : 0;
    struct manifest_file *files = arena_array(commit->arena, parent.count + fresh, sizeof(*files));
    if (files == NULL) {
        return error_memory(error);
    }
    if (fresh > 0) {
        files[0] = append->manifest;
        files[0].sequence_number = commit->sequence_number;
        files[0].min_sequence_number = commit->sequence_number;
    }
    if (parent.count > 0) {
        memcpy(files + fresh, parent.files, parent.count * sizeof(*files));
    }
    commit->list = (struct manifest_list){files, parent.count + fresh};
    commit->manifests = (struct summary_manifests){.created = (i64)fresh,
                                                   .kept = (i64)parent.count};
    return commit_assign_rows(commit, error);
}

/* A list of its own for every try: one that was made for an older base must never be taken
 * again. */
MUST_USE static err commit_write_list(struct commit_try *commit, struct error *error)
{
    const struct append *append = commit->append;
    str name = str_format(commit->arena, "snap-%lld-%d-%.*s", (long long)append->snapshot_id,
                          append->try_number, (int)sizeof(append->commit_uuid),
                          append->commit_uuid);
    str bytes = {NULL, 0};
    TRY(commit_file_path(commit, name, &commit->list_path, error));
    TRY(manifest_list_write(commit->arena, commit->format_version, append->snapshot_id,
                            commit->has_parent, commit->parent_id, commit->sequence_number,
                            commit->first_row_id, &commit->list, &bytes, error));
    TRY(location_group_put(commit->locations, commit->arena, commit->list_path, commit->group,
                           &bytes, 1, error));
    CRASH_POINT(commit_list_written);
    return OK;
}

/* ---- the request ---- */

static json_t *commit_requirement(json_t *requirements, const char *type)
{
    json_t *requirement = json_object();
    document_set_text(requirement, "type", str_from(type));
    document_append(requirements, requirement);
    return requirement;
}

static void commit_add_requirements(const struct commit_try *commit, json_t *requirements)
{
    const json_t *root = metadata_json(commit->metadata);
    json_t *uuid = commit_requirement(requirements, "assert-table-uuid");
    document_set_text(uuid, "uuid", metadata_uuid(commit->metadata));
    json_t *ref = commit_requirement(requirements, "assert-ref-snapshot-id");
    document_set_text(ref, "ref", STR("main"));
    /* Null stands for "not there" and must be written. */
    document_set(ref, "snapshot-id",
                 commit->has_parent ? json_integer(commit->parent_id) : json_null());
    json_t *schema = commit_requirement(requirements, "assert-current-schema-id");
    document_set_i64(schema, "current-schema-id", commit->schema.id);
    json_t *spec = commit_requirement(requirements, "assert-default-spec-id");
    document_set_i64(spec, "default-spec-id", document_i64_or(root, "default-spec-id", 0));
}

static json_t *commit_update(json_t *updates, const char *action)
{
    json_t *update = json_object();
    document_set_text(update, "action", str_from(action));
    document_append(updates, update);
    return update;
}

static json_t *commit_snapshot(const struct commit_try *commit, json_t *summary)
{
    json_t *snapshot = json_object();
    document_set_i64(snapshot, "snapshot-id", commit->append->snapshot_id);
    if (commit->has_parent) { /* null would make the table unreadable */
        document_set_i64(snapshot, "parent-snapshot-id", commit->parent_id);
    }
    document_set_i64(snapshot, "sequence-number", commit->sequence_number);
    document_set_i64(snapshot, "timestamp-ms", commit->timestamp_ms);
    document_set_text(snapshot, "manifest-list", commit->list_path);
    document_set(snapshot, "summary", summary);
    document_set_i64(snapshot, "schema-id", commit->schema.id);
    if (commit->format_version >= 3) {
        document_set_i64(snapshot, "first-row-id", commit->first_row_id);
        document_set_i64(snapshot, "added-rows", commit->next_row_id - commit->first_row_id);
    }
    return snapshot;
}

/* The ref as it is, on the new snapshot: an update without its retention would wipe that. */
static void commit_add_ref(const struct commit_try *commit, json_t *updates)
{
    static const char *const RETENTION[] = {"min-snapshots-to-keep", "max-snapshot-age-ms",
                                            "max-ref-age-ms"};
    const json_t *refs = json_object_get(metadata_json(commit->metadata), "refs");
    const json_t *present = json_object_get(refs, "main");
    json_t *update = commit_update(updates, "set-snapshot-ref");
    document_set_text(update, "ref-name", STR("main"));
    document_set_text(update, "type", STR("branch"));
    document_set_i64(update, "snapshot-id", commit->append->snapshot_id);
    for (size_t i = 0; i < ARRAY_COUNT(RETENTION); i++) {
        i64 value = 0;
        if (document_i64(present, RETENTION[i], &value)) {
            document_set_i64(update, RETENTION[i], value);
        }
    }
}

static void commit_add_properties(const struct append *append, json_t *updates)
{
    if (append->property_count > 0) {
        json_t *update = commit_update(updates, "set-properties");
        json_t *values = document_object(update, "updates");
        for (size_t i = 0; i < append->property_count; i++) {
            document_set_entry(values, append->properties[i].key, append->properties[i].value);
        }
    }
    if (append->removed_property_count > 0) {
        json_t *update = commit_update(updates, "remove-properties");
        json_t *keys = document_array(update, "removals");
        for (size_t i = 0; i < append->removed_property_count; i++) {
            document_append(keys, document_string(str_from(append->removed_properties[i])));
        }
    }
}

MUST_USE static err commit_make_request(const struct commit_try *commit, json_t **out_request,
                                        struct error *error)
{
    json_t *summary = NULL;
    TRY(commit_summary(commit->arena, commit->append, commit->parent, commit->spec.count,
                       &commit->manifests, &summary, error));
    json_t *request = json_object();
    commit_add_requirements(commit, document_array(request, "requirements"));
    json_t *updates = document_array(request, "updates");
    json_t *add = commit_update(updates, "add-snapshot");
    document_set(add, "snapshot", commit_snapshot(commit, summary));
    commit_add_ref(commit, updates);
    commit_add_properties(commit->append, updates);
    PLANTED_ACT(2, true, request, NULL, NULL);
    *out_request = request;
    return OK;
}

MUST_USE static err commit_write(struct commit_try *commit, struct error *error)
{
    TRY(commit_write_manifest(commit, error));
    TRY(commit_make_list(commit, error));
    return commit_write_list(commit, error);
}

err commit_append(struct arena *arena, const struct location_set *locations,
                  const struct table *base, const struct seam *seam, struct append *append,
                  json_t **out_request, struct error *error)
{
    assert(append->snapshot_id > 0);
    assert(append->try_number < INT32_MAX);
    struct store_group own = {.arena = arena};
    struct commit_try commit = {
        .arena = arena,
        .locations = locations,
        .metadata = base->metadata,
        .append = append,
        .group = append->group != NULL ? append->group : &own,
    };
    append->try_number++;
    TRY(commit_open(&commit, seam, error));
    err result = commit_write(&commit, error);
    if (result != OK) {
        store_group_drop(commit.group);
        return result;
    }
    TRY(store_group_end(&own, error));
    return commit_make_request(&commit, out_request, error);
}

/* ---- manifests alone ---- */

/* Leaves the list empty where there is nothing to merge. */
MUST_USE static err commit_pack(struct commit_try *commit, struct error *error)
{
    struct manifest_list parent = {0};
    const struct append *append = commit->append;
    str name = str_format(commit->arena, "%.*s-m", (int)sizeof(append->commit_uuid),
                          append->commit_uuid);
    struct merge merge = {
        .arena = commit->arena,
        .locations = commit->locations,
        .metadata = commit->metadata,
        .schema = &commit->schema,
        .snapshot_id = append->snapshot_id,
        .sequence_number = commit->sequence_number,
        .group = commit->group,
    };
    TRY(commit_stem(commit, name, &merge.prefix, error));
    TRY(commit_read_parent(commit, &parent, error));
    TRY(merge_pack(&merge, &parent, error));
    if (merge.replaced == 0) {
        return OK;
    }
    commit->list = merge.list;
    commit->manifests = (struct summary_manifests){.created = (i64)merge.created,
                                                   .kept = (i64)(merge.list.count - merge.created),
                                                   .replaced = (i64)merge.replaced,
                                                   .entries = merge.entries};
    TRY(commit_assign_rows(commit, error));
    return commit_write_list(commit, error);
}

bool commit_merge_due(const struct table *base)
{
    i64 head = 0;
    return metadata_main(base->metadata, &head) &&
           merge_may_be_due(base->metadata, metadata_snapshot(base->metadata, head));
}

err commit_merge(struct arena *arena, const struct location_set *locations,
                 const struct table *base, const struct seam *seam, json_t **out_request,
                 struct error *error)
{
    struct append append = commit_begin(seam);
    struct store_group group = {.arena = arena};
    struct commit_try commit = {
        .arena = arena,
        .locations = locations,
        .metadata = base->metadata,
        .append = &append,
        .group = &group,
    };
    append.try_number++;
    *out_request = NULL;
    TRY(commit_open(&commit, seam, error));
    if (!commit_merge_due(base)) {
        return OK;
    }
    err result = commit_pack(&commit, error);
    if (result != OK) {
        store_group_drop(&group);
        return result;
    }
    TRY(store_group_end(&group, error));
    return commit.manifests.replaced > 0 ? commit_make_request(&commit, out_request, error) : OK;
}
