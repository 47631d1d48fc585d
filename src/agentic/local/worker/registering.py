"""Making the functions that are served here known to the function server."""

import httpx

from agentic.contract.errors import AgenticError

_TIMEOUT_S = 30.0


class NotRegistered(AgenticError):
    """The function server did not take the functions; without that it calls nobody."""


async def register(url: str) -> None:
    """Have the SDK send its function list; it answers 200 also when the server refused it, only the body tells.

    Args:
        url: the whole address of the functions, ending in ``/api/inngest``.

    Raises:
        NotRegistered: the server does not answer, or refuses the functions; the message says which.
    """
    try:
        async with httpx.AsyncClient(timeout=_TIMEOUT_S, trust_env=False) as http:
            answer = (await http.put(url)).json()
    except (httpx.HTTPError, ValueError) as error:
        raise NotRegistered(f"the functions at {url} could not be registered ({type(error).__name__})") from error
    if not (isinstance(answer, dict) and answer.get("ok") is True):
        said = answer.get("error") or answer.get("message") if isinstance(answer, dict) else None
        raise NotRegistered(
            f"the function server did not take the functions: {str(said or 'it gave no reason').removesuffix('.')}. "
            "Check that INNGEST_DEV or INNGEST_BASE_URL names a server that runs."
        )
