/*
 * Records, as an LD_PRELOAD library, every call that changes the files of one folder, and every HTTP response, in the
 * order in which they happened. recording.ts reads the records.
 *
 * RECORD_ROOT  the folder, an absolute path without symbolic links; what is not below it is not recorded
 * RECORD_LOG   the file that records are appended to, outside of the folder
 * RECORD_KILL  optional: the process kills itself (SIGKILL) after so many records, exactly between two of them
 *
 * One lock is held while a call is made and recorded, so the log has the true order. A -shm file is left out: SQLite
 * rebuilds it.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <netinet/in.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

/* Little-endian in the log; `length` bytes follow. */
struct record {
  uint32_t operation;
  uint32_t length;
  uint64_t inode;
  uint64_t offset;
};

#define MAX_FILES 65536

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static char root[PATH_MAX];
static size_t root_length;
static int log_file = -1;
static long kill_after = -1;
static long records;
/* Whether an open file is one of the folder's. */
static unsigned char followed[MAX_FILES];

#define REAL(name) ((__typeof__(&name))real(#name))

static void *real(const char *name) {
  void *found = dlsym(RTLD_NEXT, name);
  if (found == NULL) abort();
  return found;
}

__attribute__((constructor)) static void start(void) {
  const char *folder = getenv("RECORD_ROOT");
  const char *log = getenv("RECORD_LOG");
  const char *limit = getenv("RECORD_KILL");
  if (folder == NULL || log == NULL) return;
  root_length = strlen(folder);
  memcpy(root, folder, root_length + 1);
  if (limit != NULL) kill_after = atol(limit);
  log_file = REAL(open)(log, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0600);
}

/* To be called with the lock held. */
static void record(char operation, uint64_t inode, uint64_t offset, const void *bytes, size_t length) {
  struct record head = {(uint32_t)operation, (uint32_t)length, inode, offset};
  struct iovec parts[2] = {{&head, sizeof head}, {(void *)bytes, length}};
  if (REAL(writev)(log_file, parts, 2) != (ssize_t)(sizeof head + length)) abort();
  if (++records == kill_after) kill(getpid(), SIGKILL);
}

static int is_shared_memory(const char *path) {
  size_t length = strlen(path);
  return length > 4 && strcmp(path + length - 4, "-shm") == 0;
}

/* Whether a path is below the folder: `result` has it without the folder. */
static int below_root(const char *path, char *result) {
  char full[PATH_MAX];
  if (log_file < 0 || path == NULL) return 0;
  if (path[0] != '/') {
    if (getcwd(full, sizeof full) == NULL || strlen(full) + strlen(path) + 2 > sizeof full) return 0;
    strcat(strcat(full, "/"), path);
    path = full;
  }
  if (strncmp(path, root, root_length) != 0 || is_shared_memory(path)) return 0;
  if (path[root_length] != '/' && path[root_length] != '\0') return 0;
  strcpy(result, path + root_length);
  return 1;
}

static uint64_t inode_of(int file) {
  struct stat found;
  return fstat(file, &found) == 0 ? found.st_ino : 0;
}

static int is_followed(int file) { return file >= 0 && file < MAX_FILES && followed[file]; }

static int open_recorded(int directory, const char *path, int flags, mode_t mode) {
  char name[PATH_MAX];
  struct stat before;
  if ((path[0] != '/' && directory != AT_FDCWD) || !below_root(path, name))
    return REAL(openat)(directory, path, flags, mode);
  pthread_mutex_lock(&lock);
  int existed = stat(path, &before) == 0;
  int file = REAL(openat)(directory, path, flags, mode);
  int error = errno;
  if (file >= 0 && file < MAX_FILES) {
    followed[file] = 1;
    if (!existed) record('C', inode_of(file), 0, name, strlen(name));
    else if (flags & O_TRUNC) record('T', inode_of(file), 0, NULL, 0);
  }
  pthread_mutex_unlock(&lock);
  errno = error;
  return file;
}

#define MODE_OF(flags, mode)                                  \
  mode_t mode = 0;                                            \
  if ((flags) & O_CREAT) {                                    \
    va_list rest;                                             \
    va_start(rest, flags);                                    \
    mode = va_arg(rest, mode_t);                              \
    va_end(rest);                                             \
  }

int open(const char *path, int flags, ...) {
  MODE_OF(flags, mode)
  return open_recorded(AT_FDCWD, path, flags, mode);
}

int open64(const char *path, int flags, ...) {
  MODE_OF(flags, mode)
  return open_recorded(AT_FDCWD, path, flags, mode);
}

int openat(int directory, const char *path, int flags, ...) {
  MODE_OF(flags, mode)
  return open_recorded(directory, path, flags, mode);
}

int close(int file) {
  if (!is_followed(file)) return REAL(close)(file);
  pthread_mutex_lock(&lock);
  followed[file] = 0;
  int result = REAL(close)(file);
  pthread_mutex_unlock(&lock);
  return result;
}

/* A response is recorded before it is sent, so no client has it any earlier. `inode` is the client's port. */
static void record_response(int file, const void *bytes, size_t length) {
  struct sockaddr_in peer;
  socklen_t size = sizeof peer;
  if (log_file < 0 || length < 9 || memcmp(bytes, "HTTP/1.1 ", 9) != 0) return;
  if (getpeername(file, (struct sockaddr *)&peer, &size) != 0 || peer.sin_family != AF_INET) return;
  pthread_mutex_lock(&lock);
  record('A', ntohs(peer.sin_port), 0, NULL, 0);
  pthread_mutex_unlock(&lock);
}

ssize_t pwrite64(int file, const void *bytes, size_t length, off64_t offset) {
  if (!is_followed(file)) return REAL(pwrite64)(file, bytes, length, offset);
  pthread_mutex_lock(&lock);
  ssize_t written = REAL(pwrite64)(file, bytes, length, offset);
  int error = errno;
  if (written > 0) record('W', inode_of(file), offset, bytes, written);
  pthread_mutex_unlock(&lock);
  errno = error;
  return written;
}

ssize_t write(int file, const void *bytes, size_t length) {
  if (!is_followed(file)) {
    record_response(file, bytes, length);
    return REAL(write)(file, bytes, length);
  }
  pthread_mutex_lock(&lock);
  ssize_t written = REAL(write)(file, bytes, length);
  int error = errno;
  if (written > 0) record('W', inode_of(file), lseek(file, 0, SEEK_CUR) - written, bytes, written);
  pthread_mutex_unlock(&lock);
  errno = error;
  return written;
}

ssize_t writev(int file, const struct iovec *parts, int count) {
  /* No file of the folder is written so: Disk.differences (disk.ts) would tell. */
  if (count > 0) record_response(file, parts[0].iov_base, parts[0].iov_len);
  return REAL(writev)(file, parts, count);
}

int ftruncate64(int file, off64_t size) {
  if (!is_followed(file)) return REAL(ftruncate64)(file, size);
  pthread_mutex_lock(&lock);
  int result = REAL(ftruncate64)(file, size);
  int error = errno;
  if (result == 0) record('T', inode_of(file), size, NULL, 0);
  pthread_mutex_unlock(&lock);
  errno = error;
  return result;
}

#define SYNC(name)                                            \
  int name(int file) {                                        \
    if (!is_followed(file)) return REAL(name)(file);          \
    pthread_mutex_lock(&lock);                                \
    int result = REAL(name)(file);                            \
    int error = errno;                                        \
    if (result == 0) record('S', inode_of(file), 0, NULL, 0); \
    pthread_mutex_unlock(&lock);                              \
    errno = error;                                            \
    return result;                                            \
  }
SYNC(fsync)
SYNC(fdatasync)

int mkdir(const char *path, mode_t mode) {
  char name[PATH_MAX];
  struct stat made;
  if (!below_root(path, name)) return REAL(mkdir)(path, mode);
  pthread_mutex_lock(&lock);
  int result = REAL(mkdir)(path, mode);
  int error = errno;
  if (result == 0 && stat(path, &made) == 0) record('M', made.st_ino, 0, name, strlen(name));
  pthread_mutex_unlock(&lock);
  errno = error;
  return result;
}

#define REMOVE(name)                                          \
  int name(const char *path) {                                \
    char relative[PATH_MAX];                                  \
    if (!below_root(path, relative)) return REAL(name)(path); \
    pthread_mutex_lock(&lock);                                \
    int result = REAL(name)(path);                            \
    int error = errno;                                        \
    if (result == 0) record('U', 0, 0, relative, strlen(relative)); \
    pthread_mutex_unlock(&lock);                              \
    errno = error;                                            \
    return result;                                            \
  }
REMOVE(unlink)
REMOVE(remove)

/* Two paths in one record: the second one begins behind the byte 0. */
#define TWO_PATHS(name, operation)                            \
  int name(const char *from, const char *to) {                \
    char paths[2 * PATH_MAX];                                 \
    if (!below_root(from, paths)) return REAL(name)(from, to); \
    size_t length = strlen(paths) + 1;                        \
    if (!below_root(to, paths + length)) abort();             \
    length += strlen(paths + length);                         \
    pthread_mutex_lock(&lock);                                \
    int result = REAL(name)(from, to);                        \
    int error = errno;                                        \
    if (result == 0) record(operation, 0, 0, paths, length);  \
    pthread_mutex_unlock(&lock);                              \
    errno = error;                                            \
    return result;                                            \
  }
TWO_PATHS(rename, 'R')
TWO_PATHS(link, 'L')
