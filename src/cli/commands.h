/* commands: every command that speaks to a server or to nobody; src/main.c adds those that are one.
 */
#ifndef LHBOX_CLI_COMMANDS_H
#define LHBOX_CLI_COMMANDS_H

#include "cli/cli.h"

extern const struct cli_command cli_version;
extern const struct cli_command cli_login;
extern const struct cli_command cli_connect;

extern const struct cli_command cli_project_create;
extern const struct cli_command cli_project_list;

extern const struct cli_command cli_warehouse_create;
extern const struct cli_command cli_warehouse_list;
extern const struct cli_command cli_warehouse_get;

extern const struct cli_command cli_table_create;
extern const struct cli_command cli_table_list;
extern const struct cli_command cli_table_get;
extern const struct cli_command cli_table_document;
extern const struct cli_command cli_table_delete;

extern const struct cli_command cli_sink_create;
extern const struct cli_command cli_sink_update;
extern const struct cli_command cli_sink_list;
extern const struct cli_command cli_sink_get;
extern const struct cli_command cli_sink_delete;
extern const struct cli_command cli_sink_send;
extern const struct cli_command cli_sink_roll;
extern const struct cli_command cli_sink_batches;
extern const struct cli_command cli_sink_batches_discard;
extern const struct cli_command cli_sink_batches_resolve;
extern const struct cli_command cli_sink_rejects;
extern const struct cli_command cli_sink_resume;
extern const struct cli_command cli_sink_dedupe;

extern const struct cli_command cli_verify;

extern const struct cli_command cli_key_create;
extern const struct cli_command cli_key_list;
extern const struct cli_command cli_key_delete;

#endif
