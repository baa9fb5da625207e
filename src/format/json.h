/* json: a strict RFC 8259 scanner for row data.
 *
 * Two doors over one grammar. json_array splits the body of a send into elements while it
 * arrives, piece by piece, and keeps no bytes. json_reader walks one complete value, giving names,
 * string tokens and number texts as slices of the input; a number never goes through a double.
 * Depth is bounded (JSON_DEPTH_MAX levels of objects and arrays, the element's own is 1) without
 * recursion. Bytes from 0x80 up pass inside strings only and are not checked here: UTF-8 is a
 * question for each element (base/utf8). Pure; one thread at a time. */
#ifndef LHBOX_FORMAT_JSON_H
#define LHBOX_FORMAT_JSON_H

#include "base/buf.h"

enum { JSON_DEPTH_MAX = 512 };

/* Prefixed so that jansson's enumerators of control-plane code do not clash. */
enum json_kind {
    JSON_KIND_OBJECT,
    JSON_KIND_ARRAY,
    JSON_KIND_STRING,
    JSON_KIND_NUMBER,
    JSON_KIND_TRUE,
    JSON_KIND_FALSE,
    JSON_KIND_NULL,
};

/* ---- splitting the array of a body ---- */

enum json_array_event {
    JSON_ARRAY_MORE,      /* the piece is used up */
    JSON_ARRAY_ELEMENT,   /* one element ended */
    JSON_ARRAY_NOT_ARRAY, /* the first byte starts some other JSON value */
    JSON_ARRAY_INVALID,   /* see json_array_offset */
    JSON_ARRAY_TOO_MANY,  /* an element past the maximum starts here */
};

struct json_array_element {
    u64 start; /* bytes of the body, from its first byte */
    u64 end;   /* one past the last */
    enum json_kind kind;
    i32 depth; /* levels of objects and arrays in it: a scalar has 0 */
};

/* State of the splitter; treat as opaque. One UTF-8 byte order mark at byte 0 is skipped. */
struct json_array {
    u64 offset; /* of the next byte to be read */
    u64 element_start;
    i64 elements;
    i64 elements_max;
    i32 state;
    i32 level;
    i32 depth;
    i32 kind;
    i32 token;                             /* how far into a string, number or word */
    i32 way;                               /* enum json_array_way */
    bool too_deep;                         /* what made it INVALID was a level too many */
    u64 stack[(JSON_DEPTH_MAX + 64) / 64]; /* one bit a level: object or array */
};

void json_array_init(struct json_array *array, i64 elements_max);

/* Elements that are whole in a piece are checked in one go, by the fastest way that the machine
 * has; others, and what seems wrong, by steps. All ways come to the same: for tests. */
enum json_array_way { JSON_ARRAY_BY_STEPS, JSON_ARRAY_PORTABLE, JSON_ARRAY_WIDE };
/* False: the machine does not have it. */
bool json_array_choose_way(struct json_array *array, enum json_array_way way);

/* Reads on from *at in the piece until an event; *at is advanced. */
enum json_array_event json_array_feed(struct json_array *array, str piece, size_t *at,
                                      struct json_array_element *out_element);
/* At the end of the body: MORE means that the array was complete; NOT_ARRAY and INVALID (offset
 * = the body's length, it ended too early) as above. */
enum json_array_event json_array_end(struct json_array *array);
/* The first byte that no valid body could have at its place. */
u64 json_array_offset(const struct json_array *array);
/* INVALID only because of a level past JSON_DEPTH_MAX. */
bool json_array_is_too_deep(const struct json_array *array);

/* ---- walking one value ---- */

enum json_token {
    JSON_TOKEN_OBJECT,     /* { */
    JSON_TOKEN_OBJECT_END, /* } */
    JSON_TOKEN_ARRAY,      /* [ */
    JSON_TOKEN_ARRAY_END,  /* ] */
    JSON_TOKEN_NAME,       /* a member's name; text is the token with its quotes */
    JSON_TOKEN_STRING,     /* text is the token with its quotes */
    JSON_TOKEN_NUMBER,     /* text is the number as written */
    JSON_TOKEN_TRUE,
    JSON_TOKEN_FALSE,
    JSON_TOKEN_NULL,
    JSON_TOKEN_END,     /* the value is complete and only white space follows */
    JSON_TOKEN_INVALID, /* not JSON at reader->at */
};

struct json_reader {
    str input;
    size_t at; /* next byte; after INVALID the byte that cannot stand there */
    str text;  /* of the last token; of { [ } ] the bracket */
    i32 level;
    i32 state;
    u64 stack[(JSON_DEPTH_MAX + 64) / 64];
};

void json_reader_init(struct json_reader *reader, str input);
enum json_token json_next(struct json_reader *reader);
/* What follows the last token, from the next byte on that is no white space. */
str json_rest(struct json_reader *reader);
/* Goes past members of the object at hand that the caller has read, up to the end of a value. */
void json_pass(struct json_reader *reader, const char *end);
/* Skips the rest of the value that `token`, just read, began. Returns the slice of the whole value,
 * brackets included; data NULL when it is not JSON. */
str json_skip(struct json_reader *reader, enum json_token token);

/* Unescapes a string token (quotes included, valid UTF-8) into `out`. A \u surrogate without its
 * pair is written as its 3-byte form and *out_lone is set (may be NULL). Returns the bytes; when
 * there is nothing to unescape, a slice of the token itself and `out` is untouched. data NULL:
 * out is full. */
str json_unescape(buf *out, str token, bool *out_lone);
/* True when an escape of a lone surrogate stands in any string or name of the value. */
bool json_has_lone_surrogate(str value);

#endif
