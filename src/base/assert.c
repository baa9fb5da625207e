#include "base/assert.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

_Noreturn void assert_failed(const char *condition, const char *file, int line,
                             const char *function)
{
    char text[1024];
    int size = snprintf(text, sizeof(text), "%s: %s:%d: false: %s\n", function, file, line,
                        condition);
    if (size > 0) {
        size_t length = (size_t)size < sizeof(text) ? (size_t)size : sizeof(text) - 1;
        /* There is nobody left to tell when this fails, too. */
        ssize_t written = write(STDERR_FILENO, text, length);
        (void)written;
    }
    abort();
}
