// Files that are shortened while they are mapped: see shortened.h.
//
// A signal handler may call little: the file's name is looked up in /proc/self/maps with plain reads, and everything is
// in static memory.
#include "cli/shortened.h"

#include "cli/command.h"

#include <fcntl.h>
#include <signal.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <unistd.h>

static char line[4096 + 128]; // of /proc/self/maps: "from-to rwxp offset device inode      path"

static void say(const char *text)
{
    size_t n = strlen(text);
    while (n > 0) {
        ssize_t done = write(STDERR_FILENO, text, n);
        if (done <= 0) return;
        text += done;
        n -= (size_t)done;
    }
}

// Reads a number in hexadecimal and the character after it.
static uintptr_t read_hex(const char **at)
{
    uintptr_t value = 0;
    for (;; (*at)++) {
        char c = **at;
        if (c >= '0' && c <= '9') value = value << 4 | (uintptr_t)(c - '0');
        else if (c >= 'a' && c <= 'f') value = value << 4 | (uintptr_t)(c - 'a' + 10);
        else break;
    }
    if (**at) (*at)++;
    return value;
}

// The path in a line about memory that holds the address, or NULL.
static const char *path_of(const char *text, uintptr_t address)
{
    uintptr_t from = read_hex(&text), to = read_hex(&text);
    return address >= from && address < to ? strchr(text, '/') : NULL;
}

// The path of the file that is mapped at an address, or NULL. Lines are taken together byte by byte from pieces.
static const char *file_at(uintptr_t address)
{
    static char piece[4096];
    const char *path = NULL;
    size_t length = 0;
    ssize_t n;
    int fd = open("/proc/self/maps", O_RDONLY | O_CLOEXEC);
    if (fd < 0) return NULL;
    while (!path && (n = read(fd, piece, sizeof piece)) > 0)
        for (ssize_t i = 0; i < n && !path; i++) {
            if (piece[i] != '\n') {
                if (length + 1 < sizeof line) line[length++] = piece[i];
                continue;
            }
            line[length] = 0;
            length = 0;
            path = path_of(line, address);
        }
    close(fd);
    return path;
}

static void on_bus_error(int number, siginfo_t *info, void *context)
{
    (void)context;
    const char *path = info->si_code == BUS_ADRERR ? file_at((uintptr_t)info->si_addr) : NULL;
    if (!path) { // something else: as if nobody had watched
        signal(number, SIG_DFL);
        raise(number);
        return;
    }
    say("hallmark: ");
    say(path);
    say(": expected a file that stays as it is, found it shortened while it was read\n");
    _exit(HM_EXIT_USAGE);
}

void hm_watch_for_shortened_files(void)
{
    struct sigaction action = {.sa_sigaction = on_bus_error, .sa_flags = SA_SIGINFO | SA_RESETHAND};
    sigemptyset(&action.sa_mask);
    sigaction(SIGBUS, &action, NULL);
}
