"""compare_events_with_metrics.py RUN: every point that TensorBoard shows of a run against its metrics.jsonl.

Exit status 1 when one differs or is missing, 77 where TensorBoard is not installed.
"""
import json
import logging
import math
import os
import struct
import sys

try:
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
except ImportError as error:
    print(f"skipped: {error}")
    sys.exit(77)


def single(value):
    """As the event file stores it."""
    try:
        return struct.unpack("f", struct.pack("f", value))[0]
    except OverflowError:
        return math.copysign(math.inf, value)


def same(a, b):
    return a == b or (math.isnan(a) and math.isnan(b))


run = sys.argv[1]
expected = {}
with open(os.path.join(run, "metrics.jsonl"), encoding="utf-8") as lines:
    for line in lines:
        record = json.loads(line)
        step, member = record.pop("step"), record.pop("member", None)
        prefix = "" if member is None else f"member {member}/"
        for name, value in record.items():
            if isinstance(value, (int, float)) and not isinstance(value, bool):
                expected.setdefault(prefix + name, {})[step] = single(value)

logging.disable(logging.WARNING)  # a purge is announced as a warning
accumulator = EventAccumulator(run, size_guidance={"scalars": 0})
accumulator.Reload()
shown = {tag: {event.step: event.value for event in accumulator.Scalars(tag)} for tag in accumulator.Tags()["scalars"]}
points = sum(len(steps) for steps in expected.values())
wrong = [(tag, step) for tag in expected.keys() | shown.keys()
         for step in expected.get(tag, {}).keys() | shown.get(tag, {}).keys()
         if step not in expected.get(tag, {}) or step not in shown.get(tag, {})
         or not same(expected[tag][step], shown[tag][step])]
print(f"{points} points in {len(expected)} tags, {len(wrong)} differ", *wrong[:5])
sys.exit(1 if wrong else 0)
