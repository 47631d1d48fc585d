"""How hypothesis searches here: a case has no time limit of its own.

Two workers share two cores with a database, so a single case may wait. The bound on the whole test stands instead.
"""

from hypothesis import settings

settings.register_profile("laws", deadline=None)
settings.load_profile("laws")
