/* remote: one request to the API, and what its answer means for the command. */
#ifndef LHBOX_CLI_REMOTE_H
#define LHBOX_CLI_REMOTE_H

#include "cli/profile.h"
#include "io/http_client.h"

#include <jansson.h>

struct remote {
    struct cli *cli;
    struct profile profile;
    struct http_client *client;
};

/* The server that the flags, the environment or a profile name. */
int remote_open(struct cli *cli, struct remote *out_remote);
/* With another credential than the profile's. */
int remote_open_with_key(struct cli *cli, str key, struct remote *out_remote);
void remote_close(struct remote *remote);
/* `path` begins with a slash. Takes the reference of `body`, which may be NULL. CLI_OK: *out_json
 * is the answer (a new reference; NULL for an empty one; out_json may be NULL). Otherwise
 * everything has been said: the message and hint on stderr, and with --json the answer on stdout.
 */
int remote_call(struct remote *remote, const char *method, str path, json_t *body,
                json_t **out_json);
/* The same, but an answer within `timeout_us`. */
int remote_call_within(struct remote *remote, const char *method, str path, json_t *body,
                       i64 timeout_us, json_t **out_json);
/* Says what a refusing reply says; answers CLI_REFUSED. */
int remote_refused(const struct cli *cli, const struct http_reply *reply);
/* One part of a path, escaped. */
str remote_part(struct remote *remote, str text);
/* Appends ?name=value or &name=value, escaped; a value with data NULL adds nothing. */
str remote_query(struct remote *remote, str path, const char *name, str value);

#endif
