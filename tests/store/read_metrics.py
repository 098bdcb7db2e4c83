"""Reads metrics.jsonl with Python's own json and prints each record."""
import json
import sys

sys.stdout.reconfigure(encoding="utf-8")
with open(sys.argv[1], encoding="utf-8") as file:
    for line in file:
        print(*(f"{key}={value!r}" for key, value in json.loads(line).items()))
