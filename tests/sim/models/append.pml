/* Append: two attempts of one batch, two rollers, a foreign writer, expiry, a rollback, a changed setting,
 * crashes, and requests that land late. */
#define ATTEMPTS 2
#define CRASHES 1
#define LOSSES 1
#define TICKS 2
#define FOREIGN 1
#define ROLLBACKS 1
#define CHANGES 1
#include "protocol.inc"

init
{
    running = 4;
    atomic { run Roller(); run Roller(); run World(); run Intake() };
    running == 0;
    /* what is under way lands when all others have ended */
    atomic {
        if
        :: under_way && FITS(late_base, late_sequence) -> land(late_plan, late_sequence)
        :: else
        fi
    };
    assert(!acknowledged || row != NONE);
    /* nothing is lost: what is not in the table can still be rolled, what is committed is there */
    assert(batch != COMMITTED || landed == 1);
    assert(row == NONE || landed == 1 || object[row - 1]);
    /* what landed will be finished: the property names the live plan or the last one */
    assert(landed == 0 || property == plan || property == last)
}
