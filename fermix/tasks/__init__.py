"""How greenlets are started, waited for and stopped; nothing else in fermix spawns one."""

from fermix.tasks.cancel import Cancel
from fermix.tasks.child import Child, ChildSpec, Restart, Service, Strategy
from fermix.tasks.deadline import Deadline, at_most, time_limit
from fermix.tasks.group import Task, TaskGroup, sleep
from fermix.tasks.pool import ThreadPool
from fermix.tasks.slots import Slots

__all__ = [
    "Cancel",
    "Child",
    "ChildSpec",
    "Deadline",
    "Restart",
    "Service",
    "Slots",
    "Strategy",
    "Task",
    "TaskGroup",
    "ThreadPool",
    "at_most",
    "sleep",
    "time_limit",
]
