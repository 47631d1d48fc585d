"""Servers that nobody here wrote: at which version, how each is started, and one call of it that reaches nothing outside this machine.

Versions are exact, so that a fault that appears is ours. In arguments and variables `{folder}` is a folder of the test's own with a note and
a git repository in it, and `{page}` the address of a page on loopback.
"""

import shutil
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

ROOT: Final = Path(__file__).resolve().parents[2]
CACHE: Final = ROOT / ".mcp-servers"
NODE: Final = CACHE / "node" / "node_modules"
CONFORMANCE: Final = CACHE / "conformance" / "node_modules"
LOOPBACK: Final = Path(__file__).with_name("loopback.cjs")

CONFORMANCE_PACKAGE: Final = "@modelcontextprotocol/conformance@0.2.0-alpha.12"


@dataclass(frozen=True, kw_only=True)
class Foreign:
    """One server.

    Attributes:
        package: as its registry names it, with the exact version.
        environment: the folder below the cache; `node`, or a Python environment.
        call: a tool and its arguments.
        says: a part of what it answers.
        fails: the answer is a failure in the server's words: its work lies outside this machine, so it is called wrongly.
        tools: how many it lists.
        rejected: the tools that are not carried, each with a part of the reason.
    """

    name: str
    package: str
    environment: str
    program: str
    call: tuple[str, Mapping[str, Any]]
    says: str
    tools: int
    arguments: tuple[str, ...] = ()
    variables: Mapping[str, str] = field(default_factory=dict)
    fails: bool = False
    rejected: Mapping[str, str] = field(default_factory=dict)

    @property
    def executable(self) -> Path:
        """Where the installation put it."""
        return (
            NODE / ".bin" / self.program
            if self.environment == "node"
            else CACHE / self.environment / "bin" / self.program
        )


def search_path() -> str:
    """Where a server finds `node`, `git` and the like: the folders of those programs, and the usual ones."""
    found = [Path(program).parent for name in ("node", "git") if (program := shutil.which(name))]
    return ":".join(dict.fromkeys([*map(str, found), "/usr/local/bin", "/usr/bin", "/bin"]))


SERVERS: Final = (
    Foreign(
        name="everything",
        package="@modelcontextprotocol/server-everything@2026.8.31",
        environment="node",
        program="mcp-server-everything",
        arguments=("stdio",),
        call=("get-sum", {"a": 2, "b": 3}),
        says="The sum of 2 and 3 is 5.",
        tools=12,
        rejected={"simulate-research-query": "as a task of the protocol only"},
    ),
    Foreign(
        name="filesystem",
        package="@modelcontextprotocol/server-filesystem@2026.8.31",
        environment="node",
        program="mcp-server-filesystem",
        arguments=("{folder}",),
        call=("read_text_file", {"path": "{folder}/note.txt"}),
        says="Ida likes tea.",
        tools=14,
    ),
    Foreign(
        name="memory",
        package="@modelcontextprotocol/server-memory@2026.8.31",
        environment="node",
        program="mcp-server-memory",
        variables={"MEMORY_FILE_PATH": "{folder}/memory.json"},
        call=(
            "create_entities",
            {"entities": [{"name": "Ida", "entityType": "person", "observations": ["likes tea"]}]},
        ),
        says="likes tea",
        tools=9,
    ),
    Foreign(
        name="thinking",
        package="@modelcontextprotocol/server-sequential-thinking@2026.8.31",
        environment="node",
        program="mcp-server-sequential-thinking",
        call=(
            "sequentialthinking",
            {"thought": "One.", "nextThoughtNeeded": False, "thoughtNumber": 1, "totalThoughts": 1},
        ),
        says="thoughtHistoryLength",
        tools=1,
    ),
    Foreign(
        name="github",
        package="@modelcontextprotocol/server-github@2025.4.8",
        environment="node",
        program="mcp-server-github",
        call=("create_issue", {}),
        says="Invalid input",
        fails=True,
        tools=26,
    ),
    Foreign(
        name="slack",
        package="@modelcontextprotocol/server-slack@2025.4.25",
        environment="node",
        program="mcp-server-slack",
        variables={"SLACK_BOT_TOKEN": "xoxb-none", "SLACK_TEAM_ID": "T0"},
        call=("slack_post_message", {}),
        says="Missing required arguments",
        tools=8,
    ),
    Foreign(
        name="notion",
        package="@notionhq/notion-mcp-server@2.5.2",
        environment="node",
        program="notion-mcp-server",
        call=("API-get-everything", {}),
        says="not found",
        fails=True,
        tools=24,
    ),
    Foreign(
        name="playwright",
        package="@playwright/mcp@0.0.83",
        environment="node",
        program="playwright-mcp",
        call=("browser_juggle", {}),
        says="Error",
        fails=True,
        tools=25,
    ),
    Foreign(
        name="chrome",
        package="chrome-devtools-mcp@1.11.0",
        environment="node",
        program="chrome-devtools-mcp",
        arguments=("--no-usage-statistics", "--no-performance-crux"),
        call=("click", {}),
        says="uid",
        fails=True,
        tools=32,
    ),
    Foreign(
        name="commander",
        package="@wonderwhy-er/desktop-commander@0.2.52",
        environment="node",
        program="desktop-commander",
        variables={"DESKTOP_COMMANDER_DISABLE_TELEMETRY": "true"},
        call=("list_directory", {"path": "{folder}"}),
        says="note.txt",
        tools=26,
    ),
    Foreign(
        name="context7",
        package="@upstash/context7-mcp@4.1.1",
        environment="node",
        program="context7-mcp",
        call=("query-docs", {}),
        says="query",
        fails=True,
        tools=2,
    ),
    Foreign(
        name="time",
        package="mcp-server-time==2026.10.19",
        environment="python",
        program="mcp-server-time",
        arguments=("--local-timezone", "UTC"),
        call=("convert_time", {"source_timezone": "UTC", "time": "12:00", "target_timezone": "Asia/Tokyo"}),
        says="21:00:00+09:00",
        tools=2,
    ),
    Foreign(
        name="git",
        package="mcp-server-git==2026.10.19",
        environment="python",
        program="mcp-server-git",
        arguments=("--repository", "{folder}"),
        call=("git_log", {"repo_path": "{folder}"}),
        says="The first note",
        tools=12,
    ),
    Foreign(
        name="fetch",
        package="mcp-server-fetch==2026.10.24",
        environment="python",
        program="mcp-server-fetch",
        arguments=("--ignore-robots-txt", "--allow-private-ips"),
        call=("fetch", {"url": "{page}"}),
        says="A page of our own.",
        tools=1,
    ),
    Foreign(
        name="motherduck",
        package="mcp-server-motherduck==1.1.0",
        environment="python",
        program="mcp-server-motherduck",
        arguments=("--db-path", ":memory:", "--read-write"),
        call=("execute_query", {"sql": "select 40 + 2 as answer"}),
        says="42",
        tools=4,
    ),
    Foreign(
        name="sqlite",
        package="mcp-server-sqlite==2025.4.25",
        environment="python-sqlite",
        program="mcp-server-sqlite",
        arguments=("--db-path", "{folder}/notes.db"),
        call=("read_query", {"query": "select 40 + 2 as answer"}),
        says="42",
        tools=6,
    ),
)
EXTRA: Final[Mapping[str, tuple[str, ...]]] = {
    # it names no version of the SDK, and does not start with the present one
    "python-sqlite": ("mcp==1.30.0",),
}
"""What an environment needs beside its servers."""
