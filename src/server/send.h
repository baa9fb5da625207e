/* send: the HTTP side of POST /v1/sinks/{id}: what the head says, the body on its way, the answer.
 *
 * The head is judged in the order of the contract (key, id, type, length), so that most wrong
 * requests are refused with their body unread. All functions run on the request's http loop and
 * never block; the answer is sent by whatever thread has it. */
#ifndef LHBOX_SERVER_SEND_H
#define LHBOX_SERVER_SEND_H

#include "server/service.h"

struct intake_send;

/* The sink id of a send route's path; data NULL when it is another route. */
str send_route(const struct http_request *request);
/* *out_send is set when the body is to be read. */
enum http_body_choice send_head(struct service *service, struct http_request *request, str sink_id,
                                struct intake_send **out_send);
/* Not OK: the request was answered and the send is gone. */
MUST_USE err send_body(struct http_request *request, struct intake_send *send, str piece);
void send_complete(struct intake_send *send);

#endif
