/* What is said to a person, on stderr. */
#include "cli/cli.h"

#include <stdarg.h>
#include <stdio.h>

/* Bytes that could steer a terminal do not reach it. */
__attribute__((format(printf, 2, 0))) static void say(const char *prefix, const char *format,
                                                      va_list arguments)
{
    char text[2048];
    (void)vsnprintf(text, sizeof(text), format, arguments);
    for (char *at = text; *at != 0; at++) {
        if ((unsigned char)*at < 0x20 && *at != '\n' && *at != '\t') {
            *at = '?';
        }
    }
    (void)fprintf(stderr, "%s%s\n", prefix, text);
}

int cli_usage_error(const struct cli *cli, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    say("lhbox: ", format, arguments);
    va_end(arguments);
    (void)fprintf(stderr, "       `lhbox %s --help` shows how it is used\n", cli->command->path);
    return CLI_USAGE;
}

int cli_failed(const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    say("lhbox: ", format, arguments);
    va_end(arguments);
    return CLI_REFUSED;
}

int cli_failed_error(const struct error *error)
{
    (void)cli_failed("%s", error->message);
    if (error->hint[0] != 0) {
        cli_note("hint: %s", error->hint);
    }
    return CLI_REFUSED;
}

void cli_note(const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    say("", format, arguments);
    va_end(arguments);
}
