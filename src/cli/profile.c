#include "cli/profile.h"

#include "cli/output.h"

#include "io/file.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#define DEV_PROFILE "./lhbox-data/dev.json"

static str environment(const char *name)
{
    const char *value = getenv(name);
    return value != NULL && value[0] != 0 ? str_from(value) : (str){0};
}

static str without_slash(str url)
{
    while (url.size > 0 && url.data[url.size - 1] == '/') {
        url.size--;
    }
    return url;
}

/* data NULL when there is no home. */
static str profile_directory(struct arena *arena)
{
    str config = environment("XDG_CONFIG_HOME");
    if (config.data != NULL) {
        return str_format(arena, "%.*s/lhbox", STR_ARG(config));
    }
    str home = environment("HOME");
    return home.data == NULL ? (str){0} : str_format(arena, "%.*s/.config/lhbox", STR_ARG(home));
}

static str member_text(struct arena *arena, const json_t *object, const char *name)
{
    const json_t *member = json_object_get(object, name);
    if (!json_is_string(member)) {
        return (str){0};
    }
    return str_copy(arena, (str){json_string_value(member), json_string_length(member)});
}

/* False when there is no such file. */
static bool profile_read(struct cli *cli, str path, struct profile *profile, int *out_result)
{
    str bytes = {0};
    struct error error = {0};
    *out_result = CLI_OK;
    err read = file_read(cli->arena, path, PROFILE_FILE_BYTES_MAX, &bytes, &error);
    if (read == NOT_FOUND) {
        return false;
    }
    json_t *json = read == OK ? json_loadb(bytes.data, bytes.size, 0, NULL) : NULL;
    if (json == NULL) {
        *out_result = read == OK ? cli_failed("%.*s is not JSON", STR_ARG(path))
                                 : cli_failed_error(&error);
        return true;
    }
    profile->url = without_slash(member_text(cli->arena, json, "url"));
    profile->api_key = member_text(cli->arena, json, "api_key");
    profile->warehouse = member_text(cli->arena, json, "warehouse");
    json_decref(json);
    return true;
}

static int profile_find(struct cli *cli, struct profile *profile)
{
    int result = CLI_OK;
    str directory = profile_directory(cli->arena);
    if (directory.data != NULL) {
        str path = str_format(cli->arena, "%.*s/profile.json", STR_ARG(directory));
        if (profile_read(cli, path, profile, &result)) {
            return result;
        }
    }
    (void)profile_read(cli, STR(DEV_PROFILE), profile, &result);
    return result;
}

int profile_load(struct cli *cli, struct profile *out_profile)
{
    struct profile profile = {0};
    str url = cli_text(cli, "url");
    str key = environment("LHBOX_API_KEY");
    url = without_slash(url.data != NULL ? url : environment("LHBOX_URL"));
    if (cli_given(cli, "key-file")) {
        int read = profile_read_key(cli, cli_text(cli, "key-file"), "api_key", &key);
        if (read != CLI_OK) {
            return read;
        }
    }
    if (url.data == NULL || key.data == NULL) {
        int found = profile_find(cli, &profile);
        if (found != CLI_OK) {
            return found;
        }
    }
    if (url.data != NULL && !str_equal(url, profile.url)) {
        profile = (struct profile){.url = url};
    }
    if (key.data != NULL) {
        profile.api_key = key;
    }
    if (profile.url.size == 0) {
        (void)cli_failed("no server is known: no --url, no LHBOX_URL, no profile");
        cli_note("hint: `lhbox dev` starts one here; `lhbox login --url URL --key-file FILE` "
                 "remembers another");
        return CLI_UNREACHABLE;
    }
    *out_profile = profile;
    return CLI_OK;
}

int profile_save(struct cli *cli, str url, str api_key, str *out_path)
{
    struct error error = {0};
    str directory = profile_directory(cli->arena);
    if (directory.data == NULL) {
        return cli_failed(
            "neither XDG_CONFIG_HOME nor HOME is set: there is no place for a profile");
    }
    str path = str_format(cli->arena, "%.*s/profile.json", STR_ARG(directory));
    json_t *json = json_pack("{s:s%, s:s%}", "url", url.data, url.size, "api_key", api_key.data,
                             api_key.size);
    str text = output_dump(cli, json, JSON_INDENT(2));
    json_decref(json);
    if (text.data == NULL) {
        return cli_failed("the URL or the key is not UTF-8");
    }
    str bytes = str_format(cli->arena, "%.*s\n", STR_ARG(text));
    if (file_make_directory(directory, &error) != OK ||
        file_write_durable(path, bytes, S_IRUSR | S_IWUSR, &error) != OK) {
        return cli_failed_error(&error);
    }
    *out_path = path;
    return CLI_OK;
}

int profile_read_key(struct cli *cli, str path, const char *member, str *out_key)
{
    str bytes = {0};
    struct error error = {0};
    if (file_read(cli->arena, path, PROFILE_FILE_BYTES_MAX, &bytes, &error) != OK) {
        return cli_failed_error(&error);
    }
    json_t *json = json_loadb(bytes.data, bytes.size, 0, NULL);
    str key = json != NULL ? member_text(cli->arena, json, member) : (str){0};
    if (json == NULL) {
        str rest = bytes;
        (void)str_next(&rest, '\n', &key);
        key = str_trim(key);
        key = str_ends(key, STR("\r")) ? str_slice(key, 0, key.size - 1) : key;
    }
    json_decref(json);
    if (key.size == 0) {
        return cli_failed("%.*s holds no key", STR_ARG(path));
    }
    *out_key = key;
    return CLI_OK;
}

/* ---- secrets ---- */

int secret_prepare(struct cli *cli, struct secret_place *out_place)
{
    struct error error = {0};
    str path = cli_text(cli, "save");
    if ((path.data != NULL) == cli_given(cli, "show-key")) {
        return cli_usage_error(cli, "the key is told once: say --save FILE (mode 0600), or "
                                    "--show-key to print it");
    }
    if (path.data != NULL) {
        err made = file_write_new(path, STR(""), &error);
        if (made == CONFLICT) {
            return cli_failed("%.*s exists already and is not overwritten", STR_ARG(path));
        }
        if (made != OK) {
            return cli_failed_error(&error);
        }
    }
    *out_place = (struct secret_place){path};
    return CLI_OK;
}

int secret_keep(struct cli *cli, const struct secret_place *place, str bytes, str shown)
{
    struct error error = {0};
    if (place->path.data == NULL) {
        printf("%.*s\n", STR_ARG(shown));
        return CLI_OK;
    }
    str whole = str_format(cli->arena, "%.*s\n", STR_ARG(bytes));
    if (whole.data == NULL ||
        file_write_durable(place->path, whole, S_IRUSR | S_IWUSR, &error) != OK) {
        return cli_failed_error(&error);
    }
    return CLI_OK;
}

void secret_abandon(const struct secret_place *place)
{
    if (place->path.data != NULL) {
        (void)unlink(place->path.data);
    }
}
