"""Serves the provider on a free loopback port, inside the current process."""

from agentic.local.providers.loopback_server import LoopbackServer
from agentic.local.providers.model.app import model_app
from agentic.local.providers.model.script import ModelScript, Reply


class ModelServer(LoopbackServer):
    """``async with ModelServer(Answer(text="Hi.")) as server`` answers at ``server.url``, a model's ``base_url``, until the block ends.

    Args:
        replies: what it answers, in order; ``server.script.add`` takes more.
        port: on 127.0.0.1; 0 takes a free one.

    Raises:
        OSError: on entering, when the port is taken.
    """

    def __init__(self, *replies: Reply, port: int = 0) -> None:
        self.script = ModelScript(*replies)
        super().__init__(
            model_app(self.script),
            name="local model provider",
            port=port,
            path="/v1",
            release=self.script.release_all,
            grace_s=1,
        )
