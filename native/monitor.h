/* What the Cython module asks of the monitor, and what the monitor tells its owner. */
#ifndef FERMIX_MONITOR_H
#define FERMIX_MONITOR_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#define FERMIX_PASS_LIMIT 64 /* descriptors one command may inherit beside its three */
#define FERMIX_UNLIMITED (-1LL)

struct fermix_limits {
    long long memory_bytes; /* RLIMIT_DATA: private writable memory of each process */
    long long cpu_s;
    long long file_size_bytes;
    long long open_files;
    int nice; /* added to the owner's own */
};

struct fermix_command {
    const char *path;
    char *const *argv;
    char *const *envp;
    const char *cwd;
    int stdio[3];
    const int *pass_fds; /* keep their numbers; all above 2 */
    int pass_count;
    struct fermix_limits limits;
};

/* Records on the status pipe, each written whole. */
enum fermix_kind {
    FERMIX_STARTED = 1, /* value: pid of the leader, which is its group and session too */
    FERMIX_FAILED = 2,  /* value: errno; detail: enum fermix_stage */
    FERMIX_ENDED = 3,   /* value: wait status of the leader */
    FERMIX_SWEPT = 4,   /* the monitor has no descendant left and exits */
};

enum fermix_stage { FERMIX_PREPARE = 0, FERMIX_CHDIR = 1, FERMIX_EXEC = 2 };

struct fermix_record {
    int32_t kind;
    int32_t value;
    int32_t detail;
};

/* Orders on the control pipe; its end of file is the order to kill. */
#define FERMIX_TERMINATE 'T'
#define FERMIX_KILL 'K'

/* Forks a monitor that runs `command`. Returns 0 and the three outputs, or -errno.
 * Both descriptors are close-on-exec; the caller owns them and the child `monitor`. */
int fermix_start_monitor(const struct fermix_command *command, pid_t *monitor, int *control_fd,
                         int *status_fd);

/* family.c: all of these are called by a monitor, use system calls and their own stack only. */
void fermix_signal_family(int signal_number);
void fermix_kill_children(void);
void fermix_freeze_and_kill_family(void);

/* memory.c: called by the owner around the fork. */
#define FERMIX_LEFT_OUT_LIMIT 128

struct fermix_range {
    uintptr_t start, end;
};

struct fermix_left_out {
    int count;
    struct fermix_range ranges[FERMIX_LEFT_OUT_LIMIT];
};

/* Marks large private memory to be left out of this thread's next fork; one thread at a time. */
void fermix_leave_out_of_fork(struct fermix_left_out *left_out);
void fermix_put_back(const struct fermix_left_out *left_out);

/* A copy of the command and all it points to in one shared block of `size` bytes, or NULL. */
struct fermix_command *fermix_pack(const struct fermix_command *command, size_t *size);

#endif
