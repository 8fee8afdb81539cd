/*
 * Records what a program does to files: preloaded into it (LD_PRELOAD), it appends each change to the file that POWER_LOG
 * names, in the order in which they happened. `disk.rs` reads it.
 *
 * A record is a letter, then in eight bytes each, little-endian: the number of the file (st_ino), an offset or a length, and
 * the number of bytes that follow:
 *
 *   C made a file (its path)              M made a folder (its path)
 *   W wrote at an offset (the bytes)      T set a length
 *   S synced a file, a folder (its path)  R renamed, L linked (old path, NUL, new path)
 *   U removed a file (its path)           K removed a folder (its path)
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

/* An operation and its record are one step: nothing comes between them. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int record_file = -1;

__attribute__((constructor)) static void begin(void) {
    const char *place = getenv("POWER_LOG");
    if (place) record_file = syscall(SYS_openat, AT_FDCWD, place, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
}

static void put(char what, uint64_t file, uint64_t number, const struct iovec *parts, int count, size_t length) {
    unsigned char head[25] = {what};
    uint64_t fields[3] = {file, number, length};
    memcpy(head + 1, fields, sizeof fields);
    struct iovec all[1 + 64];
    all[0].iov_base = head;
    all[0].iov_len = sizeof head;
    int used = 1;
    size_t left = length;
    for (int i = 0; i < count && left > 0; i++) {
        if (used == 65) abort();
        all[used] = parts[i];
        if (all[used].iov_len > left) all[used].iov_len = left;
        left -= all[used++].iov_len;
    }
    ssize_t written = syscall(SYS_writev, record_file, all, used);
    /* A record that is not whole would make all that follows unreadable. */
    if (written != (ssize_t)(sizeof head + length)) abort();
}

static void put_bytes(char what, uint64_t file, uint64_t number, const void *bytes, size_t length) {
    struct iovec part = {(void *)bytes, length};
    put(what, file, number, &part, 1, length);
}

/* Whether a descriptor is a file or a folder, and is recorded. */
static int is_kept(int fd, struct stat *found) {
    return record_file >= 0 && fstat(fd, found) == 0 && (S_ISREG(found->st_mode) || S_ISDIR(found->st_mode));
}

/* The absolute path of a name, links resolved in its folder only. */
static int place_of(int folder, const char *name, char out[PATH_MAX]) {
    char whole[PATH_MAX], real[PATH_MAX];
    if (name[0] == '/') {
        snprintf(whole, sizeof whole, "%s", name);
    } else {
        char base[PATH_MAX];
        if (folder == AT_FDCWD) {
            if (!getcwd(base, sizeof base)) return -1;
        } else {
            char link[64];
            snprintf(link, sizeof link, "/proc/self/fd/%d", folder);
            ssize_t length = readlink(link, base, sizeof base - 1);
            if (length < 0) return -1;
            base[length] = 0;
        }
        if ((size_t)snprintf(whole, sizeof whole, "%s/%s", base, name) >= sizeof whole) return -1;
    }
    for (size_t end = strlen(whole); end > 1 && whole[end - 1] == '/'; end--) whole[end - 1] = 0;
    char *slash = strrchr(whole, '/');
    *slash = 0;
    if (!realpath(slash == whole ? "/" : whole, real)) return -1;
    return (size_t)snprintf(out, PATH_MAX, "%s/%s", strcmp(real, "/") ? real : "", slash + 1) < PATH_MAX ? 0 : -1;
}

/* Runs an operation; if it succeeds, records it. */
#define STEP(type, operation, succeeds, record)                                                                       \
    pthread_mutex_lock(&lock);                                                                                        \
    type result = operation;                                                                                          \
    int kept_errno = errno;                                                                                           \
    if (record_file >= 0 && (succeeds)) { record; }                                                                   \
    pthread_mutex_unlock(&lock);                                                                                      \
    errno = kept_errno;                                                                                               \
    return result

static int opened(int folder, const char *name, int flags, mode_t mode) {
    char place[PATH_MAX];
    struct stat found;
    int is_placed = (flags & O_CREAT) && place_of(folder, name, place) == 0;
    pthread_mutex_lock(&lock);
    int is_new = is_placed && fstatat(folder, name, &found, AT_SYMLINK_NOFOLLOW) != 0;
    int fd = syscall(SYS_openat, folder, name, flags | O_LARGEFILE, mode);
    int kept_errno = errno;
    if (fd >= 0 && is_kept(fd, &found) && S_ISREG(found.st_mode)) {
        if (is_new) put_bytes('C', found.st_ino, 0, place, strlen(place));
        else if (flags & O_TRUNC) put('T', found.st_ino, 0, NULL, 0, 0);
    }
    pthread_mutex_unlock(&lock);
    errno = kept_errno;
    return fd;
}

#define OPENED(folder)                                                                                                \
    mode_t mode = 0;                                                                                                  \
    if (flags & (O_CREAT | __O_TMPFILE)) {                                                                            \
        va_list rest;                                                                                                 \
        va_start(rest, flags);                                                                                        \
        mode = va_arg(rest, mode_t);                                                                                  \
        va_end(rest);                                                                                                 \
    }                                                                                                                 \
    return opened(folder, name, flags, mode)

int open(const char *name, int flags, ...) { OPENED(AT_FDCWD); }
int open64(const char *name, int flags, ...) { OPENED(AT_FDCWD); }
int openat(int folder, const char *name, int flags, ...) { OPENED(folder); }
int openat64(int folder, const char *name, int flags, ...) { OPENED(folder); }
int creat(const char *name, mode_t mode) { return opened(AT_FDCWD, name, O_CREAT | O_WRONLY | O_TRUNC, mode); }

/* Where a write without an offset goes. */
static uint64_t place_in(int fd, const struct stat *found) {
    if (fcntl(fd, F_GETFL) & O_APPEND) return found->st_size;
    return lseek(fd, 0, SEEK_CUR);
}

static ssize_t written(int fd, const struct iovec *parts, int count, int64_t at) {
    struct stat found;
    /* Most are sockets and pipes. */
    if (!is_kept(fd, &found)) {
        return at < 0 ? syscall(SYS_writev, fd, parts, count) : syscall(SYS_pwritev, fd, parts, count, at, at >> 32);
    }
    pthread_mutex_lock(&lock);
    fstat(fd, &found);
    uint64_t place = at < 0 ? place_in(fd, &found) : (uint64_t)at;
    ssize_t result =
        at < 0 ? syscall(SYS_writev, fd, parts, count) : syscall(SYS_pwritev, fd, parts, count, at, at >> 32);
    int kept_errno = errno;
    if (result > 0) put('W', found.st_ino, place, parts, count, result);
    pthread_mutex_unlock(&lock);
    errno = kept_errno;
    return result;
}

static ssize_t written_bytes(int fd, const void *bytes, size_t length, int64_t at) {
    struct iovec part = {(void *)bytes, length};
    return written(fd, &part, 1, at);
}

ssize_t write(int fd, const void *bytes, size_t length) { return written_bytes(fd, bytes, length, -1); }
ssize_t pwrite(int fd, const void *bytes, size_t length, off_t at) { return written_bytes(fd, bytes, length, at); }
ssize_t pwrite64(int fd, const void *bytes, size_t length, off64_t at) { return written_bytes(fd, bytes, length, at); }
ssize_t writev(int fd, const struct iovec *parts, int count) { return written(fd, parts, count, -1); }
ssize_t pwritev(int fd, const struct iovec *parts, int count, off_t at) { return written(fd, parts, count, at); }
ssize_t pwritev64(int fd, const struct iovec *parts, int count, off64_t at) { return written(fd, parts, count, at); }

/* Programs have another way to copy where the system offers none. */
ssize_t copy_file_range(int from, off64_t *from_at, int to, off64_t *to_at, size_t length, unsigned flags) {
    struct stat found;
    if (!is_kept(to, &found)) return syscall(SYS_copy_file_range, from, from_at, to, to_at, length, flags);
    errno = ENOSYS;
    return -1;
}
ssize_t sendfile(int to, int from, off_t *at, size_t length) {
    struct stat found;
    if (!is_kept(to, &found)) return syscall(SYS_sendfile, to, from, at, length);
    errno = EINVAL;
    return -1;
}
ssize_t sendfile64(int to, int from, off64_t *at, size_t length) { return sendfile(to, from, at, length); }
ssize_t splice(int from, off64_t *from_at, int to, off64_t *to_at, size_t length, unsigned flags) {
    struct stat found;
    if (!is_kept(to, &found)) return syscall(SYS_splice, from, from_at, to, to_at, length, flags);
    errno = EINVAL;
    return -1;
}

/* The length that a file has now. */
static void put_length(int fd) {
    struct stat found;
    if (is_kept(fd, &found)) put('T', found.st_ino, found.st_size, NULL, 0, 0);
}

int ftruncate(int fd, off_t length) { STEP(int, syscall(SYS_ftruncate, fd, length), result == 0, put_length(fd)); }
int ftruncate64(int fd, off64_t length) { return ftruncate(fd, length); }
int fallocate(int fd, int mode, off_t at, off_t length) {
    STEP(int, syscall(SYS_fallocate, fd, mode, at, length), result == 0, put_length(fd));
}
int fallocate64(int fd, int mode, off64_t at, off64_t length) { return fallocate(fd, mode, at, length); }
int posix_fallocate(int fd, off_t at, off_t length) { return fallocate(fd, 0, at, length) == 0 ? 0 : errno; }
int posix_fallocate64(int fd, off64_t at, off64_t length) { return posix_fallocate(fd, at, length); }

static void put_sync(int fd) {
    struct stat found;
    char link[64], place[PATH_MAX];
    if (!is_kept(fd, &found)) return;
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    /* A folder may have been there before the program. */
    ssize_t length = S_ISDIR(found.st_mode) ? readlink(link, place, sizeof place) : 0;
    put_bytes('S', found.st_ino, 0, place, length > 0 ? length : 0);
}

int fsync(int fd) { STEP(int, syscall(SYS_fsync, fd), result == 0, put_sync(fd)); }
int fdatasync(int fd) { STEP(int, syscall(SYS_fdatasync, fd), result == 0, put_sync(fd)); }

static int moved(char what, int from_folder, const char *from, int to_folder, const char *to, unsigned flags) {
    char old[PATH_MAX], new[PATH_MAX];
    int is_placed = place_of(from_folder, from, old) == 0 && place_of(to_folder, to, new) == 0;
    struct iovec parts[] = {{old, is_placed ? strlen(old) + 1 : 0}, {new, is_placed ? strlen(new) : 0}};
    STEP(int,
         what == 'L' ? syscall(SYS_linkat, from_folder, from, to_folder, to, flags)
                     : syscall(SYS_renameat2, from_folder, from, to_folder, to, flags),
         result == 0 && is_placed, put(what, 0, 0, parts, 2, parts[0].iov_len + parts[1].iov_len));
}

int rename(const char *old, const char *new) { return moved('R', AT_FDCWD, old, AT_FDCWD, new, 0); }
int renameat(int from, const char *old, int to, const char *new) { return moved('R', from, old, to, new, 0); }
int renameat2(int from, const char *old, int to, const char *new, unsigned flags) {
    return moved('R', from, old, to, new, flags);
}
int link(const char *old, const char *new) { return moved('L', AT_FDCWD, old, AT_FDCWD, new, 0); }
int linkat(int from, const char *old, int to, const char *new, int flags) {
    return moved('L', from, old, to, new, flags);
}

static int removed(int folder, const char *name, int flags) {
    char place[PATH_MAX];
    int is_placed = place_of(folder, name, place) == 0;
    STEP(int, syscall(SYS_unlinkat, folder, name, flags), result == 0 && is_placed,
         put_bytes(flags & AT_REMOVEDIR ? 'K' : 'U', 0, 0, place, strlen(place)));
}

int unlink(const char *name) { return removed(AT_FDCWD, name, 0); }
int unlinkat(int folder, const char *name, int flags) { return removed(folder, name, flags); }
int rmdir(const char *name) { return removed(AT_FDCWD, name, AT_REMOVEDIR); }

int mkdirat(int folder, const char *name, mode_t mode) {
    char place[PATH_MAX];
    struct stat found;
    int is_placed = place_of(folder, name, place) == 0;
    STEP(int, syscall(SYS_mkdirat, folder, name, mode),
         result == 0 && is_placed && fstatat(folder, name, &found, AT_SYMLINK_NOFOLLOW) == 0,
         put_bytes('M', found.st_ino, 0, place, strlen(place)));
}
int mkdir(const char *name, mode_t mode) { return mkdirat(AT_FDCWD, name, mode); }
