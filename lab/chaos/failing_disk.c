/* A preloaded library that makes one call of a process fail: the n-th of a kind on a file whose path has a given part.

   FAILING_DISK=OPERATION:N:FAULT:MARK:PART   FAULT is a number of errno, or "short" (half of the bytes)

   The call fails in the first process that creates the file MARK, so a fault happens once however many processes a job
   has. A close that fails has closed the file, as on Linux. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <unistd.h>

static char operation[16], part[512], mark[512];
static long nth, calls;
static int fault; /* 0: none is planned; -1: short */

__attribute__((constructor)) static void plan(void) {
    const char *text = getenv("FAILING_DISK");
    char kind[16];
    if (text && sscanf(text, "%15[^:]:%ld:%15[^:]:%511[^:]:%511[^\n]", operation, &nth, kind, mark, part) == 5)
        fault = strcmp(kind, "short") ? atoi(kind) : -1;
}

/* The fault of this call, 0 if there is none. */
static int strikes(const char *what, const char *path) {
    if (!fault || strcmp(what, operation) || !path || !strstr(path, part) || strstr(path, "/tmp/std")) return 0;
    if (__atomic_add_fetch(&calls, 1, __ATOMIC_SEQ_CST) != nth) return 0;
    long fd = syscall(SYS_openat, AT_FDCWD, mark, O_WRONLY | O_CREAT | O_EXCL, 0600);
    if (fd < 0) return 0;
    syscall(SYS_close, fd);
    return fault;
}

static int strikes_at(const char *what, int fd) {
    char link[64], path[4096];
    if (!fault || fd < 0 || strcmp(what, operation)) return 0;
    int before = errno;
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    long size = syscall(SYS_readlinkat, AT_FDCWD, link, path, sizeof path - 1);
    errno = before;
    if (size < 0) return 0;
    path[size] = 0;
    return strikes(what, path);
}

/* The path of a file to open; one that is named by the descriptor of its folder is resolved. */
static int strikes_on(const char *what, int folder, const char *name) {
    char link[64], path[4096];
    int fd = -1, skip = 0;
    if (!fault || !name || strcmp(what, operation)) return 0;
    if (sscanf(name, "/proc/self/fd/%d/%n", &fd, &skip) == 1 && skip) folder = fd, name += skip;
    else if (name[0] == '/' || folder < 0) return strikes(what, name);
    snprintf(link, sizeof link, "/proc/self/fd/%d", folder);
    long size = syscall(SYS_readlinkat, AT_FDCWD, link, path, 2048);
    if (size < 0) return 0;
    snprintf(path + size, sizeof path - size, "/%s", name);
    return strikes(what, path);
}

#define FAIL(hit) do { errno = (hit); return -1; } while (0)
#define SIZED(hit, n) ((hit) < 0 && (n) > 1 ? (n) / 2 : (n))

ssize_t write(int fd, const void *data, size_t n) {
    int hit = strikes_at("write", fd);
    if (hit > 0) FAIL(hit);
    return syscall(SYS_write, fd, data, SIZED(hit, n));
}

ssize_t pwrite64(int fd, const void *data, size_t n, off64_t at) {
    int hit = strikes_at("write", fd);
    if (hit > 0) FAIL(hit);
    return syscall(SYS_pwrite64, fd, data, SIZED(hit, n), at);
}

ssize_t pwrite(int fd, const void *data, size_t n, off_t at) { return pwrite64(fd, data, n, at); }

ssize_t writev(int fd, const struct iovec *parts, int n) {
    int hit = strikes_at("write", fd);
    if (hit > 0) FAIL(hit);
    return syscall(SYS_writev, fd, parts, SIZED(hit, n));
}

ssize_t read(int fd, void *data, size_t n) {
    int hit = strikes_at("read", fd);
    if (hit > 0) FAIL(hit);
    return syscall(SYS_read, fd, data, SIZED(hit, n));
}

ssize_t pread64(int fd, void *data, size_t n, off64_t at) {
    int hit = strikes_at("read", fd);
    if (hit > 0) FAIL(hit);
    return syscall(SYS_pread64, fd, data, SIZED(hit, n), at);
}

ssize_t pread(int fd, void *data, size_t n, off_t at) { return pread64(fd, data, n, at); }

int close(int fd) {
    int hit = strikes_at("close", fd);
    int done = (int)syscall(SYS_close, fd);
    if (hit > 0) FAIL(hit);
    return done;
}

int ftruncate64(int fd, off64_t n) {
    int hit = strikes_at("truncate", fd);
    if (hit > 0) FAIL(hit);
    return (int)syscall(SYS_ftruncate, fd, n);
}

int ftruncate(int fd, off_t n) { return ftruncate64(fd, n); }

void *mmap64(void *at, size_t n, int how, int flags, int fd, off64_t first) {
    int hit = strikes_at("mmap", fd);
    if (hit > 0) {
        errno = hit;
        return MAP_FAILED;
    }
    return (void *)syscall(SYS_mmap, at, n, how, flags, fd, first);
}

void *mmap(void *at, size_t n, int how, int flags, int fd, off_t first) { return mmap64(at, n, how, flags, fd, first); }

static int opened(int folder, const char *name, int flags, int mode) {
    int hit = strikes_on("open", folder, name);
    if (hit > 0) FAIL(hit);
    return (int)syscall(SYS_openat, folder, name, flags, mode);
}

#define MODE(flags) ({ va_list more; va_start(more, flags); int m = va_arg(more, int); va_end(more); m; })
#define MODE_OF(flags) ((flags) & (O_CREAT | __O_TMPFILE) ? MODE(flags) : 0)

int open(const char *name, int flags, ...) { return opened(AT_FDCWD, name, flags, MODE_OF(flags)); }
int open64(const char *name, int flags, ...) { return opened(AT_FDCWD, name, flags | O_LARGEFILE, MODE_OF(flags)); }
int openat(int at, const char *name, int flags, ...) { return opened(at, name, flags, MODE_OF(flags)); }
int openat64(int at, const char *name, int flags, ...) { return opened(at, name, flags | O_LARGEFILE, MODE_OF(flags)); }

int renameat(int from, const char *old, int to, const char *new) {
    int hit = strikes_on("rename", to, new);
    if (hit > 0) FAIL(hit);
    return (int)syscall(SYS_renameat2, from, old, to, new, 0);
}

int rename(const char *old, const char *new) { return renameat(AT_FDCWD, old, AT_FDCWD, new); }
