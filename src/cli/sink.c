/* Sinks: made, changed, deleted. */
#include "cli/commands.h"
#include "cli/output.h"
#include "cli/remote.h"

#define POLICY_FLAGS                                                                               \
    {"roll-seconds", CLI_NUMBER, "N", "300", "roll when the oldest batch is so old"},              \
        {"roll-bytes", CLI_NUMBER, "N", "67108864", "roll when so many bytes wait"},               \
        {"inactivity-seconds", CLI_NUMBER, "N", "never", "roll when nothing came for so long"},    \
        {"unknown-fields", CLI_TEXT, "reject|ignore|capture:COLUMN", "reject",                     \
         "what a row gets that has a field the table has not"},                                    \
        {"idempotency", CLI_TEXT, "required|optional", "required", "must a send name its batch"}

static const struct cli_flag create_flags[] = {
    {"table", CLI_TEXT, "NAMESPACE.TABLE", NULL, "the table that the rows go to"},
    {"name", CLI_TEXT, "NAME", NULL, "what the sink is called"},
    {"save", CLI_TEXT, "FILE", NULL, "write the send key there, mode 0600"},
    {"show-key", CLI_SWITCH, NULL, NULL, "print it instead, once"},
    {"key", CLI_LIST, "COLUMN", NULL, "one row per key, the latest wins"},
    POLICY_FLAGS,
};

static const struct cli_flag update_flags[] = {
    {"name", CLI_TEXT, "NAME", NULL, "another name"},
    {"key", CLI_LIST, "COLUMN", NULL, "one row per key, the latest wins"},
    {"no-key", CLI_SWITCH, NULL, NULL, "append again"},
    {"no-inactivity", CLI_SWITCH, NULL, NULL, "no roll for inactivity"},
    POLICY_FLAGS,
};

static void add_text(struct cli *cli, json_t *body, const char *flag, const char *member)
{
    str text = cli_text(cli, flag);
    if (text.data != NULL) {
        json_object_set_new(body, member, json_stringn(text.data, text.size));
    }
}

static void add_number(struct cli *cli, json_t *body, const char *flag, const char *member)
{
    if (cli_given(cli, flag)) {
        json_object_set_new(body, member, json_integer((json_int_t)cli_number(cli, flag, 0)));
    }
}

static void add_policy(struct cli *cli, json_t *body)
{
    add_text(cli, body, "name", "name");
    add_number(cli, body, "roll-seconds", "roll_seconds");
    add_number(cli, body, "roll-bytes", "roll_bytes");
    add_number(cli, body, "inactivity-seconds", "inactivity_seconds");
    add_text(cli, body, "unknown-fields", "unknown_fields");
    add_text(cli, body, "idempotency", "idempotency");
    if (cli_given(cli, "key")) {
        json_t *key = json_array();
        str column = {0};
        for (size_t index = 0; cli_list(cli, "key", index, &column); index++) {
            json_array_append_new(key, json_stringn(column.data, column.size));
        }
        json_object_set_new(body, "key", key);
    }
}

/* ---- create ---- */

/* What a producer needs, as --save writes it. */
static str saved_text(struct cli *cli, const json_t *answer)
{
    json_t *saved = json_object();
    static const char *const members[] = {"id", "name", "send_url", "send_key"};
    for (size_t index = 0; index < ARRAY_COUNT(members); index++) {
        json_object_set(saved, index == 0 ? "sink_id" : members[index],
                        json_object_get(answer, members[index]));
    }
    str text = output_dump(cli, saved, JSON_INDENT(2));
    json_decref(saved);
    return text;
}

static void say_created(struct cli *cli, const struct secret_place *place, const json_t *answer)
{
    str hint = output_text(cli, answer, "docs_hint", OUTPUT_TEXT);
    str url = output_text(cli, answer, "send_url", OUTPUT_TEXT);
    cli_note("sink %s made; it takes JSON arrays at %.*s",
             json_string_value(json_object_get(answer, "id")), STR_ARG(url));
    if (place->path.data != NULL) {
        cli_note("its send key is in %.*s", STR_ARG(place->path));
    }
    const json_t *warnings = json_object_get(answer, "warnings");
    for (size_t index = 0; index < json_array_size(warnings); index++) {
        const char *warning = json_string_value(json_array_get(warnings, index));
        cli_note("warning: %s", warning != NULL ? warning : "");
    }
    if (hint.size > 0) {
        cli_note("describe the table for its readers: %.*s", STR_ARG(hint));
    }
}

static int keep_created(struct cli *cli, const struct secret_place *place, const json_t *answer)
{
    str key = output_text(cli, answer, "send_key", OUTPUT_TEXT);
    str saved = saved_text(cli, answer);
    if (cli_given(cli, "json") && place->path.data == NULL) {
        (void)output_json(cli, answer);
        return CLI_OK;
    }
    int kept = secret_keep(cli, place, saved, key);
    if (cli_given(cli, "json")) {
        /* With --save the key is in the file and nowhere else. */
        json_t *shown = json_copy((json_t *)(uintptr_t)answer);
        json_object_del(shown, "send_key");
        (void)output_json(cli, shown);
        json_decref(shown);
    } else if (kept == CLI_OK) {
        say_created(cli, place, answer);
    }
    return kept;
}

static int create(struct cli *cli)
{
    struct remote remote = {0};
    struct secret_place place = {0};
    json_t *answer = NULL;
    if (!cli_given(cli, "table") || !cli_given(cli, "name")) {
        return cli_usage_error(cli, "--table NAMESPACE.TABLE and --name NAME are wanted");
    }
    json_t *body = json_pack("{s:s%}", "warehouse", cli->arguments[0].data, cli->arguments[0].size);
    if (body == NULL) {
        return cli_usage_error(cli, "the warehouse's name is not UTF-8");
    }
    add_text(cli, body, "table", "table");
    add_policy(cli, body);
    int result = remote_open(cli, &remote);
    if (result == CLI_OK) {
        result = secret_prepare(cli, &place);
    }
    if (result == CLI_OK) {
        result = remote_call(&remote, "POST", STR("/v1/sinks"), json_incref(body), &answer);
        if (result == CLI_OK) {
            result = keep_created(cli, &place, answer);
        } else {
            secret_abandon(&place);
        }
    }
    json_decref(body);
    json_decref(answer);
    remote_close(&remote);
    return result;
}

/* ---- update, delete, resume, dedupe ---- */

static str sink_path(struct remote *remote, const char *rest)
{
    str name = remote_part(remote, remote->cli->arguments[0]);
    return str_format(remote->cli->arena, "/v1/sinks/%.*s%s", STR_ARG(name), rest);
}

static int print_sink(struct cli *cli, json_t *answer)
{
    static const struct output_column lines[] = {
        {"sink", "id", OUTPUT_TEXT},
        {"name", "name", OUTPUT_TEXT},
        {"state", "state", OUTPUT_TEXT},
        {"key", "key", OUTPUT_TEXT},
        {"roll seconds", "roll.seconds", OUTPUT_TEXT},
        {"roll bytes", "roll.bytes", OUTPUT_BYTES},
        {"inactivity seconds", "roll.inactivity_seconds", OUTPUT_TEXT},
        {"unknown fields", "unknown_fields", OUTPUT_TEXT},
        {"idempotency", "idempotency", OUTPUT_TEXT},
    };
    return output_object(cli, answer, lines, ARRAY_COUNT(lines));
}

static int update(struct cli *cli)
{
    struct remote remote = {0};
    json_t *answer = NULL;
    if (cli_given(cli, "key") && cli_given(cli, "no-key")) {
        return cli_usage_error(cli, "--key or --no-key, not both");
    }
    json_t *body = json_object();
    add_policy(cli, body);
    if (cli_given(cli, "no-key")) {
        json_object_set_new(body, "key", json_null());
    }
    if (cli_given(cli, "no-inactivity")) {
        json_object_set_new(body, "inactivity_seconds", json_null());
    }
    int result = remote_open(cli, &remote);
    if (result == CLI_OK) {
        result = remote_call(&remote, "PATCH", sink_path(&remote, ""), json_incref(body), &answer);
    }
    json_decref(body);
    if (result == CLI_OK) {
        result = print_sink(cli, answer);
    }
    remote_close(&remote);
    return result;
}

static int delete_sink(struct cli *cli)
{
    struct remote remote = {0};
    json_t *answer = NULL;
    int result = remote_open(cli, &remote);
    if (result == CLI_OK) {
        result = remote_call(&remote, "DELETE", sink_path(&remote, ""), NULL, &answer);
    }
    if (result == CLI_OK && !output_json(cli, answer)) {
        str discarded = output_text(cli, answer, "pending_batches_discarded", OUTPUT_TEXT);
        cli_note("%.*s is deleted, its send key with it; %.*s waiting batches were discarded; the "
                 "table is untouched",
                 STR_ARG(cli->arguments[0]), STR_ARG(discarded));
    }
    json_decref(answer);
    remote_close(&remote);
    return result;
}

static int resume(struct cli *cli)
{
    struct remote remote = {0};
    json_t *answer = NULL;
    int result = remote_open(cli, &remote);
    if (result == CLI_OK) {
        json_t *body = json_object();
        if (cli_given(cli, "reclaim")) {
            json_object_set_new(body, "reclaim", json_true());
        }
        result = remote_call(&remote, "POST", sink_path(&remote, "/resume"), body, &answer);
    }
    if (result == CLI_OK) {
        result = print_sink(cli, answer);
    }
    remote_close(&remote);
    return result;
}

static int dedupe(struct cli *cli)
{
    static const struct output_column lines[] = {
        {"requested at", "dedupe.requested_at", OUTPUT_TEXT},
        {"last", "dedupe.last", OUTPUT_TEXT},
    };
    struct remote remote = {0};
    json_t *answer = NULL;
    int result = remote_open(cli, &remote);
    if (result == CLI_OK) {
        result = remote_call(&remote, "POST", sink_path(&remote, "/dedupe"), json_object(),
                             &answer);
    }
    if (result == CLI_OK) {
        result = output_object(cli, answer, lines, ARRAY_COUNT(lines));
    }
    remote_close(&remote);
    return result;
}

static const struct cli_flag resume_flags[] = {
    {"reclaim", CLI_SWITCH, NULL, NULL,
     "for ledger_mismatch: set the table's property back to what the ledger knows"},
};

const struct cli_command cli_sink_create = {
    .path = "sink create",
    .arguments = "WAREHOUSE",
    .arguments_min = 1,
    .arguments_max = 1,
    .summary = "Make the sink of a table",
    .text = "A sink is one URL and one key that may do nothing but send to it. The table has to "
            "exist,\n"
            "and has one sink at most. The send key is told once: to FILE, or on stdout.",
    .example = "lhbox sink create garden --table garden.events --name events_in --save "
               "~/events-sink.json",
    .flags = create_flags,
    .flag_count = ARRAY_COUNT(create_flags),
    .access = CLI_API,
    .run = create,
};

const struct cli_command cli_sink_update = {
    .path = "sink update",
    .arguments = "SINK",
    .arguments_min = 1,
    .arguments_max = 1,
    .summary = "Change a sink's name, roll policy or key",
    .text = "All or nothing. Changing a disabled sink makes it active again.",
    .example = "lhbox sink update events_in --roll-seconds 900",
    .flags = update_flags,
    .flag_count = ARRAY_COUNT(update_flags),
    .access = CLI_API,
    .run = update,
};

const struct cli_command cli_sink_delete = {
    .path = "sink delete",
    .arguments = "SINK",
    .arguments_min = 1,
    .arguments_max = 1,
    .summary = "Delete a sink and revoke its send key; the table stays",
    .text = "Batches that wait for a roll are discarded: `lhbox sink roll SINK --wait 30` first, "
            "if they\n"
            "are wanted.",
    .example = "lhbox sink delete events_in",
    .access = CLI_API,
    .run = delete_sink,
};

const struct cli_command cli_sink_resume = {
    .path = "sink resume",
    .arguments = "SINK",
    .arguments_min = 1,
    .arguments_max = 1,
    .summary = "Make a disabled sink active again, once its cause is cured",
    .example = "lhbox sink resume events_in",
    .flags = resume_flags,
    .flag_count = ARRAY_COUNT(resume_flags),
    .access = CLI_API,
    .run = resume,
};

const struct cli_command cli_sink_dedupe = {
    .path = "sink dedupe",
    .arguments = "SINK",
    .arguments_min = 1,
    .arguments_max = 1,
    .summary = "Keep only the latest row of each key in the whole table, once",
    .example = "lhbox sink dedupe observations_in",
    .access = CLI_API,
    .run = dedupe,
};
