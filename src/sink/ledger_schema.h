/* ledger_schema: the ledger's tables, one SQL source for SQLite and PostgreSQL.
 *
 * The records of exactly-once C.3, with what the API shows kept beside them. Times are microseconds
 * UTC. The batch states and plan states are the numbers of ledger.h. Version 2. */
#ifndef LHBOX_SINK_LEDGER_SCHEMA_H
#define LHBOX_SINK_LEDGER_SCHEMA_H

enum { LEDGER_SCHEMA_VERSION = 2 };

static const char *const LEDGER_SCHEMA[] = {
    "CREATE TABLE installation (id TEXT PRIMARY KEY, schema_version BIGINT NOT NULL, "
    "running_us BIGINT NOT NULL, incarnation BIGINT NOT NULL, created_at BIGINT NOT NULL, "
    /* 1: a copy that a backup made; it recovers before it serves (O1) */
    "copied BIGINT NOT NULL DEFAULT 0)",
    /* The number that the ledger knows to stand in each warehouse's file bucket (O1). */
    "CREATE TABLE incarnation_bucket (warehouse TEXT PRIMARY KEY, incarnation BIGINT NOT NULL)",
    "CREATE TABLE node (id TEXT PRIMARY KEY, lease_until BIGINT NOT NULL, role TEXT NOT NULL)",
    "CREATE TABLE project (id TEXT PRIMARY KEY, name TEXT NOT NULL UNIQUE, "
    "created_at BIGINT NOT NULL)",
    /* level: 1 read, 2 write, 3 admin */
    "CREATE TABLE api_key (id TEXT PRIMARY KEY, project TEXT NOT NULL, name TEXT NOT NULL, "
    "level BIGINT NOT NULL, sha256 BYTEA NOT NULL, created_at BIGINT NOT NULL, expires_at BIGINT, "
    "last_used_at BIGINT, deleted_at BIGINT)",
    "CREATE TABLE token (id TEXT PRIMARY KEY, key_id TEXT NOT NULL, sha256 BYTEA NOT NULL, "
    "expires_at BIGINT NOT NULL)",
    "CREATE TABLE warehouse (name TEXT PRIMARY KEY, project TEXT NOT NULL, store TEXT NOT NULL, "
    "catalog TEXT NOT NULL, created_at BIGINT NOT NULL)",
    "CREATE TABLE sink (id TEXT PRIMARY KEY, project TEXT NOT NULL, warehouse TEXT NOT NULL, "
    "namespace TEXT NOT NULL, table_name TEXT NOT NULL, table_uuid TEXT NOT NULL, "
    "name TEXT NOT NULL, state BIGINT NOT NULL, state_reason TEXT, recovering BIGINT NOT NULL, "
    "config_version BIGINT NOT NULL, roll_seconds BIGINT NOT NULL, roll_bytes BIGINT NOT NULL, "
    "inactivity_seconds BIGINT, unknown_fields TEXT NOT NULL, idempotency TEXT NOT NULL, "
    "key_columns TEXT, send_key_id TEXT NOT NULL, send_key_sha256 BYTEA NOT NULL, "
    "claim_id TEXT NOT NULL, claim_state BIGINT NOT NULL, next_seq BIGINT NOT NULL, "
    "last_ingest_ts BIGINT NOT NULL, last_n BIGINT NOT NULL, last_plan_id TEXT NOT NULL, "
    "lease_holder TEXT, lease_until BIGINT NOT NULL, fences TEXT, roll_asked_at BIGINT, "
    "roll_asked_seq BIGINT, mismatch_at BIGINT, rolled_at BIGINT, "
    "created_at BIGINT NOT NULL, deleted_at BIGINT, "
    "batches BIGINT NOT NULL, rows_accepted BIGINT NOT NULL, bytes_accepted BIGINT NOT NULL, "
    "rows_refused BIGINT NOT NULL, duplicates BIGINT NOT NULL, first_at BIGINT, last_at BIGINT, "
    "rows_committed BIGINT NOT NULL, rows_rejected BIGINT NOT NULL, "
    "rows_discarded BIGINT NOT NULL, waiting_batches BIGINT NOT NULL, "
    "waiting_bytes BIGINT NOT NULL, reject_batches BIGINT NOT NULL, reject_last_at BIGINT, "
    "last_roll TEXT, last_error TEXT)",
    "CREATE UNIQUE INDEX sink_table ON sink (warehouse, namespace, table_name) WHERE state <> 4",
    "CREATE UNIQUE INDEX sink_name ON sink (project, name) WHERE state <> 4",
    "CREATE UNIQUE INDEX sink_key ON sink (send_key_id)",
    "CREATE INDEX sink_age ON sink (created_at, id)",
    "CREATE TABLE batch (sink TEXT NOT NULL, batch_id TEXT NOT NULL, uid TEXT NOT NULL, "
    "object_key TEXT NOT NULL, byte_offset BIGINT NOT NULL, bytes BIGINT NOT NULL, "
    "rows BIGINT NOT NULL, refused BIGINT NOT NULL, sha256 BYTEA NOT NULL, "
    "body_hash BYTEA NOT NULL, seq BIGINT NOT NULL, received_at BIGINT NOT NULL, "
    "ingest_ts BIGINT NOT NULL, answer TEXT NOT NULL, state BIGINT NOT NULL, "
    "held BIGINT NOT NULL, held_reason TEXT, misses BIGINT NOT NULL, missed_at BIGINT, "
    "retried BIGINT NOT NULL, "
    "plan TEXT, rows_committed BIGINT NOT NULL, "
    "rows_rejected BIGINT NOT NULL, finished_at BIGINT, PRIMARY KEY (sink, batch_id))",
    "CREATE INDEX batch_waiting ON batch (sink, seq) WHERE state <= 1",
    "CREATE INDEX batch_object ON batch (sink, uid)",
    "CREATE INDEX batch_plan ON batch (plan, seq) WHERE plan IS NOT NULL",
    "CREATE INDEX batch_final ON batch (finished_at) WHERE finished_at IS NOT NULL",
    "CREATE TABLE plan (id TEXT PRIMARY KEY, sink TEXT NOT NULL, n BIGINT NOT NULL, "
    "prev TEXT NOT NULL, config_version BIGINT NOT NULL, state BIGINT NOT NULL, "
    "begun BIGINT NOT NULL, tried BIGINT NOT NULL, attempts TEXT NOT NULL, "
    "counts TEXT, fences TEXT, void_reason TEXT, "
    "snapshot_id BIGINT, rows_committed BIGINT NOT NULL, rows_rejected BIGINT NOT NULL, "
    "trigger TEXT NOT NULL, doomed BIGINT NOT NULL, created_at BIGINT NOT NULL, "
    "finished_at BIGINT)",
    "CREATE INDEX plan_sink ON plan (sink, n)",
    "CREATE INDEX plan_undoomed ON plan (sink) WHERE state = 4 AND doomed = 0",
    "CREATE UNIQUE INDEX plan_live ON plan (sink) WHERE state <= 2",
    "CREATE TABLE void_uid (uid TEXT PRIMARY KEY, at BIGINT NOT NULL)",
    "CREATE TABLE quarantine (sink TEXT NOT NULL, batch_id TEXT NOT NULL, uids TEXT NOT NULL, "
    "at BIGINT NOT NULL, PRIMARY KEY (sink, batch_id))",
    /* Parts of intake objects to which no batch row refers, since they were first seen (I19). An
     * object that cannot be read is one part without a batch id. chain: 0 not looked up, 1 no plan
     * of the chain names it, 2 one does, 3 one names its batch id with other bytes. */
    "CREATE TABLE orphan_segment (sink TEXT NOT NULL, object_key TEXT NOT NULL, "
    "batch_id TEXT NOT NULL, uid TEXT NOT NULL, byte_offset BIGINT NOT NULL, "
    "bytes BIGINT NOT NULL, rows BIGINT NOT NULL, refused BIGINT NOT NULL, "
    "sha256 BYTEA NOT NULL, body_hash BYTEA NOT NULL, received_at BIGINT NOT NULL, "
    "modified_at BIGINT NOT NULL, first_seen_at BIGINT NOT NULL, running_us BIGINT NOT NULL, "
    "looked BIGINT NOT NULL, chain BIGINT NOT NULL, kept BIGINT NOT NULL, "
    "PRIMARY KEY (sink, object_key, byte_offset))",
    "CREATE INDEX orphan_batch ON orphan_segment (sink, batch_id)",
    "CREATE INDEX orphan_uid ON orphan_segment (sink, uid)",
    /* Running time and wall clock as they stood together, an hour apart and at every jump (I19). */
    "CREATE TABLE clock_sample (running_us BIGINT PRIMARY KEY, wall BIGINT NOT NULL)",
    /* Objects that may go: written by the transaction that made them so, removed when deleted. */
    "CREATE TABLE doomed_object (warehouse TEXT NOT NULL, object_key TEXT NOT NULL, "
    "at BIGINT NOT NULL, tries BIGINT NOT NULL, PRIMARY KEY (warehouse, object_key))",
    "CREATE TABLE reject_count (sink TEXT NOT NULL, reason TEXT NOT NULL, rows BIGINT NOT NULL, "
    "PRIMARY KEY (sink, reason))",
    "CREATE TABLE reject_recent (sink TEXT NOT NULL, position BIGINT NOT NULL, "
    "record TEXT NOT NULL, PRIMARY KEY (sink, position))",
    "CREATE TABLE usage_month (project TEXT NOT NULL, sink TEXT NOT NULL, month TEXT NOT NULL, "
    "batches BIGINT NOT NULL, bytes BIGINT NOT NULL, rows_accepted BIGINT NOT NULL, "
    "rows_rejected BIGINT NOT NULL, PRIMARY KEY (project, sink, month))",
    "CREATE TABLE audit (seq BIGINT PRIMARY KEY, at BIGINT NOT NULL, project TEXT NOT NULL, "
    "actor TEXT NOT NULL, action TEXT NOT NULL, object TEXT NOT NULL, outcome TEXT NOT NULL, "
    "request_id TEXT NOT NULL, detail TEXT)",
    "CREATE TABLE alert (id TEXT PRIMARY KEY, kind TEXT NOT NULL, sink TEXT, "
    "opened_at BIGINT NOT NULL, closed_at BIGINT, detail TEXT)",
    /* The embedded catalog. A namespace is its parts joined by 0x1F. */
    "CREATE TABLE catalog_namespace (warehouse TEXT NOT NULL, name TEXT NOT NULL, "
    "properties TEXT NOT NULL, PRIMARY KEY (warehouse, name))",
    /* Tables and views, under one set of names. kind: 0 table, 1 view */
    "CREATE TABLE catalog_table (warehouse TEXT NOT NULL, namespace TEXT NOT NULL, "
    "name TEXT NOT NULL, kind BIGINT NOT NULL, uuid TEXT NOT NULL, "
    "metadata_location TEXT NOT NULL, PRIMARY KEY (warehouse, namespace, name))",
    "CREATE INDEX catalog_table_uuid ON catalog_table (warehouse, uuid)",
    /* Requests that carried an Idempotency-Key and are over. status 0: it was done; else that was
     * its answer, with `body`. */
    "CREATE TABLE catalog_receipt (warehouse TEXT NOT NULL, id TEXT NOT NULL, "
    "request BYTEA NOT NULL, status BIGINT NOT NULL, body TEXT NOT NULL, at BIGINT NOT NULL, "
    "PRIMARY KEY (warehouse, id))",
    "CREATE INDEX catalog_receipt_age ON catalog_receipt (at)",
};

#endif
