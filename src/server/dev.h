/* dev: what `lhbox dev` makes on an empty data directory, and how it tells its user.
 *
 * A project, an admin key, the warehouse `dev`, the table `dev.demo.events`, a sink on it.
 * DIR/dev.json (mode 0600) holds the keys, and is what the commands read when there is no other
 * profile; it is written when everything is there, so that a start that was cut off begins again.
 * Of a send key only the hash is kept: a sink that nothing was sent to yet is made again when its
 * key is not known, any other is left alone.
 */
#ifndef LHBOX_SERVER_DEV_H
#define LHBOX_SERVER_DEV_H

#include "server/service.h"

struct dev_profile {
    str api_key;
    str table; /* dev.demo.events */
    str sink_id;
    str send_key; /* empty: not known any more */
};

/* Reads dev.json, or makes what it names. */
MUST_USE err dev_prepare(struct arena *arena, struct service *service,
                         struct dev_profile *out_profile, struct error *error);
/* Makes the demo's sink again when its key is not known and nobody can be using it. After the
 * start of intake and roller, before the listener's. */
MUST_USE err dev_renew_sink(struct arena *arena, const struct service *service,
                            struct dev_profile *profile, struct error *error);
/* Writes dev.json with the addresses of this run. */
MUST_USE err dev_save(struct arena *arena, const struct service *service,
                      const struct dev_profile *profile, struct error *error);
/* The paste-ready blocks. */
str dev_greeting(struct arena *arena, const struct service *service,
                 const struct dev_profile *profile);

#endif
