"""The rehearsal: a script in the place of a model, for a machine without a model key.

Each turn is read off the history, so it uses the ids that the search found and goes on in another process. Like a model it would
word things differently when asked again; what was proposed is stored before it runs, so that changes nothing (J8).
"""

import json
import random
from collections.abc import Sequence
from typing import Any

from agentic.local.demo.agent import LIST
from agentic.local.demo.settings import REHEARSAL, Target
from agentic.runtime.agent.agno.scripted import ScriptedModel
from agentic.runtime.agent.script import Answered, Call, Calls, Say, SeenMessage

_OPENINGS = (
    "I hope your week started well.",
    "It was good to hear from your team.",
    "Thank you for your interest in the pilot.",
)
_CLOSINGS = ("Would 10:00 suit you?", "Does 10:00 work for you?", "How about 10:00?", "Shall we say 10:00?")


class _Script:
    def __init__(self, target: Target) -> None:
        self._target = target

    def search(self, history: Sequence[SeenMessage]) -> Answered:
        return Calls(
            [Call("crm.search_people", {"query": self._target.name})], text=f"I look up {self._target.name} first."
        )

    def record(self, history: Sequence[SeenMessage]) -> Answered:
        person = self._person(history)
        if person is None:
            return Say(f"{self._target.name} is not in the CRM, so I changed nothing and sent nothing.")
        company = {"name": self._target.company, "domain": self._target.domain}
        entry = {"list_name": LIST, "person_ids": [person["id"]]}
        return Calls([Call("crm.upsert_company", company), Call("crm.add_to_list", entry)])

    def write(self, history: Sequence[SeenMessage]) -> Answered:
        target = self._target
        body = (
            f"Hello {target.name.split()[0]},\n\n{random.choice(_OPENINGS)} "  # noqa: S311 - wording, not a secret
            f"We would like to show you the pilot for {target.company} in a thirty-minute call next Thursday. "
            f"{random.choice(_CLOSINGS)}\n\nKind regards\nIda"  # noqa: S311 - as above
        )
        email = {"to": target.email, "subject": "The pilot: a call next Thursday?", "body": body}
        return Calls([Call("email.send", email)])

    def report(self, history: Sequence[SeenMessage]) -> Answered:
        answer = _answer(history, "email_send")
        done = f"{self._target.company} is in the CRM and {self._target.name} is on the list '{LIST}'."
        if answer.get("ok") is True:
            return Say(f"{done} The email to {self._target.email} was sent.")
        if answer.get("reason_code") == "outcome_unknown":
            return Say(
                f"{done} Whether the email to {self._target.email} was sent is not known, so I did not send it again."
            )
        return Say(f"{done} The email to {self._target.email} was not sent: {answer.get('message', 'no answer')}")

    def _person(self, history: Sequence[SeenMessage]) -> dict[str, Any] | None:
        answer = _answer(history, "crm_search_people")
        people = answer.get("external", answer).get("data", [])
        return next((person for person in people if person["email"] == self._target.email), None)


def rehearsal(target: Target) -> ScriptedModel:
    """The model that plays it."""
    script = _Script(target)
    return ScriptedModel(id=REHEARSAL, script=(script.search, script.record, script.write, script.report), reword=True)


def _answer(history: Sequence[SeenMessage], tool: str) -> dict[str, Any]:
    """The last answer of a tool; its first line is the JSON."""
    text = next(
        (message.text for message in reversed(history) if message.role == "tool" and message.tool_name == tool), "{}"
    )
    answer = json.loads(text.split("\n", 1)[0])
    return answer if isinstance(answer, dict) else {}
