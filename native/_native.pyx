# cython: language_level=3, binding=True
"""System calls that Python lacks, or that must not go through gevent's or libev's hands."""

import os

from libc.errno cimport EINTR, errno
from libc.stdlib cimport free, malloc

cdef extern from "<sys/types.h>" nogil:
    ctypedef int pid_t

cdef extern from "<unistd.h>" nogil:
    long syscall(long number, ...)

cdef extern from "<sys/syscall.h>" nogil:
    long SYS_kill

cdef extern from *:
    """
    #include <sys/syscall.h>
    #ifndef SYS_pidfd_open
    #define SYS_pidfd_open 434 /* the same on every architecture; Linux 5.3 */
    #endif
    #ifndef SYS_pidfd_send_signal
    #define SYS_pidfd_send_signal 424 /* likewise; Linux 5.1 */
    #endif
    """
    long SYS_pidfd_open
    long SYS_pidfd_send_signal

cdef extern from "<sys/prctl.h>" nogil:
    int prctl(int option, ...)
    int PR_SET_CHILD_SUBREAPER
    int PR_SET_PDEATHSIG
    int PR_SET_DUMPABLE

cdef extern from "<sys/wait.h>" nogil:
    pid_t waitpid(pid_t pid, int *status, int options)
    int WNOHANG

cdef extern from "monitor.h" nogil:
    int FERMIX_PASS_LIMIT
    struct fermix_limits:
        long long memory_bytes
        long long cpu_s
        long long file_size_bytes
        long long open_files
        int nice
    struct fermix_command:
        const char *path
        char **argv
        char **envp
        const char *cwd
        int stdio[3]
        const int *pass_fds
        int pass_count
        fermix_limits limits
    int fermix_start_monitor(const fermix_command *command, pid_t *monitor, int *control_fd, int *status_fd)


cdef object failed(int error):
    return OSError(error, os.strerror(error))


def kill_pgid(int pgid, int signal):
    """Signal every process of a group by one direct system call.

    Raises: ProcessLookupError, PermissionError; ValueError for the groups 0 and 1, which kill(2)
    would take for "my own" and "everyone".
    """
    cdef long result
    cdef int error = 0
    if pgid <= 1:
        raise ValueError(f"Group {pgid} cannot be signalled; a group's number is above 1.")
    with nogil:
        result = syscall(SYS_kill, <pid_t>-pgid, signal)
        if result < 0:
            error = errno
    if error:
        raise failed(error)


def pidfd_open(int pid):
    """A close-on-exec descriptor that stands for this very process and reads ready when it ends."""
    cdef long result = syscall(SYS_pidfd_open, <pid_t>pid, <int>0)
    if result < 0:
        raise failed(errno)
    return int(result)


def pidfd_send_signal(int fd, int signal):
    """Signal the process behind a pidfd, never one that took over its number."""
    if syscall(SYS_pidfd_send_signal, fd, signal, <void *>NULL, <int>0) < 0:
        raise failed(errno)


def become_subreaper():
    """Descendants whose parent ends become children of this process instead of init's."""
    if prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) < 0:
        raise failed(errno)


def set_parent_death_signal(int signal):
    """Be sent `signal` when the thread that forked this process ends; 0 takes it back."""
    if prctl(PR_SET_PDEATHSIG, signal, 0, 0, 0) < 0:
        raise failed(errno)


def set_dumpable(bint is_dumpable):
    """Whether this process leaves core files and lets others of its user read its memory."""
    if prctl(PR_SET_DUMPABLE, <int>is_dumpable, 0, 0, 0) < 0:
        raise failed(errno)


def reap(int pid, *, bint block):
    """The wait status of exactly this child, None while it runs and `block` is false.

    Raises: ChildProcessError when it is no child of ours or someone else reaped it.
    """
    cdef int status = 0
    cdef int options = 0 if block else WNOHANG
    cdef pid_t ended
    cdef int error = 0
    if pid <= 0:
        raise ValueError(f"Process {pid} cannot be waited for; a process number is above 0.")
    with nogil:
        ended = waitpid(pid, &status, options)
        while ended < 0 and errno == EINTR:
            ended = waitpid(pid, &status, options)
        if ended < 0:
            error = errno
    if error:
        raise failed(error)
    return status if ended == pid else None


cdef char **pointers(list texts) except NULL:
    """A NULL-terminated array into `texts`, which must outlive it; the caller frees it."""
    cdef char **array = <char **>malloc((len(texts) + 1) * sizeof(char *))
    cdef Py_ssize_t at
    if array == NULL:
        raise MemoryError
    for at in range(len(texts)):
        array[at] = <bytes>texts[at]
    array[len(texts)] = NULL
    return array


def start_monitor(bytes path, list argv, list environment, bytes cwd, tuple stdio, tuple pass_fds, tuple limits):
    """Fork a monitor that runs the command; returns (monitor pid, control fd, status fd).

    `limits`: memory_bytes, cpu_s, file_size_bytes, open_files, nice; -1 is no limit.
    The caller has checked every value: this is not the public door, `spawning.spawn` is.
    """
    cdef fermix_command command
    cdef int passed[64]
    cdef pid_t monitor = 0
    cdef int control_fd = -1, status_fd = -1, result, at
    cdef char **argv_pointers = NULL
    cdef char **environment_pointers = NULL
    if len(pass_fds) > FERMIX_PASS_LIMIT:
        raise ValueError(f"A command inherits at most {FERMIX_PASS_LIMIT} descriptors, not {len(pass_fds)}.")
    for at in range(len(pass_fds)):
        passed[at] = pass_fds[at]
    for at in range(3):
        command.stdio[at] = stdio[at]
    command.pass_fds = passed
    command.pass_count = len(pass_fds)
    (
        command.limits.memory_bytes,
        command.limits.cpu_s,
        command.limits.file_size_bytes,
        command.limits.open_files,
        command.limits.nice,
    ) = limits
    command.path = path
    command.cwd = cwd
    try:
        argv_pointers = pointers(argv)
        environment_pointers = pointers(environment)
        command.argv = argv_pointers
        command.envp = environment_pointers
        with nogil:
            result = fermix_start_monitor(&command, &monitor, &control_fd, &status_fd)
    finally:
        free(argv_pointers)
        free(environment_pointers)
    if result < 0:
        raise failed(-result)
    return monitor, control_fd, status_fd
