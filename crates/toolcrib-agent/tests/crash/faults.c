/* Faults of a disk: makes the write or sync of a number on files of the store fail, in the process
 * into which it is preloaded. CRASH_FAULT is KIND:NUMBER.
 *
 *   full   this write and all later ones fail with ENOSPC
 *   short  half of this write is written; the next ones fail with ENOSPC
 *   broken this write or sync fails with EIO, once
 *   kill   the process is killed before this write or sync
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>
#include <unistd.h>

static atomic_long passed;

/* The operation's fault: 0 for none, 'f', 's' or 'b'. */
static char fault(int fd, int is_write) {
    const char *order = getenv("CRASH_FAULT");
    char link[64], path[4096];
    if (!order) return 0;
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    ssize_t length = readlink(link, path, sizeof path - 1);
    if (length < 0) return 0;
    path[length] = 0;
    if (!strstr(path, "sessions.db")) return 0;
    const char *colon = strchr(order, ':');
    long at = colon ? atol(colon + 1) : 0;
    long now = atomic_fetch_add(&passed, 1) + 1;
    if (order[0] == 'k' && now == at) kill(getpid(), SIGKILL);
    if (order[0] == 'k') return 0;
    if (order[0] == 'b') return now == at ? 'b' : 0;
    if (!is_write || now < at) return 0;
    return order[0] == 's' && now == at ? 's' : 'f';
}

typedef ssize_t (*pwrite_fn)(int, const void *, size_t, off_t);
typedef int (*sync_fn)(int);

static ssize_t write_at(const char *name, int fd, const void *from, size_t size, off_t at) {
    pwrite_fn real = (pwrite_fn)dlsym(RTLD_NEXT, name);
    switch (fault(fd, 1)) {
    case 'f': errno = ENOSPC; return -1;
    case 'b': errno = EIO; return -1;
    case 's': return real(fd, from, size / 2, at);
    default: return real(fd, from, size, at);
    }
}

ssize_t pwrite(int fd, const void *from, size_t size, off_t at) {
    return write_at("pwrite", fd, from, size, at);
}

ssize_t pwrite64(int fd, const void *from, size_t size, off_t at) {
    return write_at("pwrite64", fd, from, size, at);
}

static int sync_file(const char *name, int fd) {
    if (fault(fd, 0) == 'b') {
        errno = EIO;
        return -1;
    }
    return ((sync_fn)dlsym(RTLD_NEXT, name))(fd);
}

int fsync(int fd) { return sync_file("fsync", fd); }
int fdatasync(int fd) { return sync_file("fdatasync", fd); }
