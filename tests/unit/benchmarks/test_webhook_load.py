"""What a load sends: of each job an end, of most the same again, some progress and forgeries, in no order and the same each time."""

import json
from collections import Counter
from typing import Any

from benchmarks.webhook_load import Delivery, deliveries

URL = "http://127.0.0.1:4100"
COUNT = 200
JOBS = [f"job-{n}" for n in range(COUNT // 2)]


def told(delivery: Delivery) -> dict[str, Any]:
    body: dict[str, Any] = json.loads(delivery.request.split(b"\r\n\r\n", 1)[1])
    return body


def test_each_job_is_ended_and_others_are_repeated_told_of_on_the_way_or_forged() -> None:
    made = deliveries(URL, COUNT, JOBS)
    believed = [told(delivery) for delivery in made if not delivery.forged]
    ends = Counter(body["name"] for body in believed if body["status"] == "FINISHED")
    assert ends.keys() == {f"agentic:{job}" for job in JOBS}
    assert Counter(ends.values()) == {2: 60, 1: 40}
    assert sum(body["status"] == "IN_PROGRESS" for body in believed) == 20
    assert sum(delivery.forged for delivery in made) == 20


def test_a_request_says_how_long_its_body_is_and_a_forged_one_is_signed_by_somebody_else() -> None:
    made = deliveries(URL, 10, JOBS)
    signatures: dict[bytes, set[bool]] = {}
    for delivery in made:
        head, body = delivery.request.split(b"\r\n\r\n", 1)
        lines = head.split(b"\r\n")
        assert b"Content-Length: %d" % len(body) in lines
        [signature] = [line for line in lines if line.lower().startswith(b"x-signature-sha1: ")]
        signatures.setdefault(signature, set()).add(delivery.forged)
    assert all(len(told_by) == 1 for told_by in signatures.values())


def test_nothing_keeps_its_place_and_the_disorder_is_the_same_each_time() -> None:
    made = deliveries(URL, COUNT, JOBS)
    assert made == deliveries(URL, COUNT, JOBS)
    names = [told(delivery)["name"] for delivery in made]
    assert names != sorted(names, key=lambda name: int(name.rsplit("-", 1)[1]))
    first_ends: dict[str, int] = {}
    for place, delivery in enumerate(made):
        if not delivery.forged and told(delivery)["status"] == "FINISHED":
            first_ends.setdefault(told(delivery)["name"], place)
    overtaken = [
        place
        for place, delivery in enumerate(made)
        if told(delivery)["status"] == "IN_PROGRESS" and first_ends[told(delivery)["name"]] < place
    ]
    assert 0 < len(overtaken) < 20, "some progress comes after its end, and some before"
