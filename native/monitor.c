/* The monitor: one small process per command that ends the command's whole family.
 *
 * It is forked from a process with many threads, so nothing here may take a lock: system calls
 * and the stack only, no malloc, no stdio. It is a subreaper, so every descendant of the command
 * whose parent ends becomes its own child, in whatever session or group it may be. When the
 * control pipe closes (the owner ended, even by SIGKILL), or the leader ends, it kills and reaps
 * until it has no child left, and exits.
 */
#define _GNU_SOURCE
#include "monitor.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#ifndef SYS_close_range
#define SYS_close_range 436 /* the same on every architecture; Linux 5.9 */
#endif
#ifndef CLOSE_RANGE_CLOEXEC
#define CLOSE_RANGE_CLOEXEC (1U << 2)
#endif

enum {
    GENTLE_PASSES = 8,     /* kills of the children found, before the whole family is frozen first */
    PASS_MS = 2,           /* between two kills while they work */
    STUCK_PASS_MS = 200,   /* between two kills of something that does not die (another user's, disk sleep) */
    STUCK_PASSES = 100,
    ORPHAN_PATIENCE_S = 30 /* without an owner: then whatever does not die is left to init */
};

struct failure {
    volatile int error;
    volatile int stage;
};

struct monitor {
    pid_t leader;
    int control_fd; /* -1 once it is closed */
    int status_fd;
    int signal_fd;
    int is_leader_done;
    int is_terminating; /* SIGTERM went out: the family may end by itself until told otherwise */
    int is_killing;
    int passes;
    long orphaned_at_s; /* 0 while the owner lives */
};

static long monotonic_s(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (long)now.tv_sec;
}

static void report(int fd, int kind, int value, int detail) {
    struct fermix_record record = {kind, value, detail};
    ssize_t written;
    do
        written = write(fd, &record, sizeof record);
    while (written < 0 && errno == EINTR);
}

static void close_between(int first, int last) {
    if (first > last || syscall(SYS_close_range, first, last, 0) == 0)
        return;
    struct rlimit files;
    int highest = getrlimit(RLIMIT_NOFILE, &files) == 0 && files.rlim_cur < 65536 ? (int)files.rlim_cur : 65536;
    for (int fd = first; fd <= last && fd <= highest; fd++)
        close(fd);
}

/* The owner's locks, sockets and other commands' pipes must not stay open here. */
static void close_all_but(const int *wanted, int count) {
    int sorted[FERMIX_PASS_LIMIT + 8];
    for (int i = 0; i < count; i++) {
        int at = i;
        for (; at > 0 && sorted[at - 1] > wanted[i]; at--)
            sorted[at] = sorted[at - 1];
        sorted[at] = wanted[i];
    }
    int next = 0;
    for (int i = 0; i < count; i++) {
        close_between(next, sorted[i] - 1);
        if (sorted[i] >= next)
            next = sorted[i] + 1;
    }
    close_between(next, 0x7fffffff);
}

static void set_limit(int resource, long long soft, long long extra) {
    if (soft == FERMIX_UNLIMITED)
        return;
    struct rlimit old, wanted = {(rlim_t)soft, (rlim_t)(soft + extra)};
    if (getrlimit(resource, &old) == 0 && old.rlim_max != RLIM_INFINITY) {
        if (wanted.rlim_max > old.rlim_max)
            wanted.rlim_max = old.rlim_max;
        if (wanted.rlim_cur > old.rlim_max)
            wanted.rlim_cur = old.rlim_max;
    }
    setrlimit(resource, &wanted);
}

static void apply_limits(const struct fermix_limits *limits) {
    set_limit(RLIMIT_CORE, 0, 0);
    set_limit(RLIMIT_DATA, limits->memory_bytes, 0);
    set_limit(RLIMIT_CPU, limits->cpu_s, 5); /* SIGXCPU first, SIGKILL five seconds later */
    set_limit(RLIMIT_FSIZE, limits->file_size_bytes, 0);
    set_limit(RLIMIT_NOFILE, limits->open_files, 0);
    if (limits->nice != 0)
        setpriority(PRIO_PROCESS, 0, getpriority(PRIO_PROCESS, 0) + limits->nice);
}

static void mark_all_close_on_exec(void) {
    if (syscall(SYS_close_range, 3, 0x7fffffff, CLOSE_RANGE_CLOEXEC) == 0)
        return;
    for (int fd = 3; fd < 65536; fd++)
        fcntl(fd, F_SETFD, FD_CLOEXEC);
}

/* Between vfork and exec: shares the monitor's memory, has its own descriptors and signals. */
static void __attribute__((noinline, noreturn)) run_leader(const struct fermix_command *command,
                                                           struct failure *failure) {
    sigset_t none;
    int moved[3];
    failure->stage = FERMIX_PREPARE;
    setsid();
    prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0); /* the command may kill its monitor, not outlive it */
    for (int i = 0; i < 3; i++)
        if ((moved[i] = fcntl(command->stdio[i], F_DUPFD_CLOEXEC, 3)) < 0)
            goto failed;
    for (int i = 0; i < 3; i++)
        if (dup2(moved[i], i) < 0)
            goto failed;
    mark_all_close_on_exec();
    for (int i = 0; i < command->pass_count; i++)
        if (fcntl(command->pass_fds[i], F_SETFD, 0) < 0)
            goto failed;
    failure->stage = FERMIX_CHDIR;
    if (chdir(command->cwd) < 0)
        goto failed;
    failure->stage = FERMIX_EXEC;
    apply_limits(&command->limits);
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    execve(command->path, command->argv, command->envp);
failed:
    failure->error = errno ? errno : EINVAL;
    _exit(127);
}

/* The owner's handlers and ignored signals (Python ignores SIGPIPE) are not the command's. */
static void reset_signals(void) {
    struct sigaction usual = {.sa_handler = SIG_DFL};
    for (int number = 1; number < NSIG; number++)
        sigaction(number, &usual, NULL);
}

static void read_orders(struct monitor *self) {
    char orders[16];
    ssize_t count = read(self->control_fd, orders, sizeof orders);
    if (count < 0 && (errno == EINTR || errno == EAGAIN))
        return;
    if (count <= 0) {
        close(self->control_fd);
        self->control_fd = -1;
        self->is_killing = 1;
        self->orphaned_at_s = monotonic_s();
        return;
    }
    for (ssize_t i = 0; i < count; i++) {
        if (orders[i] == FERMIX_KILL) {
            self->is_killing = 1;
        } else if (orders[i] == FERMIX_TERMINATE && !self->is_terminating) {
            self->is_terminating = 1;
            fermix_signal_family(SIGTERM);
            fermix_signal_family(SIGCONT);
        }
    }
}

/* Returns whether any child is left. */
static int reap(struct monitor *self) {
    int status;
    pid_t pid;
    while ((pid = waitpid(-1, &status, WNOHANG)) > 0) {
        if (pid != self->leader || self->is_leader_done)
            continue;
        self->is_leader_done = 1;
        report(self->status_fd, FERMIX_ENDED, status, 0);
    }
    return !(pid < 0 && errno == ECHILD);
}

static void kill_pass(struct monitor *self) {
    if (!self->is_leader_done) {
        kill(-self->leader, SIGKILL); /* works without /proc; not reaped yet, so the number is its own */
        kill(self->leader, SIGKILL);
    }
    if (self->passes++ < GENTLE_PASSES)
        fermix_kill_children();
    else
        fermix_freeze_and_kill_family();
}

static void __attribute__((noreturn)) watch(struct monitor *self) {
    struct signalfd_siginfo ignored[8];
    int timeout_ms = -1;
    for (;;) {
        struct pollfd waits[2] = {{self->signal_fd, POLLIN, 0}, {self->control_fd, POLLIN, 0}};
        poll(waits, 2, timeout_ms);
        if (waits[1].revents)
            read_orders(self);
        while (read(self->signal_fd, ignored, sizeof ignored) > 0)
            ;
        if (!reap(self))
            break;
        if (self->orphaned_at_s && monotonic_s() - self->orphaned_at_s > ORPHAN_PATIENCE_S)
            break;
        if (self->is_killing || (self->is_leader_done && !self->is_terminating)) {
            kill_pass(self);
            if (!reap(self))
                break;
            timeout_ms = self->passes < STUCK_PASSES ? PASS_MS : STUCK_PASS_MS;
        }
    }
    report(self->status_fd, FERMIX_SWEPT, 0, 0);
    _exit(0);
}

static void __attribute__((noinline, noreturn)) be_monitor(const struct fermix_command *command, size_t size,
                                                           int control_fd, int status_fd) {
    struct monitor self = {.control_fd = control_fd, .status_fd = status_fd};
    struct failure failure = {0, 0};
    int kept[FERMIX_PASS_LIMIT + 5];
    int count = 0;
    sigset_t child;

    setsid(); /* no terminal's ^C and no group's SIGTERM means us; all signals are blocked besides */
    prctl(PR_SET_NAME, "fermix-monitor", 0, 0, 0);
    prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0);
    kept[count++] = control_fd;
    kept[count++] = status_fd;
    for (int i = 0; i < 3; i++)
        kept[count++] = command->stdio[i];
    for (int i = 0; i < command->pass_count; i++)
        kept[count++] = command->pass_fds[i];
    close_all_but(kept, count);
    reset_signals();

    self.leader = vfork();
    if (self.leader == 0)
        run_leader(command, &failure);
    if (self.leader < 0 || failure.error) {
        report(status_fd, FERMIX_FAILED, failure.error ? failure.error : errno, failure.stage);
        _exit(0); /* a leader that could not exec has ended already */
    }
    report(status_fd, FERMIX_STARTED, self.leader, 0);

    sigemptyset(&child);
    sigaddset(&child, SIGCHLD);
    close_all_but(kept, 2);
    self.signal_fd = signalfd(-1, &child, SFD_NONBLOCK | SFD_CLOEXEC);
    if (chdir("/") < 0) {
        /* we then hold the owner's folder busy, which harms nothing else */
    }
    munmap((void *)command, size);
    watch(&self);
}

/* The system call itself: handlers that libraries hang onto fork would touch memory that is left out. */
static pid_t fork_monitor(const struct fermix_command *command, size_t size, int control_fd, int status_fd) {
    static pthread_mutex_t one_at_a_time = PTHREAD_MUTEX_INITIALIZER;
    struct fermix_left_out left_out;
    sigset_t all, old;
    pthread_mutex_lock(&one_at_a_time);
    fermix_leave_out_of_fork(&left_out);
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &old); /* so that the owner's handlers never run in the child */
    pid_t pid = (pid_t)syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0);
    if (pid == 0)
        be_monitor(command, size, control_fd, status_fd);
    int error = errno;
    pthread_sigmask(SIG_SETMASK, &old, NULL);
    fermix_put_back(&left_out);
    pthread_mutex_unlock(&one_at_a_time);
    errno = error;
    return pid;
}

int fermix_start_monitor(const struct fermix_command *command, pid_t *monitor, int *control_fd,
                         int *status_fd) {
    int control[2], status[2];
    if (command->pass_count > FERMIX_PASS_LIMIT)
        return -E2BIG;
    if (pipe2(control, O_CLOEXEC) < 0)
        return -errno;
    if (pipe2(status, O_CLOEXEC) < 0) {
        int error = errno;
        close(control[0]);
        close(control[1]);
        return -error;
    }
    size_t size = 0;
    struct fermix_command *packed = fermix_pack(command, &size);
    pid_t pid = -1;
    int error = ENOMEM;
    if (packed) {
        pid = fork_monitor(packed, size, control[0], status[1]);
        error = errno;
        munmap(packed, size);
    }
    close(control[0]);
    close(status[1]);
    if (pid < 0) {
        close(control[1]);
        close(status[0]);
        return -error;
    }
    *monitor = pid;
    *control_fd = control[1];
    *status_fd = status[0];
    return 0;
}
