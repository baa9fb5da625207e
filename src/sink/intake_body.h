/* intake_body: the body of one send, read while it arrives.
 *
 * Splits the array, copies each element once into the stored form (one line each, CR and LF between
 * tokens as spaces, an empty line for a refused one), hashes body and stored bytes as they pass,
 * and keeps what it refused for the reject records. What it refuses is docs/rejects.md, the reasons
 * marked I.
 *
 * Lives in an arena of its send; one thread at a time. Fails with INVALID (the whole body is
 * refused: invalid_json, not_an_array, too_many_rows, body_too_large) or LIMIT. */
#ifndef LHBOX_SINK_INTAKE_BODY_H
#define LHBOX_SINK_INTAKE_BODY_H

#include "base/error.h"
#include "format/json.h"
#include "io/crypto.h"
#include "sink/reject.h"

enum {
    INTAKE_REFUSALS = 4, /* the reasons from REJECT_NOT_AN_OBJECT to REJECT_INVALID_UTF8 */
    INTAKE_REASONS_SHOWN = 20,
    INTAKE_DETAIL_ROOM = 96,
};

struct intake_limits {
    i64 body_bytes_max; /* 16 MiB */
    i64 rows_max;       /* 100,000 */
    i64 row_bytes_max;  /* 4 MiB */
    i64 row_depth_max;  /* 64 */
};
struct intake_limits intake_limits_default(void);

/* One element that was refused, with all that was wrong with it. */
struct intake_refused {
    i64 row;
    str bytes; /* as sent */
    enum json_kind kind;
    i32 depth;
    size_t utf8_at; /* of the first byte that is not UTF-8; the size when all are */
};

struct intake_body {
    struct arena *arena;
    struct intake_limits limits;
    struct json_array array;
    struct crypto_hash body_hash;
    struct crypto_hash stored_hash;
    struct sha256 body_digest; /* both at the end */
    struct sha256 stored_digest;
    u64 bytes;         /* of the body so far */
    u64 ended;         /* offset of the end of the last element */
    buf stored;        /* lines joined by LF; what is open is its tail */
    size_t element_at; /* in stored: where the open or next element begins */
    size_t hashed;     /* bytes of stored that are in stored_hash */
    i64 accepted;
    i64 rows; /* accepted and refused */
    struct intake_refused *refused;
    size_t refused_count;
    size_t refused_capacity;
    i64 refused_by[INTAKE_REFUSALS]; /* by first reason */
};

/* content_length -1: not known. */
void intake_body_begin(struct intake_body *body, struct arena *arena,
                       const struct intake_limits *limits, i64 content_length);
MUST_USE err intake_body_add(struct intake_body *body, str piece, struct error *error);
MUST_USE err intake_body_end(struct intake_body *body, struct error *error);

/* After the end: */
str intake_body_stored(const struct intake_body *body); /* empty when nothing was accepted */
struct sha256 intake_body_stored_hash(const struct intake_body *body);
struct sha256 intake_body_hash(const struct intake_body *body);
/* [{"row","reason","detail"},…], the first INTAKE_REASONS_SHOWN. */
void intake_body_print_reasons(const struct intake_body *body, buf *out);
/* {"not_an_object":2}; data NULL when nothing was refused or the arena is full. */
str intake_body_refused_reasons(const struct intake_body *body);
/* All that is wrong with a refused element; the details are printed into `details`. Returns how
 * many. */
size_t intake_body_hits(const struct intake_body *body, const struct intake_refused *refused,
                        struct reject_hit hits[INTAKE_REFUSALS],
                        char details[INTAKE_REFUSALS][INTAKE_DETAIL_ROOM]);
/* The lines of the intake rejects file. */
void intake_body_print_rejects(const struct intake_body *body, const struct reject_batch *batch,
                               buf *out);

#endif
