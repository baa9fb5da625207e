#include "table/metadata_text.h"

#include "table/document.h"
#include "table_fixture.h"

/* ---- a table that many commits change, each at random ---- */

enum { ROUNDS = 120, TABLES = 40, UPDATES_MAX = 3, EARLIER = 4 };

struct story {
    struct arena *arena; /* of one round */
    u64 seed;
    i64 snapshots; /* ids given */
    i64 files;
    struct metadata *base;
    struct metadata_text *texts[EARLIER]; /* of the versions before; [0] of the base, or NULL */
};

static size_t pick(struct story *story, size_t count)
{
    story->seed = story->seed * 6364136223846793005ULL + 1442695040888963407ULL;
    return (size_t)(story->seed >> 33) % count;
}

/* With what must be escaped, and with what must not. */
static const char *some_text(struct story *story)
{
    static const char *const texts[] = {
        "", "plain", "a \\\"quote\\\"", "\\\\", "\\u0001\\n", "\xc3\xa9t\xc3\xa9", "],[{", "/"};
    return texts[pick(story, ARRAY_COUNT(texts))];
}

static i64 some_snapshot(struct story *story)
{
    const json_t *snapshots = fixture_member(story->base, "snapshots");
    size_t count = json_array_size(snapshots);
    return count == 0
               ? 77777
               : document_i64_or(json_array_get(snapshots, pick(story, count)), "snapshot-id", 0);
}

static str append_of(struct story *story)
{
    long long id = (long long)++story->snapshots;
    long long sequence = (long long)metadata_last_sequence_number(story->base) + 1;
    long long next = (long long)metadata_next_row_id(story->base);
    str rows = metadata_format_version(story->base) < 3
                   ? STR("")
                   : str_format(story->arena, "'first-row-id':%lld,'added-rows':5,", next);
    return str_format(story->arena,
                      "{'action':'add-snapshot','snapshot':{'snapshot-id':%lld,%.*s"
                      "'sequence-number':%lld,'timestamp-ms':%lld,'parent-snapshot-id':null,"
                      "'manifest-list':'l%lld','schema-id':0,"
                      "'summary':{'operation':'append','note':'%s'}}},"
                      "{'action':'set-snapshot-ref','ref-name':'main','type':'branch',"
                      "'snapshot-id':%lld}",
                      id, STR_ARG(rows), sequence, (long long)FIXTURE_NOW_MS + id, id,
                      some_text(story), id);
}

static str update_of(struct story *story)
{
    long long id = (long long)some_snapshot(story);
    size_t n = pick(story, 4);
    switch (pick(story, 14)) {
    case 0:
        return str_format(story->arena, "{'action':'set-properties','updates':{'k%zu':'%s'}}", n,
                          some_text(story));
    case 1:
        return str_format(story->arena, "{'action':'remove-properties','removals':['k%zu']}", n);
    case 2:
        return str_format(story->arena, "{'action':'remove-snapshots','snapshot-ids':[%lld]}", id);
    case 3:
        return str_format(story->arena,
                          "{'action':'set-snapshot-ref','ref-name':'tag%zu','type':'tag',"
                          "'snapshot-id':%lld}",
                          n, id);
    case 4:
        return str_format(story->arena, "{'action':'remove-snapshot-ref','ref-name':'%s%zu'}",
                          n == 0 ? "main" : "tag", n);
    case 5:
        return str_format(story->arena,
                          "{'action':'set-statistics','statistics':{'snapshot-id':%lld,"
                          "'statistics-path':'p%zu','x':[1.5,true,null]}}",
                          id, n);
    case 6:
        return str_format(story->arena, "{'action':'remove-statistics','snapshot-id':%lld}", id);
    case 7:
        return str_format(story->arena,
                          "{'action':'add-schema','schema':{'type':'struct','fields':["
                          "{'id':1,'name':'id%zu','required':true,'type':'long'}]}},"
                          "{'action':'set-current-schema','schema-id':-1}",
                          n);
    case 8:
        return str_format(story->arena, "{'action':'set-location','location':'file:///w/%zu'}", n);
    case 9:
        return str_format(story->arena,
                          "{'action':'set-properties','updates':{"
                          "'write.metadata.previous-versions-max':'%zu'}}",
                          n + 1);
    case 10:
        return str_format(story->arena, "{'action':'upgrade-format-version','format-version':%zu}",
                          n);
    default:
        return append_of(story);
    }
}

/* NULL: the table would not take these updates. */
static struct metadata *next_version(struct story *story)
{
    struct metadata *after = NULL;
    buf list = buf_create(story->arena, 256, MIB);
    buf_append_byte(&list, '[');
    for (size_t i = pick(story, UPDATES_MAX) + 1; i-- > 0;) {
        buf_append(&list, update_of(story));
        buf_append(&list, i > 0 ? STR(",") : STR("]"));
    }
    buf_append_byte(&list, '\0');
    AUTO_JSON json_t *updates = fixture_json(list.data);
    str file = str_format(story->arena, "file:///w/t/metadata/m%lld.json",
                          (long long)story->files++);
    assert_int_equal(metadata_copy(story->base, &after, NULL), OK);
    if (metadata_apply(after, updates, FIXTURE_NOW, file, NULL) != OK) {
        metadata_close(after);
        return NULL;
    }
    return after;
}

/* The process begins again: the same version, none of its text. */
static void read_again(struct story *story)
{
    str text = fixture_text(story->arena, story->base);
    metadata_close(story->base);
    assert_int_equal(metadata_parse(text, &story->base, NULL), OK);
    if (pick(story, 2) == 0) {
        metadata_text_close(story->texts[0]);
        story->texts[0] = NULL;
    }
}

static void take(struct story *story, struct metadata *after, struct metadata_text *text)
{
    metadata_text_close(story->texts[EARLIER - 1]);
    memmove(&story->texts[1], &story->texts[0], (EARLIER - 1) * sizeof(struct metadata_text *));
    story->texts[0] = text;
    metadata_close(story->base);
    story->base = after;
}

/* True when there was a new version. */
static bool go_on(struct story *story)
{
    arena_reset(story->arena);
    if (pick(story, 10) == 0) {
        read_again(story);
    }
    str base = fixture_text(story->arena, story->base);
    struct metadata *after = next_version(story);
    assert_true(str_equal(fixture_text(story->arena, story->base), base));
    if (after == NULL) {
        return false;
    }
    const struct metadata_text *before =
        story->texts[pick(story, 4) == 0 ? pick(story, EARLIER) : 0];
    struct metadata_text *text = NULL;
    assert_int_equal(metadata_text_print(after, before, &text, NULL), OK);
    assert_true(str_equal(metadata_text_bytes(text), fixture_text(story->arena, after)));
    assert_ptr_equal(metadata_text_document(text), after);
    take(story, after, text);
    return true;
}

/* Takes the document. */
static int tell(u64 seed, struct metadata *first)
{
    AUTO_ARENA struct arena *arena = arena_create((size_t)64 * MIB);
    struct story story = {.arena = arena, .seed = seed, .snapshots = 100, .base = first};
    int versions = 0;
    for (int round = 0; round < ROUNDS; round++) {
        versions += go_on(&story) ? 1 : 0;
    }
    metadata_close(story.base);
    for (size_t i = 0; i < EARLIER; i++) {
        metadata_text_close(story.texts[i]);
    }
    return versions;
}

static void text_of_any_commit_is_the_document_printed_whole(void **state)
{
    (void)state;
    static const char *const formats[] = {"1", "2", "3"};
    int versions = 0;
    for (u64 seed = 0; seed < TABLES; seed++) {
        versions += tell(seed, fixture_table(formats[seed % ARRAY_COUNT(formats)], ""));
    }
    assert_true(versions > TABLES * ROUNDS / 4);
}

/* Members in another order, white space, escapes that we do not write, members that nobody knows.
 */
#define OTHERS_TEXT                                                                                \
    "{ \"snapshots\" : [ { \"snapshot-id\" : 9, \"sequence-number\":1,\"timestamp-ms\":1,\n"       \
    "\"manifest-list\" : \"a\\/b\", \"summary\":{\"operation\":\"append\",\"u\":\"\\u00e9\"} } ]," \
    "\"refs\":{\"main\":{\"type\":\"branch\",\"snapshot-id\":9}}, \"current-snapshot-id\":9,\n\n"  \
    "\"snapshot-log\":[\t{\"snapshot-id\":9,\"timestamp-ms\":1}],\"future\":[1.50,{\"a\":[ ]}],"   \
    "\"format-version\":2,\"table-uuid\":\"9c12d441-03fe-4693-9a96-a0705ddf69c1\","                \
    "\"location\":\"file:///w/t\",\"last-sequence-number\":1,\"last-updated-ms\":5,"               \
    "\"last-column-id\":1,\"current-schema-id\":0,\"schemas\":[{\"schema-id\":0,\"type\":"         \
    "\"struct\",\"fields\":[{\"required\":true,\"type\":\"long\",\"name\":\"id\",\"id\":1}]}],"    \
    "\"default-spec-id\":0,\"partition-specs\":[{\"fields\":[],\"spec-id\":0}],"                   \
    "\"last-partition-id\":999,\"default-sort-order-id\":0,"                                       \
    "\"sort-orders\":[{\"order-id\":0,\"fields\":[]}],\"properties\":{\"owner\":\"spark\"} }\n"

static void text_after_a_file_of_another_writer_is_the_document_printed_whole(void **state)
{
    (void)state;
    for (u64 seed = 0; seed < TABLES; seed++) {
        struct metadata *first = NULL;
        assert_int_equal(metadata_parse(STR(OTHERS_TEXT), &first, NULL), OK);
        assert_true(tell(seed, first) > 0);
    }
}

static void a_text_lives_as_long_as_somebody_has_it(void **state)
{
    (void)state;
    struct metadata *metadata = fixture_table("2", "");
    struct metadata_text *text = NULL;
    assert_int_equal(metadata_text_print(metadata, NULL, &text, NULL), OK);
    struct metadata_text *other = metadata_text_share(text);
    metadata_close(metadata);
    metadata_text_close(text);
    assert_true(str_starts(metadata_text_bytes(other), STR("{\"")));
    metadata_text_close(other);
    assert_null(metadata_text_share(NULL));
    metadata_text_close(NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(text_of_any_commit_is_the_document_printed_whole),
        cmocka_unit_test(text_after_a_file_of_another_writer_is_the_document_printed_whole),
        cmocka_unit_test(a_text_lives_as_long_as_somebody_has_it),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
