"""A server over standard streams that misbehaves on demand. Plain lines of JSON and the standard library; no SDK.

`python scripted_stdio.py [habit …]`. A habit is how it lives, the name of the called tool what it does next.
"""

import json
import os
import signal
import subprocess
import sys
import time
from typing import Any

HABITS = set(sys.argv[1:])
CANCELLED: list[Any] = []
HELD: list[Any] = []
META: list[Any] = []
PAGES: dict[str, Any] = json.loads(os.environ.get("PAGES", "{}"))
"""What it lists, by cursor; a file that `PAGES_FILE` names is read anew each time."""
RESOURCES: list[Any] = [
    {"uri": "note://1", "name": "Milk", "mimeType": "text/plain", "secret": 1},
    {"uri": "note://2", "name": "Photo"},
    {"uri": "note://empty"},
    "no entry",
]
READ: dict[str, Any] = {
    "note://1": {"contents": [{"uri": "note://1", "mimeType": "text/plain", "text": "Buy milk."}]},
    "note://2": {"contents": [{"uri": "note://2", "mimeType": "image/png", "blob": "iVBORyAx"}]},
    "file:///etc/hostname": {"contents": [{"uri": "file:///etc/hostname", "text": "inside"}]},
}


def say(message: dict[str, Any]) -> None:
    sys.stdout.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
    sys.stdout.flush()


def text(id: Any, words: str, **more: Any) -> None:
    say({"id": id, "result": {"content": [{"type": "text", "text": words}], **more}})


def pages() -> dict[str, Any]:
    file = os.environ.get("PAGES_FILE")
    if file is None:
        return PAGES
    with open(file, encoding="utf-8") as opened:
        listed: dict[str, Any] = json.load(opened)
    return listed


def heard() -> dict[str, Any] | None:
    line = sys.stdin.readline()
    return json.loads(line) if line else None


def call(id: Any, name: str, arguments: dict[str, Any]) -> None:
    match name:
        case "echo":
            text(id, json.dumps(arguments))
        case "raw":
            say({"id": id, "result": arguments["result"]})
        case "error":
            say({"id": id, "error": arguments["error"]})
        case "nul":
            text(id, "a\0b", structuredContent={"n": 1})
        case "meta":
            text(id, json.dumps(META[0]))
        case "environment":
            text(id, json.dumps(dict(os.environ)))
        case "pid":
            text(id, str(os.getpid()))
        case "die":
            sys.stderr.write("the last words of a server\n")
            sys.stderr.flush()
            os._exit(3)
        case "answer_and_die":
            text(id, "the last answer")
            os._exit(0)
        case "never":
            pass
        case "hold":
            HELD.append(id)
        case "meet":
            HELD.append(id)
            if len(HELD) == arguments["of"]:
                for each in HELD:
                    text(each, "met")
        case "release":
            for each in HELD:
                text(each, "late")
            text(id, "released")
        case "cancelled":
            text(id, json.dumps(CANCELLED))
        case "chatter":
            sys.stderr.write("x" * 300_000 + f"the end {os.environ.get('API_TOKEN')}")
            sys.stderr.flush()
            text(id, "calm")
        case "garbage":
            sys.stdout.buffer.write(b"a banner\n\xff\xfe not utf-8\n{broken\n[]\n\n")
            sys.stdout.flush()
            text(id, "after it")
        case "half_character":
            text(id, "cut \ud83d here")
        case "latin":
            latin = b'{"jsonrpc":"2.0","id":%d,"result":{"content":[{"type":"text","text":"caf\xe9"}]}}\n'
            sys.stdout.buffer.write(latin % id)
            sys.stdout.flush()
        case "deep":
            deep: Any = {}
            for _ in range(300):
                deep = [deep]
            say({"id": id, "result": {"content": deep}})
        case "no_result":
            say({"id": id, "result": None})
        case "long_line":
            sys.stdout.write(
                json.dumps({"jsonrpc": "2.0", "id": id, "result": {"pad": "x" * arguments["bytes"]}}) + "\n"
            )
            sys.stdout.flush()
        case "endless":
            while True:
                sys.stdout.write("x" * 65536)
        case "close_output":
            os.close(1)
            while heard() is not None:
                pass
        case "ask":
            say({"id": "mine", "method": arguments["method"], "params": {}})
            while (answer := heard()) is not None and answer.get("id") != "mine":
                pass
            text(id, json.dumps(answer))
        case "flood":
            for number in range(20_000):
                say({"id": f"q{number}", "method": "sampling/createMessage", "params": {}})
            text(id, "never heard")
        case "announce":
            for _ in range(arguments["times"]):
                say({"method": "notifications/tools/list_changed"})
            text(id, "announced")
        case "stop":
            text(id, "stopping")
            os.kill(os.getpid(), signal.SIGSTOP)
        case "grandchild":
            child = subprocess.Popen(  # holds the pipes open, and hears nothing
                [
                    sys.executable,
                    "-c",
                    "import signal,time; signal.signal(signal.SIGTERM, signal.SIG_IGN); time.sleep(600)",
                ]
            )
            text(id, json.dumps([os.getpid(), child.pid]))
        case _:
            say({"id": id, "error": {"code": -32602, "message": f"unknown tool {name}"}})


def main() -> None:
    if "exits_at_start" in HABITS:
        sys.stderr.write("cannot find my database\n")
        sys.exit(3)
    if "ignores_term" in HABITS:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
    while (message := heard()) is not None:
        method, id, params = message.get("method"), message.get("id"), message.get("params") or {}
        if method == "initialize":
            if "silent" in HABITS:
                continue
            if "needs_sampling" in HABITS and "sampling" not in params["capabilities"]:
                say({"id": id, "error": {"code": -32602, "message": "this server needs a client that samples"}})
                continue
            version = "1999-01-01" if "ancient" in HABITS else params["protocolVersion"]
            say(
                {
                    "id": id,
                    "result": {
                        "protocolVersion": version,
                        "capabilities": {"tools": {}, "resources": {}},
                        "serverInfo": {"name": "scripted", "version": "1"},
                    },
                }
            )
        elif method == "notifications/initialized" and "needs_roots" in HABITS:
            say({"id": "roots", "method": "roots/list", "params": {}})
            while (answer := heard()) is not None and answer.get("id") != "roots":
                pass
            if answer is None or "error" in answer:
                sys.exit("no folders, no work")
        elif method == "notifications/cancelled":
            CANCELLED.append(params["requestId"])
        elif method == "tools/list" and "lists_never" in HABITS:
            continue
        elif method == "tools/list":
            say({"id": id, "result": pages().get(params.get("cursor") or "", {"tools": []})})
        elif method == "tools/call":
            META[:] = [params.get("_meta")]
            call(id, params["name"], params.get("arguments") or {})
        elif method == "resources/list":
            say({"id": id, "result": {"resources": RESOURCES}})
        elif method == "resources/read":
            say({"id": id, "result": READ.get(params["uri"], {})})
        elif id is not None and method is not None:
            say({"id": id, "result": {}})
    if "ignores_eof" in HABITS:
        time.sleep(600)


main()
