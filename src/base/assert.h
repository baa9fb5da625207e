/* assert: what the programmer believes; stays on in release builds.
 *
 * A false condition prints function, file, line and condition to stderr and aborts. A crash is a
 * supported way to stop (recovery makes it safe), a wrong guess is not. Bad input is never
 * asserted. */
#ifndef LHBOX_BASE_ASSERT_H
#define LHBOX_BASE_ASSERT_H

#undef assert
#define assert(condition)                                                                          \
    ((condition) ? (void)0 : assert_failed(#condition, __FILE__, __LINE__, __func__))

_Noreturn void assert_failed(const char *condition, const char *file, int line,
                             const char *function);

#endif
