/* Keeping the owner's memory out of its monitors.
 *
 * A fork copies the page tables of everything the owner has in memory, and later each page the owner
 * writes to: milliseconds and megabytes per command. The monitor reads none of it, so large private
 * maps are marked to be left out of the fork, and what the command needs is packed into a shared block.
 * Source: madvise(2), MADV_DONTFORK; proc(5), /proc/[pid]/maps.
 */
#define _GNU_SOURCE
#include "monitor.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum {
    WORTH_BYTES = 128 * 1024,  /* smaller maps may be a library's variables: left alone */
    AROUND_BYTES = 128 * 1024, /* kept on both sides of what the monitor does use */
    KEPT_POINTS = 3
};

struct map_line {
    uintptr_t start, end;
    char permissions[5];
    unsigned long inode;
    char path[2]; /* its first letters, 0 for none */
};

static uintptr_t read_number(const char **text, int base) {
    uintptr_t value = 0;
    for (;; (*text)++) {
        char c = **text;
        int digit = c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : 99;
        if (digit >= base)
            return value;
        value = value * (uintptr_t)base + (uintptr_t)digit;
    }
}

/* "start-end perms offset major:minor inode   path". */
static void parse_map(const char *text, struct map_line *map) {
    map->start = read_number(&text, 16);
    text++;
    map->end = read_number(&text, 16);
    text++;
    for (int i = 0; i < 4 && *text; i++)
        map->permissions[i] = *text++;
    for (int column = 0; column < 3 && *text; column++) { /* offset, major, minor */
        text++;
        read_number(&text, 16);
    }
    text += *text != 0;
    map->inode = read_number(&text, 10);
    while (*text == ' ')
        text++;
    map->path[0] = text[0];
    map->path[1] = text[0] ? text[1] : 0;
}

static int is_heap(const struct map_line *map) {
    if (map->permissions[1] != 'w' || map->permissions[3] != 'p' || map->inode != 0)
        return 0;
    return map->path[0] == 0 || (map->path[0] == '[' && (map->path[1] == 'h' || map->path[1] == 'a'));
}

static void leave_out(struct fermix_left_out *left_out, uintptr_t start, uintptr_t end) {
    if (start >= end || end - start < WORTH_BYTES || left_out->count == FERMIX_LEFT_OUT_LIMIT)
        return;
    if (madvise((void *)start, end - start, MADV_DONTFORK) < 0)
        return;
    left_out->ranges[left_out->count].start = start;
    left_out->ranges[left_out->count].end = end;
    left_out->count++;
}

/* Leaves out a map but for a piece around each point, which are in ascending order. */
static void leave_out_map(struct fermix_left_out *left_out, const struct map_line *map, const uintptr_t *points) {
    uintptr_t start = map->start;
    for (int i = 0; i < KEPT_POINTS; i++) {
        uintptr_t low = (points[i] - AROUND_BYTES) & ~(uintptr_t)0xffff;
        uintptr_t high = (points[i] + AROUND_BYTES) & ~(uintptr_t)0xffff;
        if (high <= start || low >= map->end)
            continue;
        leave_out(left_out, start, low);
        start = high;
    }
    leave_out(left_out, start, map->end);
}

void fermix_leave_out_of_fork(struct fermix_left_out *left_out) {
    char buffer[16384], line[256];
    size_t length = 0;
    ssize_t count;
    /* this thread's stack and variables, and libc's own */
    uintptr_t points[KEPT_POINTS] = {(uintptr_t)&length, (uintptr_t)&errno, (uintptr_t)&environ};
    for (int i = 1; i < KEPT_POINTS; i++)
        for (int at = i; at > 0 && points[at - 1] > points[at]; at--) {
            uintptr_t swapped = points[at];
            points[at] = points[at - 1];
            points[at - 1] = swapped;
        }
    left_out->count = 0;
    int fd = open("/proc/self/maps", O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return; /* the fork is then merely slower */
    while ((count = read(fd, buffer, sizeof buffer)) > 0) {
        for (ssize_t i = 0; i < count; i++) {
            if (buffer[i] != '\n') {
                if (length < sizeof line - 1)
                    line[length++] = buffer[i];
                continue;
            }
            struct map_line map = {0};
            line[length] = 0;
            parse_map(line, &map);
            if (is_heap(&map))
                leave_out_map(left_out, &map, points);
            length = 0;
        }
    }
    close(fd);
}

void fermix_put_back(const struct fermix_left_out *left_out) {
    for (int i = 0; i < left_out->count; i++) {
        const struct fermix_range *range = &left_out->ranges[i];
        madvise((void *)range->start, range->end - range->start, MADV_DOFORK);
    }
}

static size_t size_of_list(char *const *list) {
    size_t size = sizeof *list;
    for (; *list; list++)
        size += sizeof *list + strlen(*list) + 1;
    return size;
}

static char *put_text(char **room, const char *text) {
    size_t size = strlen(text) + 1;
    char *at = memcpy(*room, text, size);
    *room += size;
    return at;
}

static char **put_list(char ***pointers, char **room, char *const *list) {
    char **start = *pointers;
    for (; *list; list++)
        *(*pointers)++ = put_text(room, *list);
    *(*pointers)++ = NULL;
    return start;
}

static size_t count_of(char *const *list) {
    size_t count = 0;
    while (list[count])
        count++;
    return count;
}

struct fermix_command *fermix_pack(const struct fermix_command *command, size_t *size) {
    size_t lists = count_of(command->argv) + count_of(command->envp) + 2;
    *size = sizeof *command + size_of_list(command->argv) + size_of_list(command->envp) +
            strlen(command->path) + strlen(command->cwd) + 2 + sizeof(int) * FERMIX_PASS_LIMIT;
    /* shared: a private map could be joined to a large one next to it, and left out with it */
    struct fermix_command *packed =
        mmap(NULL, *size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (packed == MAP_FAILED)
        return NULL;
    *packed = *command;
    char **pointers = (char **)(packed + 1);
    int *pass_fds = (int *)(pointers + lists);
    char *room = (char *)(pass_fds + FERMIX_PASS_LIMIT);
    packed->argv = put_list(&pointers, &room, command->argv);
    packed->envp = put_list(&pointers, &room, command->envp);
    packed->path = put_text(&room, command->path);
    packed->cwd = put_text(&room, command->cwd);
    packed->pass_fds = memcpy(pass_fds, command->pass_fds, sizeof(int) * (size_t)command->pass_count);
    return packed;
}
