/* Delete: a sink is deleted while it accepts and one roller rolls. Once the delete was answered, no row that it called
 * discarded may ever appear.
 *
 * Faults that can be left in:
 *   NO_LAST_FENCE  the delete discards without a fence
 *   NO_SWAP        a try starts without looking at plan and sink again
 *   NO_REFUSAL     a deleting sink still accepts */
#define ATTEMPTS 2
#define CRASHES 1
#define LOSSES 1
#define TICKS 2
#define FOREIGN 1
#define ROLLBACKS 1
#define CHANGES 0
#include "protocol.inc"

proctype Delete()
{
    byte base, number, read, tries = 0;
    deleting = true;
again:
    do
    :: deleted || tries >= 3 -> break
    :: else ->
        tries++;
        atomic {
            if
            :: plan != NONE && state == OPEN -> plan = NONE; state = NONE; batch = PENDING
            :: plan != NONE && state == ATTEMPTED -> state = VOIDING
            :: else
            fi
        };
        PERHAPS_CRASH(again);
        atomic { base = head; number = sequence + 1; read = property };
        if
        :: plan != NONE && read == plan -> finish(plan); goto again
        :: else
        fi;
#ifndef NO_LAST_FENCE
        if
        :: !last_fenced ->
            atomic {
                if
                :: head == base && number > sequence -> land(NONE, number); last_fenced = true
                :: else
                fi
            };
            goto again
        :: else
        fi;
#endif
        atomic {
            /* the fence was seen in a load that reads no plan of ours */
            if
            :: plan != NONE && property == plan -> goto again
            :: else ->
                plan = NONE;
                state = NONE;
                deleted = true;
                if
                :: batch == PENDING || batch == PLANNED -> batch = DISCARDED
                :: else
                fi
            fi
        }
    od;
    running--
}

init
{
    running = 4;
    atomic {
        run Roller(); run World(); run Intake(); run Delete()
    };
    running == 0;
    atomic {
        if
        :: under_way && FITS(late_base, late_sequence) -> land(late_plan, late_sequence)
        :: else
        fi
    };
    assert(batch != DISCARDED || landed == 0);
    assert(batch != COMMITTED || landed == 1);
    /* a deleted sink has nothing that waits */
    assert(!deleted || batch == NONE || batch == COMMITTED || batch == DISCARDED)
}
