/* catalog_restore: the embedded catalog's pointers, moved forward to what the store remembers
 * (exactly-once section 9, step 0).
 *
 * An older copy of the ledger holds older pointers. Each table's and view's
 * `metadata/version-hint.text` names the current metadata file; it was durable before the commit
 * was answered. A hint that is behind its pointer (the process died between the two) is written
 * again. Idempotent, may be killed anywhere; each pointer moves by compare-and-swap. Blocking. */
#ifndef LHBOX_TABLE_CATALOG_RESTORE_H
#define LHBOX_TABLE_CATALOG_RESTORE_H

#include "table/catalog_local.h"

struct catalog_restored {
    i64 tables; /* and views */
    i64 moved;  /* pointers */
    i64 hints;  /* written again */
    i64 lost;   /* tables whose metadata cannot be found; they are logged */
};

/* Every table and view of the warehouse. One that cannot be read does not stop the others. */
MUST_USE err catalog_restore_pointers(struct catalog_local *local,
                                      struct catalog_restored *out_restored, struct error *error);
/* In the running server: hints that could not be written after their swap (a full disk) are written
 * now. OK: no table's hint is behind, as far as this process knows; nothing is read then. */
MUST_USE err catalog_restore_hints(struct catalog_local *local, struct error *error);
/* The same for one table, whichever process was to write its hint. */
MUST_USE err catalog_restore_hint(struct catalog_local *local, struct table_name name,
                                  struct error *error);
/* The table of this uuid has a pointer again, under this name, when its hint lies below `root`. OK
 * also when it has one already, or when nothing is found. */
MUST_USE err catalog_restore_table(struct catalog_local *local, str root, struct table_name name,
                                   str uuid, struct error *error);

#endif
