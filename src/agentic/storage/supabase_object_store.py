"""The bytes of artifacts in Supabase Storage, over its HTTP interface.

A path is ``organization/run/artifact`` in one private bucket, so a run's bytes share a prefix. An object is never replaced:
the request says so, and one that is there already must hold the same bytes. The service answers many refusals with status 400 and
names the status it means in the body.
"""

import hashlib
import os
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from types import TracebackType
from typing import Any, Final, Self
from urllib.parse import quote
from uuid import UUID

import httpx

from agentic.contract.errors import ProgramFault
from agentic.services.artifacts.models import Artifact
from agentic.services.artifacts.ports import BodiesUnavailable
from agentic.services.tools.artifacts import MAX_ARTIFACT_BYTES, placed
from agentic.services.tools.records import ArtifactRecord
from agentic.storage.supabase_address import project_url

URL_VARIABLE: Final = "AGENTIC_ARTIFACTS_URL"
KEY_VARIABLE: Final = "AGENTIC_ARTIFACTS_KEY"
BUCKET_VARIABLE: Final = "AGENTIC_ARTIFACTS_BUCKET"
DEFAULT_BUCKET: Final = "agentic-artifacts"
TIMEOUT_S: Final = 20.0
_ATTEMPTS: Final = 2
_PAGE: Final = 100


class SupabaseBodies:
    """Implements ``ArtifactBodies``. Made once a process, closed with it.

    Args:
        url: of the project, such as ``https://abc.supabase.example``; plain ``http`` for loopback alone.
        key: the service's key; the bucket is private and only this process reads it.
        bucket: exists already.
        transport: for tests.

    Raises:
        ProgramFault: the URL is not one a key may be sent to, or the bucket's name is none.
    """

    def __init__(
        self,
        *,
        url: str,
        key: str,
        bucket: str = DEFAULT_BUCKET,
        transport: httpx.AsyncBaseTransport | None = None,
    ) -> None:
        project = project_url(url, of="the object store")
        if not bucket or quote(bucket, safe="") != bucket:
            raise ProgramFault(f"{bucket!r} is no name of a bucket; use letters, digits, dots and dashes")
        self._bucket = bucket
        self._client = httpx.AsyncClient(
            base_url=f"{project}/storage/v1/",
            headers={"authorization": f"Bearer {key}", "apikey": key},
            timeout=TIMEOUT_S,
            follow_redirects=False,
            trust_env=False,
            transport=transport,
        )

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, problem: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.aclose()

    async def aclose(self) -> None:
        """Close the connections."""
        await self._client.aclose()

    async def put(self, record: ArtifactRecord, *, organization_id: UUID, run_id: UUID) -> ArtifactRecord:
        if record.body is None:
            return record  # it has its place already
        path = f"{organization_id}/{run_id}/{record.id}"
        headers = {"content-type": record.media_type, "x-upsert": "false", "cache-control": "no-store"}
        response = await self._asked("POST", f"object/{self._bucket}/{path}", content=record.body, headers=headers)
        meant = _meant(response)
        if meant == httpx.codes.CONFLICT:
            found = await self._read(path)
            if found is None or hashlib.sha256(found).hexdigest() != record.sha256:
                raise BodiesUnavailable("other bytes stand under this artifact's id already")
        elif not response.is_success:
            raise _failed(meant)
        return placed(record, f"{self._bucket}/{path}")

    async def get(self, artifact: Artifact) -> bytes | None:
        bucket, _, path = (artifact.place or "").partition("/")
        expected = f"{artifact.organization_id}/{artifact.run_id}/{artifact.id}"
        if bucket != self._bucket or path != expected:
            raise ProgramFault(
                f"artifact {artifact.id} does not stand in the bucket {self._bucket}; open the one it names"
            )
        return await self._read(path)

    async def forget_run(self, organization_id: UUID, run_id: UUID) -> None:
        folder = f"{organization_id}/{run_id}"
        while True:  # always the first page: what was listed is gone before the next look
            asked = {"prefix": folder, "limit": _PAGE, "offset": 0, "sortBy": {"column": "name", "order": "asc"}}
            listed = await self._asked("POST", f"object/list/{self._bucket}", json=asked)
            if not listed.is_success:
                raise _failed(_meant(listed))
            names = [entry["name"] for entry in _json(listed) if isinstance(entry, dict) and entry.get("id")]
            if not names:
                return
            paths = [f"{folder}/{name}" for name in names]
            gone = await self._asked("DELETE", f"object/{self._bucket}", json={"prefixes": paths})
            if not gone.is_success:
                raise _failed(_meant(gone))
            if not _json(gone):  # it names what it removed; nothing would be listed again for ever
                raise BodiesUnavailable("the object store removed nothing of what it lists")

    async def _read(self, path: str) -> bytes | None:
        response = await self._asked("GET", f"object/authenticated/{self._bucket}/{path}")
        meant = _meant(response)
        if meant == httpx.codes.NOT_FOUND:
            return None
        if not response.is_success:
            raise _failed(meant)
        if len(response.content) > MAX_ARTIFACT_BYTES:
            raise ProgramFault("the object store gave more bytes than an artifact can have")
        return response.content

    async def _asked(self, method: str, path: str, **given: Any) -> httpx.Response:
        """One request, sent again where it got no answer or the service was busy; each of them may be repeated."""
        last = "no answer"
        for _ in range(_ATTEMPTS):
            try:
                response = await self._client.request(method, path, **given)
            except httpx.TransportError as problem:
                last = type(problem).__name__  # its text may quote a header
                continue
            if response.status_code < httpx.codes.INTERNAL_SERVER_ERROR:
                return response
            last = f"status {response.status_code}"
        raise BodiesUnavailable(f"the object store gave {last}")


@asynccontextmanager
async def object_store_of(environment: Mapping[str, str] = os.environ) -> AsyncIterator[SupabaseBodies | None]:
    """The object store this process was told of, until the block ends; ``None`` when it was told of none.

    Raises:
        ProgramFault: the URL is there and the key is not, or one of them cannot be used.
    """
    url, key = environment.get(URL_VARIABLE), environment.get(KEY_VARIABLE)
    if not url:
        yield None
        return
    if not key:
        raise ProgramFault(f"{URL_VARIABLE} is set and {KEY_VARIABLE} is not; set both, or neither")
    async with SupabaseBodies(url=url, key=key, bucket=environment.get(BUCKET_VARIABLE) or DEFAULT_BUCKET) as bodies:
        yield bodies


def _meant(response: httpx.Response) -> int:
    """The status the service means: that of the body where it has one."""
    if response.is_success:
        return response.status_code
    body = _json(response)
    told = body.get("statusCode") if isinstance(body, dict) else None
    return int(told) if isinstance(told, int | str) and str(told).isdecimal() else response.status_code


def _json(response: httpx.Response) -> Any:
    try:
        return response.json()
    except ValueError:
        return None


def _failed(meant: int) -> BodiesUnavailable:
    return BodiesUnavailable(f"the object store refused with status {meant}")
