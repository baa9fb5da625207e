#include "io/journal.h"

#include "base/assert.h"

err journal_replay(const struct journal *journal, journal_record record, void *context,
                   struct error *error)
{
    return journal->ops->replay(journal->self, record, context, error);
}

err journal_submit(const struct journal *journal, const str *pieces, size_t count,
                   u64 *out_position, struct error *error)
{
    size_t size = 0;
    for (size_t i = 0; i < count; i++) {
        if (!num_add_size(size, pieces[i].size, &size)) {
            size = SIZE_MAX;
            break;
        }
    }
    if (size == 0 || size > JOURNAL_RECORD_BYTES_MAX) {
        return error_set(error, LIMIT, ERROR_INTERNAL, "a record of the log has %zu bytes, 1 to %d",
                         size, JOURNAL_RECORD_BYTES_MAX);
    }
    return journal->ops->submit(journal->self, pieces, count, out_position, error);
}

err journal_wait(const struct journal *journal, u64 position, struct error *error)
{
    return journal->ops->wait(journal->self, position, error);
}

err journal_release(const struct journal *journal, u64 position, struct error *error)
{
    return journal->ops->release(journal->self, position, error);
}

u64 journal_end(const struct journal *journal)
{
    return journal->ops->end(journal->self);
}

struct journal_space journal_space(const struct journal *journal)
{
    return journal->ops->space(journal->self);
}

void journal_close(struct journal *journal)
{
    if (journal->ops != NULL) {
        journal->ops->close(journal->self);
    }
    *journal = (struct journal){0};
}
