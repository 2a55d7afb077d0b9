/*
 * Makes fsync fail with EIO, and lose what was written since the last one that succeeded, as Linux does with pages that it
 * could not write: they count as clean, and once they leave its cache the disk's old content is what is read.
 *
 * While the file named by FSYNC_ERROR exists, it applies to files whose path ends with the file's content.
 * cc -shared -fPIC -o fsync-error.so fsync-error.c -ldl -lpthread
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>
#include <unistd.h>

struct unsynced {
  struct unsynced *next;
  int fd;
  off64_t offset;
  ssize_t size;
  char bytes[];
};

static struct unsynced *written;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static __thread int inside;

static int is_database(int fd) {
  char link[64], path[4096];
  snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
  ssize_t size = readlink(link, path, sizeof path - 1);
  if (size < 0) return 0;
  path[size] = 0;
  return strstr(path, ".db") != NULL;
}

static int fails(int fd) {
  const char *control = getenv("FSYNC_ERROR");
  char suffix[64], link[64], path[4096];
  int file = control == NULL ? -1 : open(control, O_RDONLY);
  if (file < 0) return 0;
  ssize_t length = read(file, suffix, sizeof suffix);
  close(file);
  snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
  ssize_t size = readlink(link, path, sizeof path);
  return length > 0 && size >= length && memcmp(path + size - length, suffix, length) == 0;
}

static ssize_t write_at(int fd, const void *bytes, size_t size, off64_t offset) {
  static ssize_t (*next)(int, const void *, size_t, off64_t);
  if (next == NULL) next = dlsym(RTLD_NEXT, "pwrite64");
  return next(fd, bytes, size, offset);
}

/* Keeps what is on the disk before a write. */
ssize_t pwrite64(int fd, const void *bytes, size_t size, off64_t offset) {
  if (is_database(fd)) {
    struct unsynced *entry = malloc(sizeof *entry + size);
    entry->fd = fd;
    entry->offset = offset;
    /* What was not in the file is zeroes after the loss. */
    memset(entry->bytes, 0, size);
    if (pread64(fd, entry->bytes, size, offset) < 0) abort();
    entry->size = size;
    pthread_mutex_lock(&lock);
    entry->next = written;
    written = entry;
    pthread_mutex_unlock(&lock);
  }
  return write_at(fd, bytes, size, offset);
}

ssize_t pwrite(int fd, const void *bytes, size_t size, off_t offset) {
  return pwrite64(fd, bytes, size, offset);
}

/* Newest first, so that the oldest content is what stays. */
static void settle(int fd, int is_lost) {
  pthread_mutex_lock(&lock);
  for (struct unsynced **place = &written; *place != NULL;) {
    struct unsynced *entry = *place;
    if (entry->fd != fd) {
      place = &entry->next;
      continue;
    }
    if (is_lost) write_at(fd, entry->bytes, entry->size, entry->offset);
    *place = entry->next;
    free(entry);
  }
  pthread_mutex_unlock(&lock);
}

static int sync_with(const char *name, int fd) {
  if (inside || !is_database(fd)) return ((int (*)(int))dlsym(RTLD_NEXT, name))(fd);
  inside = 1;
  int is_lost = fails(fd);
  settle(fd, is_lost);
  int result = is_lost ? -1 : ((int (*)(int))dlsym(RTLD_NEXT, name))(fd);
  inside = 0;
  if (is_lost) errno = EIO;
  return result;
}

int fsync(int fd) { return sync_with("fsync", fd); }

int fdatasync(int fd) { return sync_with("fdatasync", fd); }
