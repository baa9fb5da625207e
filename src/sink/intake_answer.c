/* The answer is rendered once, before the ledger's transaction, and kept in the batch row. Its last
 * member is the state, so that a duplicate is the same text with another end. */
#include "sink/intake_send.h"

#include "base/assert.h"

enum { ANSWER_ROOM = 1024, ANSWER_MAX = 64 * KIB };

static const char *state_text(enum batch_state state)
{
    switch (state) {
    case BATCH_PENDING:
        return "pending";
    case BATCH_PLANNED:
        return "planned";
    case BATCH_COMMITTED:
        return "committed";
    case BATCH_REJECTED:
        return "rejected";
    case BATCH_DISCARDED:
        return "discarded";
    }
    return "";
}

static const char *first_state(const struct intake_body *body)
{
    if (body->rows == 0) {
        return "empty";
    }
    return state_text(body->accepted > 0 ? BATCH_PENDING : BATCH_REJECTED);
}

str intake_answer_print(struct intake_send *send)
{
    const struct intake_body *body = &send->body;
    char at[TIME_TEXT_SIZE];
    buf out = buf_create(send->arena, ANSWER_ROOM, ANSWER_MAX);
    buf_append(&out, STR("{\"accepted\":"));
    buf_append_i64(&out, body->accepted);
    buf_append(&out, STR(",\"rejected\":"));
    buf_append_i64(&out, (i64)body->refused_count);
    buf_append(&out, STR(",\"reasons\":"));
    intake_body_print_reasons(body, &out);
    if (body->refused_count > INTAKE_REASONS_SHOWN) {
        buf_append(&out, STR(",\"reasons_truncated\":true"));
    }
    buf_append(&out, STR(",\"batch_id\":"));
    buf_append_json_string(&out, send->batch_id);
    if (send->id_made) {
        buf_append(&out, STR(",\"idempotent\":false"));
    }
    buf_append(&out, STR(",\"bytes\":"));
    buf_append_i64(&out, (i64)intake_body_stored(body).size);
    buf_append(&out, STR(",\"received_at\":\""));
    buf_append(&out, time_format(send->received_at, at));
    buf_append(&out, STR("\",\"state\":\""));
    buf_append(&out, str_from(first_state(body)));
    buf_append(&out, STR("\"}"));
    return buf_ok(&out) ? buf_str(&out) : (str){NULL, 0};
}

str intake_answer_with_state(struct arena *arena, str first_answer, enum batch_state state,
                             enum intake_answer_kind kind)
{
    static const str last_member = STR_INIT(",\"state\":\"");
    str before = first_answer.size > 0 ? str_slice(first_answer, 0, first_answer.size - 1)
                                       : STR("{");
    for (size_t at = before.size; at >= last_member.size; at--) {
        if (str_equal(str_slice(before, at - last_member.size, at), last_member)) {
            before.size = at - last_member.size;
            break;
        }
    }
    return str_format(arena, "%.*s%s\"state\":\"%s\"%s}", STR_ARG(before),
                      before.size > 1 ? "," : "", state_text(state),
                      kind == INTAKE_ANSWER_DUPLICATE ? ",\"duplicate\":true" : "");
}

void intake_send_answer(struct intake_send *send, const struct intake_answer *answer)
{
    assert(send->answered != NULL);
    struct arena *own = send->arena_lent ? NULL : send->arena; /* a lent one goes by the call */
    send->answered(send->context, answer);
    arena_destroy(own);
}

void intake_send_refuse(struct intake_send *send, const struct error *error)
{
    intake_send_answer(send, &(struct intake_answer){.error = error});
}

void intake_send_refuse_code(struct intake_send *send, enum error_code code)
{
    static const char *const meanings[ERROR_CODE_COUNT] = {
        "",
#define X(name, text, status, retryable, meaning, hint) meaning,
#include "base/error_codes.def"
#undef X
    };
    struct error error = {0};
    err kind = error_set(&error, BUSY, code, "%s", meanings[code]);
    assert(kind == BUSY);
    intake_send_refuse(send, &error);
}

static void answer_state(struct intake_send *send, str first_answer, enum batch_state state,
                         enum intake_answer_kind kind)
{
    str body = intake_answer_with_state(send->arena, first_answer, state, kind);
    if (body.data == NULL) {
        intake_send_refuse_code(send, ERROR_OVERLOADED);
        return;
    }
    intake_send_answer(send, &(struct intake_answer){.status = 202, .body = body});
}

void intake_send_accepted(struct intake_send *send, enum batch_state state)
{
    if (strcmp(first_state(&send->body), state_text(state)) == 0) {
        intake_send_answer(send, &(struct intake_answer){.status = 202, .body = send->answer});
        return;
    }
    answer_state(send, send->answer, state, INTAKE_ANSWER_FIRST);
}

void intake_send_duplicate(struct intake_send *send, str first_answer, enum batch_state state)
{
    answer_state(send, first_answer, state, INTAKE_ANSWER_DUPLICATE);
}
