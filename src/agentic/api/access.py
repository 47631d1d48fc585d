"""The dependency of every route under ``/v1``: an authenticated caller who is a member of the organization, read at each request."""

from collections.abc import Awaitable, Callable

from fastapi import Request

from agentic.api.auth import Authenticator, Caller, NotAuthenticated
from agentic.api.ports import ApiPorts
from agentic.contract.errors import NotPermitted
from agentic.contract.principal import Role

Access = Callable[[Request], Awaitable[Caller]]


def members_only(ports: ApiPorts, authenticator: Authenticator) -> Access:
    """Build the dependency. What a route needs beyond membership is checked by its service, in the deciding statement."""

    async def member(request: Request) -> Caller:
        headers = request.headers.getlist("authorization")
        if len(headers) > 1:  # a proxy and this process could each believe another one
            raise NotAuthenticated("the request has more than one Authorization header; send one")
        caller = await authenticator.authenticate(headers[0] if headers else None)
        role = await ports.role(caller.organization_id, caller.user_id)
        if role is None or not role.holds(Role.MEMBER):
            raise NotPermitted("this person is not a member of the organization the token names")
        return caller

    return member
