/* Unpacks the program appended to this executable once per content, then becomes it.
 *
 * File:     [this ELF][segment]...[index: struct entry * count][struct trailer]
 * Segment:  zstd stream of records {u32 mode, u32 name length, u64 size} name data, closed by a zero record.
 *           Directories stand before what is in them; a link's data is its target. Integers little-endian.
 * Cache:    ROOT/NAME-ID/ (0700) holds the unpacked segment and MANIFEST, which lists size, mtime and mode of
 *           every file and is compared at each start; its own mtime says when the segment was last used.
 *           ROOT/.lock serialises unpacking; a running program holds a shared flock on its directory, so that
 *           nobody removes it; `.tmp-*` and `.old-*` are leftovers that the next unpacking removes.
 * Hands on: FERMIX_EXE (this file) and FERMIX_RUNTIME_FD (the descriptor holding the flock).
 * `--unpack NAME` prints the directory of a segment instead; 4 when this executable does not carry it.
 */
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <time.h>
#include <unistd.h>
#include <zstd.h>

#include "sha256.h"

#define MAGIC "FERMIXP1"
#define MANIFEST ".manifest"
#define ID_LENGTH 32        /* hex digits of the SHA-256 of the stored segment */
#define LOCK_WAIT_S 120     /* longest wait for another start that is unpacking */
#define KEEP_S (7 * 86400)  /* a version is old when nothing used it for so long, */
#define KEEP_COUNT 3        /* or when so many others were used since */
#define TOUCH_S 86400       /* "last used" is written at most once in so long */
#define SEGMENTS_MAX 8

struct entry { char name[16]; char id[ID_LENGTH]; uint64_t offset, stored, raw; };
struct trailer { uint32_t count, reserved; char magic[8]; };
struct record { uint32_t mode, name_length; uint64_t size; };
struct seen { int64_t size, mtime_s, mtime_ns; uint32_t mode, name_length; };

static struct entry entries[SEGMENTS_MAX];
static int entry_count, self_fd;
static char why[PATH_MAX + 512]; /* the reason of the last failure */

static int fail(const char *format, ...) {
    va_list rest;
    va_start(rest, format);
    vsnprintf(why, sizeof why, format, rest);
    va_end(rest);
    return -1;
}

static int fail_at(const char *path) { return fail("'%s': %s", path, strerror(errno)); }

/* ---------------------------------------------------------------- the cache directory and its locks */

/* Make a directory and the missing ones above it, 0700. */
static int make_directories(const char *path) {
    char part[PATH_MAX];
    snprintf(part, sizeof part, "%s", path);
    for (char *slash = part + 1; (slash = strchr(slash, '/')); *slash++ = '/') {
        *slash = 0;
        mkdir(part, 0700); /* mostly there already; the last one tells whether it worked */
    }
    return mkdir(path, 0700) && errno != EEXIST ? fail_at(path) : 0;
}

/* Make `root` when it is missing; refuse it when anybody else could put files into it. */
static int check_root(const char *root) {
    struct stat at;
    if (lstat(root, &at) && (errno != ENOENT || make_directories(root) || lstat(root, &at))) return fail_at(root);
    if (!S_ISDIR(at.st_mode)) return fail("'%s' is not a directory", root);
    if (at.st_uid != geteuid()) return fail("'%s' belongs to another user", root);
    if (at.st_mode & 022) return fail("'%s' can be written by others (mode %o)", root, at.st_mode & 07777);
    return 0;
}

static int lock_root(int root_fd, const char *root) {
    int lock = openat(root_fd, ".lock", O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (lock < 0) return fail_at(root);
    for (int tries = LOCK_WAIT_S * 50; flock(lock, LOCK_EX | LOCK_NB); tries--) {
        if (errno != EWOULDBLOCK && errno != EINTR) { close(lock); return fail_at(root); }
        if (!tries) {
            close(lock);
            return fail("'%s/.lock' is held by another start for more than %d s", root, LOCK_WAIT_S);
        }
        nanosleep(&(struct timespec){.tv_nsec = 20000000}, NULL);
    }
    return lock;
}

static void remove_tree(int parent, const char *name) {
    if (!unlinkat(parent, name, 0) || errno == ENOENT) return;
    int fd = openat(parent, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
    DIR *directory = fd < 0 ? NULL : fdopendir(fd);
    if (directory) {
        for (struct dirent *item; (item = readdir(directory));)
            if (strcmp(item->d_name, ".") && strcmp(item->d_name, "..")) remove_tree(fd, item->d_name);
        closedir(directory);
    }
    unlinkat(parent, name, AT_REMOVEDIR);
}

/* Move a directory out of its name first, so that no start ever sees half of it. */
static void remove_version(int root_fd, const char *name) {
    char aside[NAME_MAX];
    snprintf(aside, sizeof aside, ".old-%d-%.64s", getpid(), name);
    if (!renameat(root_fd, name, root_fd, aside)) remove_tree(root_fd, aside);
}

/* "NAME-ID", as only a cache directory is called. */
static int is_version(const char *name) {
    const char *dash = strrchr(name, '-');
    return dash && strlen(dash + 1) == ID_LENGTH && strspn(dash + 1, "0123456789abcdef") == ID_LENGTH;
}

static int is_mine(const char *name) {
    char mine[64];
    for (int i = 0; i < entry_count; i++) {
        snprintf(mine, sizeof mine, "%.16s-%.32s", entries[i].name, entries[i].id);
        if (!strcmp(mine, name)) return 1;
    }
    return 0;
}

/* When a version was last used; 0 when there is no such version. */
static time_t last_used(int root_fd, const char *name) {
    struct stat at;
    char manifest[NAME_MAX + 16];
    snprintf(manifest, sizeof manifest, "%s/" MANIFEST, name);
    if (fstatat(root_fd, manifest, &at, AT_SYMLINK_NOFOLLOW) && fstatat(root_fd, name, &at, AT_SYMLINK_NOFOLLOW))
        return 0;
    return at.st_mtime;
}

/* How many versions of the same segment were used since this one. */
static int count_newer(int root_fd, const char *name) {
    int fd = openat(root_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC), count = 0;
    DIR *directory = fd < 0 ? NULL : fdopendir(fd);
    size_t segment = strlen(name) - ID_LENGTH;
    time_t used = last_used(root_fd, name);
    if (!directory) return 0;
    for (struct dirent *item; (item = readdir(directory));)
        count += is_version(item->d_name) && !strncmp(item->d_name, name, segment) && strcmp(item->d_name, name) &&
                 last_used(root_fd, item->d_name) >= used;
    closedir(directory);
    return count;
}

/* A descriptor with an exclusive flock when a version is old and nothing runs from it, else -1. */
static int claim_old(int root_fd, const char *name) {
    if (last_used(root_fd, name) > time(NULL) - KEEP_S && count_newer(root_fd, name) < KEEP_COUNT) return -1;
    int fd = openat(root_fd, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
    if (fd < 0 || !flock(fd, LOCK_EX | LOCK_NB)) return fd;
    close(fd);
    return -1;
}

/* Under the root's lock: leftovers of killed starts always, other versions when old. */
static void clean(int root_fd) {
    int fd = openat(root_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC), claimed;
    DIR *directory = fd < 0 ? NULL : fdopendir(fd);
    if (!directory) return;
    for (struct dirent *item; (item = readdir(directory));) {
        const char *name = item->d_name;
        if (!strncmp(name, ".tmp-", 5) || !strncmp(name, ".old-", 5)) {
            remove_tree(root_fd, name);
        } else if (is_version(name) && !is_mine(name) && (claimed = claim_old(root_fd, name)) >= 0) {
            remove_version(root_fd, name);
            close(claimed); /* only now: a start of that version waited and unpacks it anew */
        }
    }
    closedir(directory);
}

/* ---------------------------------------------------------------- the manifest */

static struct seen look(const struct stat *at, size_t name_length) {
    return (struct seen){.size = at->st_size, .mtime_s = at->st_mtim.tv_sec, .mtime_ns = at->st_mtim.tv_nsec,
                         .mode = at->st_mode, .name_length = (uint32_t)name_length};
}

/* Whether every file the manifest lists is still as it was unpacked; never says why. */
static int is_whole(int fd) {
    static char buffer[1 << 20];
    int manifest = openat(fd, MANIFEST, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    if (manifest < 0) return 0;
    struct stat at;
    ssize_t size = read(manifest, buffer, sizeof buffer);
    int is_good = size >= (ssize_t)sizeof(uint32_t) && !fstat(manifest, &at) && size == at.st_size;
    time_t used = at.st_mtime;
    uint32_t count = 0;
    if (is_good) memcpy(&count, buffer, sizeof count);
    const char *next = buffer + sizeof count, *end = buffer + size;
    for (; is_good && count; count--) {
        struct seen then;
        is_good = (size_t)(end - next) > sizeof then;
        if (!is_good) break;
        memcpy(&then, next, sizeof then);
        const char *name = next + sizeof then;
        is_good = then.name_length && then.name_length <= (size_t)(end - name) && !name[then.name_length - 1] &&
                  !fstatat(fd, name, &at, AT_SYMLINK_NOFOLLOW);
        if (!is_good) break;
        struct seen now = look(&at, then.name_length);
        is_good = !memcmp(&now, &then, sizeof now);
        next = name + then.name_length;
    }
    is_good = is_good && next == end;
    if (is_good && used < time(NULL) - TOUCH_S) futimens(manifest, NULL); /* may fail on a read-only disk */
    close(manifest);
    return is_good;
}

/* Append what stat says of a file; sizes stay, so the directory's entry can be made first. */
static int note(FILE *manifest, int fd, const char *name) {
    struct stat at;
    size_t length = strlen(name) + 1;
    if (fstatat(fd, name, &at, AT_SYMLINK_NOFOLLOW)) return fail_at(name);
    struct seen now = look(&at, length);
    if (fwrite(&now, sizeof now, 1, manifest) != 1 || fwrite(name, length, 1, manifest) != 1) return fail_at(name);
    return 0;
}

/* ---------------------------------------------------------------- unpacking */

/* A segment being read: stored bytes are hashed and decompressed as they are asked for. */
struct source {
    const struct entry *entry;
    uint64_t taken;
    ZSTD_DStream *stream;
    ZSTD_inBuffer in;
    struct sha256 hash;
    unsigned char stored[1 << 17];
};

static int pull(struct source *from, void *into, size_t size) {
    ZSTD_outBuffer out = {into, size, 0};
    while (out.pos < size) {
        if (from->in.pos == from->in.size) {
            uint64_t left = from->entry->stored - from->taken;
            size_t want = left < sizeof from->stored ? (size_t)left : sizeof from->stored;
            ssize_t got = want ? pread(self_fd, from->stored, want, (off_t)(from->entry->offset + from->taken)) : 0;
            if (got < 0) return fail("reading the payload: %s", strerror(errno));
            if (!got) return fail("the payload ends early; download fermix again");
            sha256_add(&from->hash, from->stored, (size_t)got);
            from->taken += (uint64_t)got;
            from->in = (ZSTD_inBuffer){from->stored, (size_t)got, 0};
        }
        if (ZSTD_isError(ZSTD_decompressStream(from->stream, &out, &from->in)))
            return fail("the payload is damaged; download fermix again");
    }
    return 0;
}

/* The rest of the stored bytes belongs to the hash too. */
static int check_hash(struct source *from) {
    char hex[65];
    while (from->taken < from->entry->stored) {
        uint64_t left = from->entry->stored - from->taken;
        ssize_t got = pread(self_fd, from->stored, left < sizeof from->stored ? (size_t)left : sizeof from->stored,
                            (off_t)(from->entry->offset + from->taken));
        if (got <= 0) return fail("the payload ends early; download fermix again");
        sha256_add(&from->hash, from->stored, (size_t)got);
        from->taken += (uint64_t)got;
    }
    sha256_finish(&from->hash, hex);
    if (memcmp(hex, from->entry->id, ID_LENGTH)) return fail("the payload is damaged; download fermix again");
    return 0;
}

static int write_file(struct source *from, int fd, const char *name, const struct record *record) {
    static unsigned char buffer[1 << 18];
    int file = openat(fd, name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, record->mode & 0700);
    if (file < 0) return fail_at(name);
    for (uint64_t left = record->size; left;) {
        size_t part = left < sizeof buffer ? (size_t)left : sizeof buffer;
        if (pull(from, buffer, part)) { close(file); return -1; }
        for (size_t done = 0; done < part;) {
            ssize_t wrote = write(file, buffer + done, part - done);
            if (wrote < 0) { close(file); return fail("%s", strerror(errno)); }
            done += (size_t)wrote;
        }
        left -= part;
    }
    return close(file) ? fail("%s", strerror(errno)) : 0;
}

static int write_record(struct source *from, int fd, const char *name, const struct record *record) {
    char target[PATH_MAX];
    if (name[0] == '/' || strstr(name, "..")) return fail("the payload names '%s'", name);
    if (S_ISDIR(record->mode)) return mkdirat(fd, name, 0700) ? fail("%s", strerror(errno)) : 0;
    if (S_ISREG(record->mode)) return write_file(from, fd, name, record);
    if (!S_ISLNK(record->mode) || record->size >= sizeof target) return fail("the payload is damaged");
    if (pull(from, target, record->size)) return -1;
    target[record->size] = 0;
    return symlinkat(target, fd, name) ? fail("%s", strerror(errno)) : 0;
}

static int unpack_records(struct source *from, int fd, FILE *manifest) {
    char name[PATH_MAX];
    uint32_t count = 0;
    if (fwrite(&count, sizeof count, 1, manifest) != 1) return fail("%s", strerror(errno));
    for (;;) {
        struct record record;
        if (pull(from, &record, sizeof record)) return -1;
        if (!record.name_length) break;
        if (record.name_length >= sizeof name) return fail("the payload is damaged");
        if (pull(from, name, record.name_length)) return -1;
        name[record.name_length] = 0;
        if (write_record(from, fd, name, &record)) return -1;
        if (S_ISDIR(record.mode)) continue;
        if (note(manifest, fd, name)) return -1;
        count++;
    }
    if (check_hash(from)) return -1;
    rewind(manifest);
    if (fwrite(&count, sizeof count, 1, manifest) != 1 || fflush(manifest)) return fail("%s", strerror(errno));
    return 0;
}

static int unpack_into(int fd, const struct entry *entry) {
    static struct source from;
    from.entry = entry;
    from.taken = 0;
    from.in = (ZSTD_inBuffer){NULL, 0, 0};
    from.stream = ZSTD_createDStream();
    sha256_start(&from.hash);
    int file = openat(fd, MANIFEST, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    FILE *manifest = file < 0 ? NULL : fdopen(file, "w");
    if (!manifest || !from.stream) return fail("%s", strerror(errno));
    int result = unpack_records(&from, fd, manifest);
    if (fclose(manifest) && !result) result = fail("%s", strerror(errno));
    ZSTD_freeDStream(from.stream);
    if (!result) syncfs(fd); /* after a power cut the name must not stand for empty files */
    return result;
}

static int has_room(int root_fd, const struct entry *entry) {
    struct statvfs disk;
    if (fstatvfs(root_fd, &disk)) return 1;
    if (disk.f_flag & ST_NOEXEC) return fail("programs may not run there (mounted noexec)"), 0;
    uint64_t room = (uint64_t)disk.f_frsize * (geteuid() ? disk.f_bavail : disk.f_bfree);
    if (room < entry->raw)
        return fail("no space left: %llu MB needed, %llu MB free", (unsigned long long)(entry->raw / 1000000 + 1),
                    (unsigned long long)(room / 1000000)), 0;
    return 1;
}

/* Under the root's lock: make `name` whole, whatever stands there. */
static int unpack(int root_fd, const char *name, const struct entry *entry) {
    char made[64];
    clean(root_fd);
    if (!has_room(root_fd, entry)) return -1;
    snprintf(made, sizeof made, ".tmp-%d", getpid());
    if (mkdirat(root_fd, made, 0700)) return fail("%s", strerror(errno));
    int fd = openat(root_fd, made, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
    int result = fd < 0 ? fail("%s", strerror(errno)) : unpack_into(fd, entry);
    if (fd >= 0) close(fd);
    if (!result) {
        remove_version(root_fd, name); /* a damaged one; running programs go on with the new files */
        if (renameat(root_fd, made, root_fd, name)) result = fail("%s", strerror(errno));
    }
    if (result) remove_tree(root_fd, made);
    return result;
}

/* A descriptor of the version's directory with a shared flock when it is ours and whole, else -1. */
static int open_version(int root_fd, const char *name) {
    struct stat at;
    int fd = openat(root_fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW); /* no O_CLOEXEC: kept over exec */
    if (fd < 0) return -1;
    if (!fstat(fd, &at) && at.st_uid == geteuid() && !(at.st_mode & 077) && !flock(fd, LOCK_SH | LOCK_NB) &&
        is_whole(fd))
        return fd;
    close(fd);
    return -1;
}

/* A descriptor of the unpacked segment below `root`, unpacking when needed; -1 with `why`. */
static int provide(const char *root, const struct entry *entry) {
    char name[64], reason[sizeof why];
    snprintf(name, sizeof name, "%.16s-%.32s", entry->name, entry->id);
    if (check_root(root)) return -1;
    int root_fd = open(root, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
    if (root_fd < 0) return fail_at(root);
    int fd = open_version(root_fd, name);
    if (fd < 0) {
        int lock = lock_root(root_fd, root);
        if (lock >= 0) {
            fd = open_version(root_fd, name); /* another start was quicker */
            if (fd < 0 && unpack(root_fd, name, entry)) {
                snprintf(reason, sizeof reason, "%s", why);
                fail("'%s': %.400s", root, reason);
            } else if (fd < 0 && (fd = open_version(root_fd, name)) < 0) {
                fail("'%s/%s' changed while it was unpacked", root, name);
            }
            close(lock);
        }
    }
    close(root_fd);
    return fd;
}

/* ---------------------------------------------------------------- places and the start */

static int read_index(void) {
    struct trailer trailer;
    struct stat at;
    self_fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
    if (self_fd < 0 || fstat(self_fd, &at)) return fail("cannot read its own file: %s", strerror(errno));
    off_t end = at.st_size - (off_t)sizeof trailer;
    if (pread(self_fd, &trailer, sizeof trailer, end) != sizeof trailer || memcmp(trailer.magic, MAGIC, 8) ||
        trailer.count > SEGMENTS_MAX)
        return fail("this file was cut; download fermix again");
    ssize_t size = (ssize_t)(trailer.count * sizeof *entries);
    if (pread(self_fd, entries, (size_t)size, end - size) != size) return fail("this file was cut; download it again");
    entry_count = (int)trailer.count;
    return 0;
}

static const struct entry *find(const char *name) {
    for (int i = 0; i < entry_count; i++)
        if (!strncmp(entries[i].name, name, sizeof entries[i].name)) return &entries[i];
    return NULL;
}

/* The n-th place to unpack to: 1, 0 after the last, -1 when there is none of that number. */
static int place(int n, char root[PATH_MAX]) {
    static const char *const names[] = {"FERMIX_RUNTIME_DIR", "XDG_CACHE_HOME", "HOME"};
    static const char *const below[] = {"", "/fermix", "/.cache/fermix"};
    if (n > 4) return 0;
    if (n > 2) return snprintf(root, PATH_MAX, "%s/fermix-%u", n == 3 ? "/tmp" : "/var/tmp", geteuid()), 1;
    const char *value = getenv(names[n]);
    if (!value || !*value) return -1;
    if (value[0] != '/' || strlen(value) > PATH_MAX - 256)
        return fail("%s='%.200s' is not an absolute path", names[n], value);
    return snprintf(root, PATH_MAX, "%s%s", value, below[n]), 1;
}

/* A closed standard stream would be taken by the next file that is opened, which then gets our messages. */
static void open_standard_streams(void) {
    for (int fd = 0; fd < 3; fd++)
        if (fcntl(fd, F_GETFD) < 0) open("/dev/null", fd ? O_WRONLY : O_RDONLY); /* takes the lowest free one */
}

static int become(const char *root, const struct entry *entry, int fd, char **argv) {
    static char program[PATH_MAX + 64], self[PATH_MAX], number[16];
    snprintf(program, sizeof program, "%s/%.16s-%.32s/fermix", root, entry->name, entry->id);
    ssize_t length = readlink("/proc/self/exe", self, sizeof self - 1);
    if (length > 0) setenv("FERMIX_EXE", self, 1);
    snprintf(number, sizeof number, "%d", fd);
    setenv("FERMIX_RUNTIME_FD", number, 1);
    execv(program, argv);
    return fail_at(program);
}

int main(int argc, char **argv) {
    static char root[PATH_MAX], tried[4 * PATH_MAX];
    int is_unpack = argc == 3 && !strcmp(argv[1], "--unpack"), kind;
    const char *name = is_unpack ? argv[2] : "program";
    open_standard_streams();
    if (read_index()) return fprintf(stderr, "fermix: %s\n", why), 1;
    const struct entry *entry = find(name);
    if (!entry) return fprintf(stderr, "fermix: this executable carries no '%s'; the full one does\n", name), 4;
    for (int n = 0; why[0] = 0, (kind = place(n, root)); n++) {
        mode_t mask = umask(077);
        int fd = kind < 0 ? -1 : provide(root, entry);
        umask(mask);
        if (fd >= 0) {
            if (tried[0] && getenv("FERMIX_RUNTIME_DIR")) fprintf(stderr, "fermix: %s; using %s\n", tried, root);
            if (is_unpack) return printf("%s/%s-%.32s\n", root, name, entry->id), 0;
            become(root, entry, fd, argv);
            close(fd);
        }
        size_t used = strlen(tried);
        if (why[0]) snprintf(tried + used, sizeof tried - used, "%s%s", used ? "; " : "", why);
    }
    fprintf(stderr, "fermix: cannot unpack itself: %s; repair: set FERMIX_RUNTIME_DIR=/a/folder/of/yours\n", tried);
    return 1;
}
