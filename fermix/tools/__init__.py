"""The built-in tools, listed in one table."""

from fermix.tools.files import file_read, file_write
from fermix.tools.plan import plan
from fermix.tools.recall import tool_result_recall
from fermix.tools.shell import shell
from fermix.tools.time import current_time

TOOLS = (file_read, file_write, shell, current_time, tool_result_recall, plan)
