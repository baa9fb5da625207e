#include "io/http_connection.h"

#include "base/assert.h"
#include "base/buf.h"
#include "base/utf8.h"

enum { TEXT_CAPACITY = 1 * KIB, FIELD_CAPACITY = 16 };

/* The digits of value's low bits, without leading zeros but at least `least`. */
static char *put_hex(char *to, u64 value, int least)
{
    int digits = least;
    while (digits < 16 && value >> (4 * digits) != 0) {
        digits++;
    }
    for (int i = digits - 1; i >= 0; i--) {
        *to++ = "0123456789abcdef"[value >> (4 * i) & 15];
    }
    return to;
}

static void request_name(struct http_request *request, struct http_loop *loop)
{
    request->number = ++loop->request_number;
    char *to = put_hex(request->id, loop->id_prefix & 0xffffffffffff, 12);
    *to++ = '-';
    to = put_hex(to, request->number & 0xffffffffff, 1);
    request->id_size = (size_t)(to - request->id);
    assert(request->id_size < sizeof(request->id));
}

struct http_request *http_request_create(struct http_connection *connection)
{
    struct http_loop *loop = connection->loop;
    struct arena *arena = http_loop_take_arena(loop);
    struct http_request *request = arena_alloc(arena, sizeof(*request));
    if (request == NULL) {
        http_loop_give_arena(loop, arena);
        return NULL;
    }
    request->arena = arena;
    request->loop = loop;
    request->connection = connection;
    request->text = arena_alloc(arena, TEXT_CAPACITY);
    request->text_capacity = TEXT_CAPACITY;
    request->fields = arena_array(arena, FIELD_CAPACITY, sizeof(*request->fields));
    request->field_capacity = FIELD_CAPACITY;
    request->method = HTTP_OTHER;
    atomic_flag_clear_explicit(&request->answered, memory_order_relaxed);
    if (request->text == NULL || request->fields == NULL) {
        http_loop_give_arena(loop, arena);
        return NULL;
    }
    request_name(request, loop);
    memcpy(request->peer, connection->peer, connection->peer_size);
    request->peer_size = connection->peer_size;
    return request;
}

void http_request_end(struct http_request *request)
{
    struct http_loop *loop = request->loop;
    struct http_server *server = loop->server;
    if (request->reserved > 0) {
        atomic_fetch_sub_explicit(&server->bodies_bytes, request->reserved, memory_order_relaxed);
    }
    if (request->seen) {
        server->handlers.gone(server->handlers.context, request);
        atomic_fetch_sub_explicit(&server->active, 1, memory_order_release);
    }
    arena_destroy(request->answer.arena);
    http_loop_give_arena(loop, request->arena);
}

bool http_request_reserve(struct http_request *request, i64 bytes)
{
    struct http_server *server = request->loop->server;
    i64 before = atomic_fetch_add_explicit(&server->bodies_bytes, bytes, memory_order_relaxed);
    request->reserved += bytes;
    return before + bytes <= server->options.bodies_bytes_max;
}

/* ---- the head as it comes in ---- */

bool http_request_append(struct http_request *request, const char *bytes, size_t size)
{
    size_t wanted = request->text_size + size;
    if (wanted > request->text_capacity) {
        size_t capacity = wanted > request->text_capacity * 2 ? wanted : request->text_capacity * 2;
        char *grown = arena_grow(request->arena, request->text, request->text_capacity, capacity);
        if (grown == NULL) {
            return false;
        }
        request->text = grown;
        request->text_capacity = capacity;
    }
    memcpy(request->text + request->text_size, bytes, size);
    request->text_size = wanted;
    return true;
}

struct http_field *http_request_field_add(struct http_request *request)
{
    if (request->field_count == request->field_capacity) {
        size_t size = request->field_capacity * sizeof(*request->fields);
        struct http_field *grown = arena_grow(request->arena, request->fields, size, size * 2);
        if (grown == NULL) {
            return NULL;
        }
        request->fields = grown;
        request->field_capacity *= 2;
    }
    struct http_field *field = &request->fields[request->field_count];
    request->field_count++;
    *field = (struct http_field){0};
    return field;
}

/* ---- the target ---- */

static int hex_digit(char c)
{
    if (c >= '0' && c <= '9') {
        return c - '0';
    }
    if (c >= 'a' && c <= 'f') {
        return c - 'a' + 10;
    }
    return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

/* The byte that %XX at `at` stands for, or -1. */
static int escape_at(str text, size_t at)
{
    if (text.size - at < 3) {
        return -1;
    }
    int high = hex_digit(text.data[at + 1]);
    int low = hex_digit(text.data[at + 2]);
    return high < 0 || low < 0 ? -1 : high * 16 + low;
}

/* Absolute form: the scheme and the authority are of no interest here. */
static str target_skip_authority(str target)
{
    i64 scheme_end = str_find(target, STR("://"));
    if (scheme_end < 0 || str_starts(target, STR("/"))) {
        return target;
    }
    str rest = str_slice(target, (size_t)scheme_end + 3, target.size);
    for (size_t at = 0; at < rest.size; at++) {
        if (rest.data[at] == '/' || rest.data[at] == '?') {
            return str_slice(rest, at, rest.size);
        }
    }
    return STR("/");
}

/* Decodes the path; NULL when it is well. An encoded slash stays as it is where the application
 * takes its raw path apart, and stands nowhere else. */
static const char *path_decode(struct arena *arena, str raw, str raw_prefix, str *out_path)
{
    bool keeps = raw_prefix.size > 0 && str_starts(raw, raw_prefix);
    char *decoded = arena_alloc(arena, raw.size + 1);
    if (decoded == NULL) {
        return "the path is too long";
    }
    size_t size = 0;
    for (size_t at = 0; at < raw.size; at++) {
        char c = raw.data[at];
        if (c == '%') {
            int byte = escape_at(raw, at);
            if (byte < 0) {
                return "a percent sign in the path is not followed by two hex digits";
            }
            if (byte == 0 || (byte == '/' && !keeps)) {
                return "a NUL or an encoded slash in the path";
            }
            if (byte == '/') {
                decoded[size++] = c;
                continue;
            }
            c = (char)(unsigned char)byte;
            at += 2;
        }
        decoded[size] = c;
        size++;
    }
    *out_path = (str){decoded, size};
    return utf8_valid(*out_path) ? NULL : "the path is not UTF-8";
}

static bool path_has_dot_segment(str path)
{
    str rest = path;
    str segment;
    while (str_next(&rest, '/', &segment)) {
        if (str_equal(segment, STR(".")) || str_equal(segment, STR(".."))) {
            return true;
        }
    }
    return false;
}

static bool escapes_well_formed(str text)
{
    for (size_t at = 0; at < text.size; at++) {
        if (text.data[at] == '%' && escape_at(text, at) < 0) {
            return false;
        }
    }
    return true;
}

const char *http_request_read_target(struct http_request *request, str raw_prefix)
{
    str target = http_request_span(request, request->target);
    if (str_find_byte(target, '#') >= 0) {
        return "a fragment in the request target";
    }
    request->query = STR("");
    if (request->method == HTTP_OPTIONS && str_equal(target, STR("*"))) {
        request->raw_path = target;
        request->path = target;
        return NULL;
    }
    target = target_skip_authority(target);
    i64 mark = str_find_byte(target, '?');
    if (mark >= 0) {
        request->query = str_slice(target, (size_t)mark + 1, target.size);
    }
    request->raw_path = mark < 0 ? target : str_slice(target, 0, (size_t)mark);
    if (request->raw_path.size == 0) {
        request->raw_path = STR("/");
    }
    if (request->raw_path.data[0] != '/') {
        return "the request target is not a path";
    }
    if (!escapes_well_formed(request->query)) {
        return "a percent sign in the query is not followed by two hex digits";
    }
    const char *wrong = path_decode(request->arena, request->raw_path, raw_prefix, &request->path);
    if (wrong == NULL && path_has_dot_segment(request->path)) {
        wrong = "a dot segment in the path";
    }
    return wrong;
}

/* ---- what the application asks ---- */

struct arena *http_request_arena(struct http_request *request)
{
    return request->arena;
}

void *http_request_kept(struct http_request *request)
{
    assert(request->connection != NULL);
    return request->connection->kept;
}

void http_request_set_user(struct http_request *request, void *user)
{
    request->user = user;
}

void *http_request_user(const struct http_request *request)
{
    return request->user;
}

enum http_method http_request_method(const struct http_request *request)
{
    return request->method;
}

str http_request_path(const struct http_request *request)
{
    return request->path;
}

str http_request_raw_path(const struct http_request *request)
{
    return request->raw_path;
}

str http_request_query(const struct http_request *request)
{
    return request->query;
}

/* As in forms: `+` is a blank. */
static str query_decode(struct arena *arena, str text)
{
    char *decoded = arena_alloc(arena, text.size + 1);
    if (decoded == NULL) {
        return (str){0};
    }
    size_t size = 0;
    for (size_t at = 0; at < text.size; at++) {
        char c = text.data[at];
        if (c == '+') {
            c = ' ';
        } else if (c == '%') {
            c = (char)(unsigned char)escape_at(text, at);
            at += 2;
        }
        decoded[size] = c;
        size++;
    }
    return (str){decoded, size};
}

str http_request_parameter(struct http_request *request, str name)
{
    str rest = request->query;
    str part;
    while (str_next(&rest, '&', &part)) {
        i64 mark = str_find_byte(part, '=');
        size_t name_size = mark < 0 ? part.size : (size_t)mark;
        str found = query_decode(request->arena, str_slice(part, 0, name_size));
        if (found.data != NULL && str_equal(found, name)) {
            str value = mark < 0 ? (str){"", 0} : str_slice(part, name_size + 1, part.size);
            return query_decode(request->arena, value);
        }
    }
    return (str){0};
}

size_t http_request_header_count(const struct http_request *request)
{
    return request->field_count;
}

struct http_header http_request_header_at(const struct http_request *request, size_t index)
{
    assert(index < request->field_count);
    const struct http_field *field = &request->fields[index];
    return (struct http_header){http_request_span(request, field->name),
                                http_request_span(request, field->value)};
}

str http_request_header(const struct http_request *request, str name)
{
    for (size_t index = 0; index < request->field_count; index++) {
        const struct http_field *field = &request->fields[index];
        if (field->name.size == name.size &&
            str_equal_ignore_case(http_request_span(request, field->name), name)) {
            return http_request_span(request, field->value);
        }
    }
    return (str){0};
}

i32 http_request_header_times(const struct http_request *request, str name)
{
    i32 times = 0;
    for (size_t index = 0; index < request->field_count; index++) {
        str found = http_request_span(request, request->fields[index].name);
        times += str_equal_ignore_case(found, name) ? 1 : 0;
    }
    return times;
}

i64 http_request_content_length(const struct http_request *request)
{
    return request->chunked ? -1 : request->content_length;
}

str http_request_id(const struct http_request *request)
{
    return (str){request->id, request->id_size};
}

str http_request_peer(const struct http_request *request)
{
    return (str){request->peer, request->peer_size};
}

bool http_request_has_body(const struct http_request *request)
{
    return request->chunked || request->content_length > 0;
}
