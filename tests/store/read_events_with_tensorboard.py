"""Reads event files with TensorBoard itself and prints what it would show; exit status 77 where it is not installed."""
import logging
import sys

try:
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
except ImportError as error:
    print(f"skipped: {error}")
    sys.exit(77)

logging.disable(logging.WARNING)  # a purge is announced as a warning
accumulator = EventAccumulator(sys.argv[1], size_guidance={"scalars": 0, "histograms": 0})
accumulator.Reload()
for tag in sorted(accumulator.Tags()["scalars"]):
    for event in accumulator.Scalars(tag):
        print(tag, event.step, event.value)
for tag in sorted(accumulator.Tags()["histograms"]):
    for event in accumulator.Histograms(tag):
        value = event.histogram_value
        print(tag, event.step, f"min={value.min} max={value.max} num={value.num} sum={value.sum}",
              f"sum_squares={value.sum_squares} filled={[count for count in value.bucket if count]}")
