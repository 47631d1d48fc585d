"""A worker: a process that leads runs, called by a function server, and the handle of whoever starts one on this machine."""

from agentic.local.worker.process import WorkerFailed, WorkerProcess
from agentic.local.worker.settings import WorkerSettings

__all__ = ["WorkerFailed", "WorkerProcess", "WorkerSettings"]
