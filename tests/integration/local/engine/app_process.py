"""An app as a process of its own, for tests that kill it: `app_process.py PORT ENGINE_URL LEDGER GATE`.

Its steps write a line to the ledger when they begin. Step `two` then waits until the file `GATE` exists.
"""

from __future__ import annotations

import asyncio
import os
import sys
from pathlib import Path

import inngest
import inngest.fast_api
import uvicorn
from fastapi import FastAPI

port, engine_url, ledger, gate = sys.argv[1:]
client = inngest.Inngest(app_id="story", is_production=False, api_base_url=engine_url, event_api_base_url=engine_url)


def note(line: str) -> None:
    with Path(ledger).open("a", encoding="utf-8") as file:
        file.write(f"{line} {os.getpid()}\n")


@client.create_function(fn_id="told", retries=2, trigger=inngest.TriggerEvent(event="told"))
async def told(ctx: inngest.Context) -> str:
    async def tell(name: str) -> str:
        note(f"{name} attempt {ctx.attempt}")
        while name == "two" and not os.path.exists(gate):  # noqa: ASYNC110, ASYNC240, PTH110 - the sign of another process
            await asyncio.sleep(0.01)
        return name

    for name in ("one", "two", "three"):
        await ctx.step.run(name, tell, name)
    return "told"


app = FastAPI()
inngest.fast_api.serve(app, client, [told])
uvicorn.run(app, host="127.0.0.1", port=int(port), log_level="error")
