/* accept_work GROUP GROUPS: the ledger's transactions of so many groups of so many batches.
 * accept_work GROUP GROUPS finish: the transactions of a roll that takes all of them. */
#include "io/db.h"
#include "sink/ledger.h"
#include "work.h"

#include <unistd.h>

enum { GROUP_MAX = 1024 };

#define SINK STR("snk_0123456789ab")

struct scene {
    struct arena *arena;
    struct db db;
    str node_id;
    str answer;
    i64 group;
    i64 groups;
    bool finish;
};

void work(struct scene *scene);

static struct ledger_accept item_make(const struct scene *scene, struct arena *arena, i64 number,
                                      struct uid uid, instant now)
{
    return (struct ledger_accept){
        .batch_id = str_format(arena, "intake-%lld", (long long)number),
        .uid = uid,
        .object_key = str_format(arena, "_sink/snk_0123456789ab/intake-%lld.%.*s.ndjson",
                                 (long long)(number - number % scene->group),
                                 STR_ARG(id_uid_str(&uid))),
        .offset = number % scene->group * 1024,
        .bytes = 1023,
        .rows = 7,
        .received_at = now,
        .began_at = now,
        .answer = scene->answer,
    };
}

static void group_accept(const struct scene *scene, i64 index)
{
    AUTO_ARENA struct arena *arena = arena_create(WORK_ARENA_BYTES);
    struct ledger_accept *items = arena_array(arena, (size_t)scene->group, sizeof(*items));
    struct error error = {0};
    struct uid uid = id_uid_make(seam_system());
    instant now = seam_now(seam_system());
    for (i64 i = 0; i < scene->group; i++) {
        items[i] = item_make(scene, arena, index * scene->group + i, uid, now);
    }
    if (ledger_accept(&scene->db, arena, scene->node_id, SINK, LEDGER_BACKLOG_DEFAULT, LEDGER_LATER,
                      items, (size_t)scene->group, &error) != OK ||
        items[0].outcome != ACCEPT_NEW) {
        work_fail(error.message);
    }
}

static void accept_all(const struct scene *scene)
{
    for (i64 i = 0; i < scene->groups; i++) {
        group_accept(scene, i);
    }
}

static void finish_all(const struct scene *scene)
{
    struct ledger_plan plan = {0};
    struct ledger_batch *batches = NULL;
    struct error error = {0};
    size_t count = 0;
    struct uid id = id_uid_make(seam_system());
    if (ledger_make_plan(&scene->db, scene->arena, SINK, id_uid_str(&id), WORK_BYTES_MAX, INT32_MAX,
                         STR("asked"), &plan, &error) != OK ||
        ledger_plan_batches(&scene->db, scene->arena, plan.id, &batches, &count, &error) != OK ||
        ledger_mark_attempted(&scene->db, plan.id, STR("{}"), STR("{}"), LEDGER_LATER, &error) !=
            OK) {
        work_fail(error.message);
    }
    struct ledger_verdict *verdicts = arena_array(scene->arena, count, sizeof(*verdicts));
    for (size_t i = 0; i < count; i++) {
        verdicts[i] = (struct ledger_verdict){batches[i].batch_id, batches[i].rows, 0};
    }
    const struct ledger_outcome outcome = {.verdicts = verdicts, .verdict_count = count};
    if ((i64)count != scene->group * scene->groups ||
        ledger_finish_plan(&scene->db, plan.id, &outcome, &error) != OK) {
        work_fail(error.message);
    }
}

WORK void work(struct scene *scene)
{
    if (scene->finish) {
        finish_all(scene);
    } else {
        accept_all(scene);
    }
}

static void scene_open(struct scene *scene, str path)
{
    struct error error = {0};
    instant now = 0;
    struct ledger_sink sink = {.id = SINK,
                               .project = STR("prj_0123456789ab"),
                               .warehouse = STR("garden"),
                               .namespace_name = STR("bench"),
                               .table_name = STR("t"),
                               .table_uuid = STR("9c12d441-03fe-4693-9a96-a0705ddf69c1"),
                               .name = STR("t"),
                               .roll_seconds = 300,
                               .roll_bytes = 64 * MIB,
                               .unknown_fields = STR("reject"),
                               .idempotency = STR("required"),
                               .send_key_id = STR("0123456789ab"),
                               .claim_id = STR("0123456789abcdefghjkmnpqrs")};
    if (db_open_sqlite(scene->arena, path, seam_system(), &scene->db, &error) != OK ||
        ledger_open(&scene->db, seam_system(), &error) != OK ||
        ledger_register_node(&scene->db, scene->node_id, STR("intake"), &now, &error) != OK ||
        ledger_insert_sink(&scene->db, &sink, &error) != OK ||
        ledger_attempt_claim(&scene->db, SINK, &error) != OK ||
        ledger_finish_claim(&scene->db, SINK, &error) != OK) {
        work_fail(error.message);
    }
}

int main(int argc, char **argv)
{
    char directory[] = "/tmp/lhbox-accept-XXXXXX";
    AUTO_ARENA struct arena *arena = arena_create(WORK_ARENA_BYTES);
    struct scene scene = {.arena = arena, .node_id = STR("nod_0123456789ab")};
    scene.finish = argc == 4 && strcmp(argv[3], "finish") == 0;
    if (argc != (scene.finish ? 4 : 3) || !str_to_i64(str_from(argv[1]), &scene.group) ||
        scene.group > GROUP_MAX || !str_to_i64(str_from(argv[2]), &scene.groups) ||
        mkdtemp(directory) == NULL) {
        work_fail("usage: GROUP GROUPS [finish]");
    }
    scene.answer = STR(
        "{\"batch_id\":\"intake-123456\",\"state\":\"pending\",\"rows\":7,\"bytes\":1023,"
        "\"refused\":[]}");
    str path = str_format(arena, "%s/ledger.db", directory);
    scene_open(&scene, path);
    if (scene.finish) {
        accept_all(&scene);
    }
    work(&scene);
    db_close(&scene.db);
    (void)unlink(path.data);
    return rmdir(directory);
}
