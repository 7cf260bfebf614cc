// Faults of a disk for a real program: loaded with LD_PRELOAD, it stands between the program and the
// system's calls on files of one directory.
//
//   TACHO_FAULTS_DIR   the directory; files elsewhere are left alone
//   TACHO_FAULTS_FILE  what goes wrong, read again at each call, so that it can be replaced (by a
//                      rename) at any time: lines of a name and a number, 0 where one is missing
//   TACHO_FAULTS_LOG   where a letter is appended for each call that went wrong: s, w, f, h, r in
//                      the order of the list below
//
//     sync_error   of a thousand syncs so many fail with EIO
//     write_error  of a thousand writes so many fail with EIO
//     full         of a thousand writes so many fail with ENOSPC
//     short        of a thousand writes of two blocks and more so many take only a part
//     read_error   of a thousand reads so many fail with EIO
//     delay_us     every write and sync takes so much longer
//
// In C since the workspace has no unsafe code, and because there is no way to replace these calls
// without. What fails is not done: a kernel's way to lose what a failed sync was to write is the
// matter of the journal's own tests on a disk in memory.
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { BLOCK = 4096 };

struct faults {
    unsigned sync_error, write_error, full, shorts, read_error, delay_us;
};

static _Atomic uint64_t drawn;

// Of a thousand calls, `permille` times.
static int happens(unsigned permille) {
    uint64_t state = atomic_fetch_add(&drawn, 0x9e3779b97f4a7c15u) + 0x9e3779b97f4a7c15u;
    // Other calls of the next process.
    state += (uint64_t)getpid() << 32;
    state = (state ^ (state >> 30)) * 0xbf58476d1ce4e5b9u;
    state = (state ^ (state >> 27)) * 0x94d049bb133111ebu;
    return (state ^ (state >> 31)) % 1000 < permille;
}

// Tells that a call went wrong: a test may have to know that it did.
static void tell(char letter) {
    const char *file = getenv("TACHO_FAULTS_LOG");
    int log = file == NULL ? -1 : open(file, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
    if (log >= 0) {
        (void)!syscall(SYS_write, log, &letter, (size_t)1);
        close(log);
    }
}

static unsigned number(const char *text, const char *name) {
    size_t length = strlen(name);
    for (const char *line = text; line != NULL; line = strchr(line, '\n')) {
        line += *line == '\n';
        if (strncmp(line, name, length) == 0 && line[length] == ' ') {
            return (unsigned)strtoul(line + length, NULL, 10);
        }
    }
    return 0;
}

// Whether calls on this file may fail, and how.
static int read_faults(int fd, struct faults *faults) {
    const char *directory = getenv("TACHO_FAULTS_DIR"), *file = getenv("TACHO_FAULTS_FILE");
    if (directory == NULL || file == NULL) {
        return 0;
    }
    char link[64], path[4096], text[512];
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    ssize_t length = readlink(link, path, sizeof path - 1);
    if (length < 0) {
        return 0;
    }
    path[length] = '\0';
    size_t prefix = strlen(directory);
    if (strncmp(path, directory, prefix) != 0 || (path[prefix] != '/' && path[prefix] != '\0')) {
        return 0;
    }
    int control = open(file, O_RDONLY | O_CLOEXEC);
    if (control < 0) {
        return 0;
    }
    length = syscall(SYS_read, control, text, sizeof text - 1);
    close(control);
    if (length <= 0) {
        return 0;
    }
    text[length] = '\0';
    faults->sync_error = number(text, "sync_error");
    faults->write_error = number(text, "write_error");
    faults->full = number(text, "full");
    faults->shorts = number(text, "short");
    faults->read_error = number(text, "read_error");
    faults->delay_us = number(text, "delay_us");
    return 1;
}

static ssize_t fail(int error, char letter) {
    tell(letter);
    errno = error;
    return -1;
}

ssize_t pwrite64(int fd, const void *bytes, size_t count, off64_t offset) {
    struct faults faults;
    int saved = errno;
    if (read_faults(fd, &faults)) {
        if (faults.delay_us > 0) {
            usleep(faults.delay_us);
        }
        if (happens(faults.write_error)) {
            return fail(EIO, 'w');
        }
        if (happens(faults.full)) {
            return fail(ENOSPC, 'f');
        }
        if (count >= 2 * BLOCK && happens(faults.shorts)) {
            // Whole blocks, as direct writes have to be.
            count = count / 2 / BLOCK * BLOCK;
            tell('h');
        }
    }
    errno = saved;
    return syscall(SYS_pwrite64, fd, bytes, count, offset);
}

ssize_t pread64(int fd, void *bytes, size_t count, off64_t offset) {
    struct faults faults;
    int saved = errno;
    if (read_faults(fd, &faults) && happens(faults.read_error)) {
        return fail(EIO, 'r');
    }
    errno = saved;
    return syscall(SYS_pread64, fd, bytes, count, offset);
}

static int sync_with(long call, int fd) {
    struct faults faults;
    int saved = errno;
    if (read_faults(fd, &faults)) {
        if (faults.delay_us > 0) {
            usleep(faults.delay_us);
        }
        if (happens(faults.sync_error)) {
            return (int)fail(EIO, 's');
        }
    }
    errno = saved;
    return (int)syscall(call, fd);
}

int fdatasync(int fd) {
    return sync_with(SYS_fdatasync, fd);
}

int fsync(int fd) {
    return sync_with(SYS_fsync, fd);
}
