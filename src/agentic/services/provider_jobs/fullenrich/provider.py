"""FullEnrich as a provider of jobs."""

from collections.abc import Mapping, Sequence
from typing import Any

from agentic.contract.signatures import signed_in_hex
from agentic.services.provider_jobs.fullenrich import client
from agentic.services.provider_jobs.fullenrich.account import FullEnrichAccount
from agentic.services.provider_jobs.fullenrich.collect import collect_tool
from agentic.services.provider_jobs.fullenrich.submit import submit_tool
from agentic.services.provider_jobs.fullenrich.wire import report_of
from agentic.services.provider_jobs.models import JobReport
from agentic.services.provider_jobs.ports import SubmittedJobs
from agentic.services.tools.declarations import Tool

SIGNATURE = "x-signature-sha1"


class FullEnrich:
    """Implements ``JobProvider`` over an account."""

    name = "fullenrich"

    def __init__(self, account: FullEnrichAccount) -> None:
        self._account = account
        self.window_s = account.window_s
        self.ask_every_s = account.ask_every_s

    def verify(self, raw_body: bytes, headers: Mapping[str, str]) -> bool:
        """Whether the API key, or one of the earlier ones, signed exactly these bytes."""
        keys = (self._account.key, *self._account.earlier_keys)
        return signed_in_hex(raw_body, headers.get(SIGNATURE), keys=keys, algorithm="sha1")

    def read(self, payload: Mapping[str, Any]) -> JobReport:
        """See ``JobProvider``."""
        return report_of(payload)

    async def ask(self, provider_job_id: str) -> JobReport | None:
        """See ``JobProvider``."""
        return await client.ask(self._account, provider_job_id)

    def tools(self, jobs: SubmittedJobs) -> Sequence[Tool]:
        """``fullenrich.submit`` and ``fullenrich.collect``."""
        return [submit_tool(self._account, jobs), collect_tool(jobs, wait_s=self.window_s + 2 * self.ask_every_s)]
