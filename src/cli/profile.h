/* profile: which server, with which key; and files that hold secrets.
 *
 * A profile's key goes to that profile's server only: with another --url or LHBOX_URL the key has
 * to come from --key-file or LHBOX_API_KEY too. */
#ifndef LHBOX_CLI_PROFILE_H
#define LHBOX_CLI_PROFILE_H

#include "cli/cli.h"

enum { PROFILE_FILE_BYTES_MAX = 64 * 1024 };

struct profile {
    str url;       /* without a slash at its end */
    str api_key;   /* data NULL: none */
    str warehouse; /* data NULL: none */
};

/* CLI_OK, or what was said about it. */
int profile_load(struct cli *cli, struct profile *out_profile);
/* $XDG_CONFIG_HOME/lhbox/profile.json, mode 0600. */
int profile_save(struct cli *cli, str url, str api_key, str *out_path);
/* A key out of a file: a bare key, or the member `member` of a JSON object. */
int profile_read_key(struct cli *cli, str path, const char *member, str *out_key);

/* Where a secret goes: `--save FILE` or `--show-key`. */
struct secret_place {
    str path; /* data NULL: it is shown */
};
/* Fails unless one of the two flags stands; with --save makes the file, empty, mode 0600, so that
 * the secret has a place before it exists. */
int secret_prepare(struct cli *cli, struct secret_place *out_place);
/* Fills the file, or prints `shown`. */
int secret_keep(struct cli *cli, const struct secret_place *place, str bytes, str shown);
/* Removes the file that was made. */
void secret_abandon(const struct secret_place *place);

#endif
