"""Tokens of the local API, of the shape Supabase issues, signed with the folder's own secret."""

import time
from uuid import UUID

import jwt

LIFETIME_S = 24 * 3600


def sign(secret: str, *, organization_id: UUID, user_id: UUID, lifetime_s: int = LIFETIME_S) -> str:
    """A bearer token of one person in one organization; what they may do there is read from the database at each request."""
    claims = {
        "sub": str(user_id),
        "aud": "authenticated",
        "exp": int(time.time()) + lifetime_s,
        "app_metadata": {"organization_id": str(organization_id)},
    }
    return jwt.encode(claims, secret, algorithm="HS256")
