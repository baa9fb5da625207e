/* planted: faults of the protocol that the simulator's own build can switch on, to see that it
 * finds them.
 *
 * Each is the place where one rule of docs/exactly-once.md is left out; the number is the fault's
 * there. In every other build the switches are constants and nothing of them is left. The
 * simulator's build
 * (-Dplanted=true) defines what is declared here. */
#ifndef LHBOX_BASE_PLANTED_H
#define LHBOX_BASE_PLANTED_H

#ifdef LHBOX_PLANTED
extern int planted_fault; /* 0: none */
int planted_ask(int fault, const void *a, const void *b, const void *c);
void planted_act(int fault, const void *a, const void *b, const void *c);
#define PLANTED(fault)              (planted_fault == (fault))
#define PLANTED_ASK(fault, a, b, c) (PLANTED(fault) && planted_ask((fault), (a), (b), (c)) != 0)
#define PLANTED_ACT(fault, when, a, b, c)                                                          \
    do {                                                                                           \
        if (PLANTED(fault) && (when)) {                                                            \
            planted_act((fault), (a), (b), (c));                                                   \
        }                                                                                          \
    } while (0)
#define PLANTED_RETURN(fault, type, a, b, c)                                                       \
    do {                                                                                           \
        if (PLANTED(fault)) {                                                                      \
            return (type)planted_ask((fault), (a), (b), (c));                                      \
        }                                                                                          \
    } while (0)
#else
#define PLANTED(fault)                       false
#define PLANTED_ASK(fault, a, b, c)          false
#define PLANTED_ACT(fault, when, a, b, c)    ((void)0)
#define PLANTED_RETURN(fault, type, a, b, c) ((void)0)
#endif

#endif
