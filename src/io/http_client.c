#include "io/http_client.h"

#include "base/assert.h"
#include "base/buf.h"
#include "base/time.h"

#include <curl/curl.h>
#include <pthread.h>
#include <signal.h>

enum { REPLY_BYTES_MAX = 64 * MIB, CONNECT_SECONDS = 10, CALL_SECONDS = 60 };

struct http_client {
    CURL *easy;
    char *unix_path;
    char *user_agent;
    char *ca_file;
    i64 connect_timeout_us;
};

/* One call under way. */
struct transfer {
    struct arena *arena;
    const struct http_call *call;
    struct http_reply *reply;
    buf body;
    bool memory_failed;
};

static pthread_once_t curl_once = PTHREAD_ONCE_INIT;

static void curl_start(void)
{
    CURLcode started = curl_global_init(CURL_GLOBAL_DEFAULT);
    assert(started == CURLE_OK);
}

static char *text_copy(struct arena *arena, str text)
{
    char *copy = arena_alloc(arena, text.size + 1);
    if (copy != NULL) {
        memcpy(copy, text.data != NULL ? text.data : "", text.size);
    }
    return copy;
}

err http_client_create(struct arena *arena, const struct http_client_options *options,
                       struct http_client **out_client, struct error *error)
{
    pthread_once(&curl_once, curl_start);
    struct http_client *client = arena_alloc(arena, sizeof(*client));
    if (client == NULL) {
        return error_memory(error);
    }
    str agent = options->user_agent.size > 0 ? options->user_agent : STR("lhbox");
    client->unix_path = text_copy(arena, options->unix_path);
    client->user_agent = text_copy(arena, agent);
    client->ca_file = text_copy(arena, options->ca_file);
    client->connect_timeout_us = options->connect_timeout_us > 0 ? options->connect_timeout_us
                                                                 : CONNECT_SECONDS * TIME_SECOND_US;
    client->easy = curl_easy_init();
    if (client->unix_path == NULL || client->user_agent == NULL || client->ca_file == NULL ||
        client->easy == NULL) {
        http_client_destroy(client);
        return error_memory(error);
    }
    *out_client = client;
    return OK;
}

void http_client_destroy(struct http_client *client)
{
    if (client != NULL && client->easy != NULL) {
        curl_easy_cleanup(client->easy);
        client->easy = NULL;
    }
}

/* ---- what curl hands over ---- */

static size_t take_body(char *bytes, size_t size, size_t count, void *context)
{
    struct transfer *transfer = context;
    buf_append_bytes(&transfer->body, bytes, size * count);
    return buf_ok(&transfer->body) ? size * count : 0;
}

static size_t take_header(char *bytes, size_t size, size_t count, void *context)
{
    struct transfer *transfer = context;
    struct http_reply *reply = transfer->reply;
    str line = {bytes, size * count};
    if (str_starts(line, STR("HTTP/"))) {
        reply->header_count = 0; /* an interim answer came before this one */
        return line.size;
    }
    i64 colon = str_find_byte(line, ':');
    if (colon <= 0 || reply->header_count == HTTP_CLIENT_REPLY_HEADERS_MAX) {
        return line.size;
    }
    size_t end = line.size;
    while (end > 0 && (line.data[end - 1] == '\r' || line.data[end - 1] == '\n')) {
        end--;
    }
    str name = str_copy(transfer->arena, str_slice(line, 0, (size_t)colon));
    str value = str_copy(transfer->arena, str_trim(str_slice(line, (size_t)colon + 1, end)));
    if (name.data == NULL || value.data == NULL) {
        transfer->memory_failed = true;
        return 0;
    }
    reply->headers[reply->header_count++] = (struct http_client_header){name, value};
    return line.size;
}

static int take_progress(void *context, curl_off_t down_total, curl_off_t down, curl_off_t up_total,
                         curl_off_t up)
{
    const struct transfer *transfer = context;
    (void)down_total;
    (void)down;
    (void)up_total;
    transfer->call->progress(transfer->call->progress_context, up);
    return 0;
}

/* ---- setting up ---- */

static bool url_is_loopback(str url)
{
    static const str prefixes[] = {
        STR_INIT("http://127."),  STR_INIT("http://localhost"),  STR_INIT("http://[::1]"),
        STR_INIT("https://127."), STR_INIT("https://localhost"), STR_INIT("https://[::1]"),
    };
    for (size_t index = 0; index < ARRAY_COUNT(prefixes); index++) {
        if (str_starts(url, prefixes[index])) {
            return true;
        }
    }
    return false;
}

/* NULL at the arena's limit; an element of curl's list for each header. */
static bool headers_make(struct arena *arena, const struct http_call *call,
                         struct curl_slist **out_list)
{
    for (size_t index = 0; index < call->header_count; index++) {
        const struct http_client_header *header = &call->headers[index];
        str line = str_format(arena, "%.*s: %.*s", STR_ARG(header->name), STR_ARG(header->value));
        struct curl_slist *longer = line.data == NULL ? NULL
                                                      : curl_slist_append(*out_list, line.data);
        if (longer == NULL) {
            return false;
        }
        *out_list = longer;
    }
    return true;
}

static bool method_has_body(str method)
{
    return !str_equal(method, STR("GET")) && !str_equal(method, STR("HEAD")) &&
           !str_equal(method, STR("DELETE"));
}

static void set_method(CURL *easy, struct arena *arena, const struct http_call *call)
{
    if (method_has_body(call->method) || call->body.size > 0) {
        curl_easy_setopt(easy, CURLOPT_POST, 1L);
        curl_easy_setopt(easy, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)call->body.size);
        curl_easy_setopt(easy, CURLOPT_POSTFIELDS, call->body.data != NULL ? call->body.data : "");
    } else if (str_equal(call->method, STR("HEAD"))) {
        curl_easy_setopt(easy, CURLOPT_NOBODY, 1L);
    } else {
        curl_easy_setopt(easy, CURLOPT_HTTPGET, 1L);
    }
    curl_easy_setopt(easy, CURLOPT_CUSTOMREQUEST, text_copy(arena, call->method));
}

static void set_connection(const struct http_client *client, const struct http_call *call)
{
    CURL *easy = client->easy;
    i64 timeout_us = call->timeout_us > 0 ? call->timeout_us : CALL_SECONDS * TIME_SECOND_US;
    curl_easy_setopt(easy, CURLOPT_PROTOCOLS_STR, "http,https");
    curl_easy_setopt(easy, CURLOPT_FOLLOWLOCATION, 0L);
    curl_easy_setopt(easy, CURLOPT_NOSIGNAL, 1L);
    curl_easy_setopt(easy, CURLOPT_USERAGENT, client->user_agent);
    curl_easy_setopt(easy, CURLOPT_HTTP_VERSION, (long)CURL_HTTP_VERSION_1_1);
    curl_easy_setopt(easy, CURLOPT_CONNECTTIMEOUT_MS, (long)(client->connect_timeout_us / 1000));
    curl_easy_setopt(easy, CURLOPT_TIMEOUT_MS, (long)(timeout_us / 1000));
    if (client->unix_path[0] != 0) {
        curl_easy_setopt(easy, CURLOPT_UNIX_SOCKET_PATH, client->unix_path);
    }
    if (client->ca_file[0] != 0) {
        curl_easy_setopt(easy, CURLOPT_CAINFO, client->ca_file);
    }
    if (client->unix_path[0] != 0 || url_is_loopback(call->url)) {
        curl_easy_setopt(easy, CURLOPT_PROXY, "");
    }
    if (call->reuse == HTTP_FRESH_CONNECTION) {
        curl_easy_setopt(easy, CURLOPT_FRESH_CONNECT, 1L);
        curl_easy_setopt(easy, CURLOPT_FORBID_REUSE, 1L);
    }
}

static void set_callbacks(CURL *easy, struct transfer *transfer)
{
    curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, take_body);
    curl_easy_setopt(easy, CURLOPT_WRITEDATA, transfer);
    curl_easy_setopt(easy, CURLOPT_HEADERFUNCTION, take_header);
    curl_easy_setopt(easy, CURLOPT_HEADERDATA, transfer);
    if (transfer->call->progress != NULL) {
        curl_easy_setopt(easy, CURLOPT_NOPROGRESS, 0L);
        curl_easy_setopt(easy, CURLOPT_XFERINFOFUNCTION, take_progress);
        curl_easy_setopt(easy, CURLOPT_XFERINFODATA, transfer);
    }
}

/* ---- calling ---- */

/* OpenSSL writes without MSG_NOSIGNAL: a broken connection must not end the process. */
static CURLcode perform_without_sigpipe(CURL *easy)
{
    sigset_t pipe_only;
    sigset_t before;
    sigemptyset(&pipe_only);
    sigaddset(&pipe_only, SIGPIPE);
    pthread_sigmask(SIG_BLOCK, &pipe_only, &before);
    CURLcode result = curl_easy_perform(easy);
    if (!sigismember(&before, SIGPIPE)) {
        const struct timespec now = {0};
        (void)sigtimedwait(&pipe_only, NULL, &now);
        pthread_sigmask(SIG_SETMASK, &before, NULL);
    }
    return result;
}

/* Was there a connection on which the request may have gone out? */
static bool was_connected(CURL *easy)
{
    curl_off_t ready_us = 0;
    return curl_easy_getinfo(easy, CURLINFO_PRETRANSFER_TIME_T, &ready_us) == CURLE_OK &&
           ready_us > 0;
}

static err failure_of(const struct transfer *transfer, CURL *easy, CURLcode result,
                      struct error *error)
{
    const char *reason = curl_easy_strerror(result);
    str url = transfer->call->url;
    switch ((int)result) {
    case CURLE_URL_MALFORMAT:
    case CURLE_UNSUPPORTED_PROTOCOL:
        return error_set(error, INVALID, ERROR_INVALID_REQUEST, "%.*s is no URL to call: %s",
                         STR_ARG(url), reason);
    case CURLE_WRITE_ERROR:
        if (!buf_ok(&transfer->body)) {
            return error_set(error, LIMIT, ERROR_UNAVAILABLE, "the answer of %.*s is too large",
                             STR_ARG(url));
        }
        return error_memory(error);
    case CURLE_OUT_OF_MEMORY:
        return error_memory(error);
    default:
        break;
    }
    return was_connected(easy) ? error_set(error, UNKNOWN, ERROR_UNAVAILABLE,
                                           "no whole answer from %.*s: %s", STR_ARG(url), reason)
                               : error_set(error, IO, ERROR_UNAVAILABLE,
                                           "%.*s cannot be reached: %s", STR_ARG(url), reason);
}

static err transfer_run(struct http_client *client, struct transfer *transfer, const char *url,
                        struct curl_slist *headers, struct error *error)
{
    CURL *easy = client->easy;
    curl_easy_reset(easy);
    curl_easy_setopt(easy, CURLOPT_URL, url);
    curl_easy_setopt(easy, CURLOPT_HTTPHEADER, headers);
    set_method(easy, transfer->arena, transfer->call);
    set_connection(client, transfer->call);
    set_callbacks(easy, transfer);
    CURLcode result = perform_without_sigpipe(easy);
    if (result != CURLE_OK) {
        return failure_of(transfer, easy, result, error);
    }
    long status = 0;
    curl_easy_getinfo(easy, CURLINFO_RESPONSE_CODE, &status);
    transfer->reply->status = (int)status;
    transfer->reply->body = buf_str(&transfer->body);
    return OK;
}

err http_client_call(struct http_client *client, struct arena *arena, const struct http_call *call,
                     struct http_reply *out_reply, struct error *error)
{
    assert(call->header_count <= HTTP_CLIENT_HEADERS_MAX);
    i64 reply_bytes_max = call->reply_bytes_max > 0 ? call->reply_bytes_max : REPLY_BYTES_MAX;
    struct http_reply *reply = arena_alloc(arena, sizeof(*reply));
    char *url = text_copy(arena, call->url);
    if (reply == NULL || url == NULL) {
        return error_memory(error);
    }
    if (strlen(url) != call->url.size) {
        return error_set(error, INVALID, ERROR_INVALID_REQUEST, "a NUL in the URL");
    }
    struct transfer transfer = {
        .arena = arena,
        .call = call,
        .reply = reply,
        .body = buf_create(arena, 0, (size_t)reply_bytes_max),
    };
    struct curl_slist *headers = NULL;
    err result = headers_make(arena, call, &headers)
                     ? transfer_run(client, &transfer, url, headers, error)
                     : error_memory(error);
    curl_slist_free_all(headers);
    if (result == OK) {
        *out_reply = *reply;
    }
    return result;
}

str http_reply_header(const struct http_reply *reply, str name)
{
    for (size_t index = 0; index < reply->header_count; index++) {
        if (str_equal_ignore_case(reply->headers[index].name, name)) {
            return reply->headers[index].value;
        }
    }
    return (str){0};
}

str http_client_escape(struct arena *arena, str text)
{
    static const char digits[] = "0123456789ABCDEF";
    buf out = buf_create(arena, text.size * 3 + 1, text.size * 3 + 1);
    for (size_t at = 0; at < text.size; at++) {
        unsigned char c = (unsigned char)text.data[at];
        bool plain = (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
                     c == '-' || c == '.' || c == '_' || c == '~';
        if (plain) {
            buf_append_byte(&out, c);
        } else {
            const char escape[3] = {'%', digits[c >> 4], digits[c & 15]};
            buf_append_bytes(&out, escape, sizeof(escape));
        }
    }
    return buf_ok(&out) ? buf_str(&out) : (str){0};
}
