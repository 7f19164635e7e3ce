/* Finding and signalling the descendants of this process.
 *
 * Runs in a monitor forked from a process with many threads: system calls and the stack only.
 * Source: proc(5), /proc/[pid]/stat and /proc/[pid]/task/[tid]/children.
 */
#define _GNU_SOURCE
#include "monitor.h"

#include <fcntl.h>
#include <signal.h>
#include <stdint.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

enum {
    PID_LIMIT = 4194304, /* PID_MAX_LIMIT of 64-bit Linux */
    WORDS = PID_LIMIT / 64,
    FREEZE_ROUNDS = 50
};

struct directory_entry {
    uint64_t inode;
    int64_t offset;
    unsigned short length;
    unsigned char type;
    char name[];
};

static int has(const uint64_t *set, int pid) { return pid > 0 && pid < PID_LIMIT && (set[pid / 64] >> (pid % 64)) & 1; }

static void put(uint64_t *set, int pid) {
    if (pid > 0 && pid < PID_LIMIT)
        set[pid / 64] |= (uint64_t)1 << (pid % 64);
}

static uint64_t *new_set(void) {
    void *memory = mmap(NULL, WORDS * 8, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    return memory == MAP_FAILED ? NULL : memory;
}

static void free_set(uint64_t *set) {
    if (set)
        munmap(set, WORDS * 8);
}

/* "/proc/<pid>/stat" into `path`, which has room for 32 bytes. */
static void stat_path(int pid, char *path) {
    char digits[12];
    int count = 0;
    const char *head = "/proc/", *tail = "/stat";
    while (*head)
        *path++ = *head++;
    for (; pid > 0; pid /= 10)
        digits[count++] = (char)('0' + pid % 10);
    while (count > 0)
        *path++ = digits[--count];
    while (*tail)
        *path++ = *tail++;
    *path = 0;
}

/* The parent of `pid`, 0 when it is gone. */
static int parent_of(int pid) {
    char path[32], text[512];
    stat_path(pid, path);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return 0;
    ssize_t count = read(fd, text, sizeof text - 1);
    close(fd);
    /* "pid (name) state ppid …"; the name may hold anything, so look for the last ')'. */
    ssize_t at = count - 1;
    while (at > 0 && text[at] != ')')
        at--;
    if (at <= 0 || at + 4 >= count)
        return 0;
    int parent = 0;
    for (at += 4; at < count && text[at] >= '0' && text[at] <= '9'; at++)
        parent = parent * 10 + (text[at] - '0');
    return parent;
}

/* Puts into `family` what descends from its members; returns how many are new. */
static int mark_round(uint64_t *family) {
    char buffer[4096] __attribute__((aligned(8)));
    int found = 0;
    int fd = open("/proc", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0)
        return 0;
    for (;;) {
        long count = syscall(SYS_getdents64, fd, buffer, sizeof buffer);
        if (count <= 0)
            break;
        for (long at = 0; at < count;) {
            struct directory_entry *entry = (struct directory_entry *)(buffer + at);
            at += entry->length;
            int pid = 0;
            for (const char *digit = entry->name; *digit >= '0' && *digit <= '9'; digit++)
                pid = pid * 10 + (*digit - '0');
            if (pid > 0 && !has(family, pid) && has(family, parent_of(pid))) {
                put(family, pid);
                found++;
            }
        }
    }
    close(fd);
    return found;
}

static void mark_family(uint64_t *family) {
    put(family, getpid());
    while (mark_round(family) > 0)
        ;
}

/* Sends to each member but this process and those in `but`; returns to how many. */
static int send_to(const uint64_t *family, const uint64_t *but, int signal_number) {
    int self = getpid(), count = 0;
    for (int word = 0; word < WORDS; word++) {
        uint64_t left = family[word] & ~(but ? but[word] : 0);
        for (; left; left &= left - 1) {
            int pid = word * 64 + __builtin_ctzll(left);
            if (pid != self && kill(pid, signal_number) == 0)
                count++;
        }
    }
    return count;
}

/* Every descendant gets the signal once. */
void fermix_signal_family(int signal_number) {
    uint64_t *family = new_set();
    if (!family)
        return;
    mark_family(family);
    send_to(family, NULL, signal_number);
    free_set(family);
}

/* Against families that fork faster than one can kill: stop all, look again, then kill all. */
void fermix_freeze_and_kill_family(void) {
    uint64_t *family = new_set(), *frozen = new_set();
    if (family && frozen) {
        for (int round = 0; round < FREEZE_ROUNDS; round++) {
            mark_family(family);
            if (send_to(family, frozen, SIGSTOP) == 0)
                break;
            for (int word = 0; word < WORDS; word++)
                frozen[word] |= family[word];
        }
        send_to(family, NULL, SIGKILL);
    }
    free_set(family);
    free_set(frozen);
}

/* A group is killed in one step of the kernel, which no fork inside it can escape. */
static void kill_with_group(int pid) {
    int group = getpgid(pid);
    if (group > 1 && group != getpgrp())
        kill(-group, SIGKILL);
    kill(pid, SIGKILL);
}

/* Direct children only: their own children become ours when they die and are found by the next pass. */
void fermix_kill_children(void) {
    char buffer[4096];
    int fd = open("/proc/thread-self/children", O_RDONLY | O_CLOEXEC);
    if (fd < 0) {
        fermix_freeze_and_kill_family();
        return;
    }
    int pid = 0;
    ssize_t count;
    while ((count = read(fd, buffer, sizeof buffer)) > 0) {
        for (ssize_t i = 0; i < count; i++) {
            if (buffer[i] >= '0' && buffer[i] <= '9') {
                pid = pid * 10 + (buffer[i] - '0');
            } else {
                if (pid > 1)
                    kill_with_group(pid);
                pid = 0;
            }
        }
    }
    close(fd);
}
