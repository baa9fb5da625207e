/* replay: runs a harness over the files named, or over all files of the folders named. */
#include "fuzz.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum { PATH_ROOM = 4096 };

static _Noreturn void fail(const char *path)
{
    perror(path);
    exit(2);
}

static void run_file(const char *path)
{
    FILE *file = fopen(path, "rb");
    struct stat status;
    if (file == NULL || fstat(fileno(file), &status) != 0) {
        fail(path);
    }
    size_t size = (size_t)status.st_size;
    /* Exactly the size, so that a sanitizer sees a read past the end. */
    uint8_t *data = malloc(size > 0 ? size : 1);
    if (data == NULL || fread(data, 1, size, file) != size) {
        fail(path);
    }
    fclose(file);
    (void)LLVMFuzzerTestOneInput(data, size);
    free(data);
}

static int run_folder(const char *path)
{
    DIR *folder = opendir(path);
    if (folder == NULL) {
        fail(path);
    }
    int count = 0;
    const struct dirent *entry;
    while ((entry = readdir(folder)) != NULL) {
        if (entry->d_name[0] == '.') {
            continue;
        }
        char file[PATH_ROOM];
        int size = snprintf(file, sizeof(file), "%s/%s", path, entry->d_name);
        if (size < 0 || size >= PATH_ROOM) {
            fail(entry->d_name);
        }
        run_file(file);
        count++;
    }
    closedir(folder);
    return count;
}

int main(int argc, char **argv)
{
    int count = 0;
    for (int i = 1; i < argc; i++) {
        struct stat status;
        if (stat(argv[i], &status) != 0) {
            fail(argv[i]);
        }
        if (S_ISDIR(status.st_mode)) {
            count += run_folder(argv[i]);
        } else {
            run_file(argv[i]);
            count++;
        }
    }
    printf("%d inputs\n", count);
    /* An empty corpus proves nothing. */
    return count > 0 ? 0 : 1;
}
