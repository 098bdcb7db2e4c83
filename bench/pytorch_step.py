"""Training steps in PyTorch on a GPU as a user would write them, for the programs beside this file: autocast to bf16, fused
AdamW, eager, compiled or replayed as a CUDA graph."""

import statistics
import sys
import time

import torch


def median_ms(work, runs=15, warm=4):
    for _ in range(warm):
        work()
    torch.cuda.synchronize()
    times = []
    for _ in range(runs):
        begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        begin.record()
        work()
        end.record()
        end.synchronize()
        times.append(begin.elapsed_time(end))
    return statistics.median(times)


class Results:
    """Rows as `norma bench --json` has them, printed to the error output as they come."""

    def __init__(self):
        self.rows, self.failed = [], []

    def fail(self, name, problem):
        """One that fails must not hide the others."""
        first_line = (str(problem) or repr(problem)).splitlines()[0][:200]
        self.failed.append({"name": name, "problem": first_line})
        print(f"{name}: {first_line}", file=sys.stderr, flush=True)

    def add(self, name, value, unit):
        self.rows.append({"name": name, "value": value, "unit": unit})
        print(f"{name:72s} {value:12.4g} {unit}", file=sys.stderr, flush=True)


def captured(step, optimiser):
    """Replays one step, after some that load code and settle what the optimiser keeps."""
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        for _ in range(3):
            step()
    torch.cuda.synchronize()
    optimiser.zero_grad(set_to_none=True)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        step()
    return graph.replay


def compiled(module, blocks=()):
    """The whole, or where blocks are given each of them: code for a thousand layers at once never ends."""
    torch._dynamo.reset()
    if not blocks:
        return torch.compile(module)
    torch._dynamo.config.cache_size_limit = 64
    for block in blocks:
        block.compile()
    return module


def measure_step(results, name, how, *what, **options):
    """How a step of `name` runs this way: eager, compiled or graph, or "blocks compiled, graph" for a module with `blocks`.
    What follows is that of `step_of`."""
    try:
        step_of(results, name, how, *what, **options)
    except Exception as problem:
        results.fail(f"gpu step/{name}/{how}", problem)
    torch.cuda.empty_cache()


def step_of(results, name, how, make, loss_of, batch, things, unit, rate=1e-4, bf16=True):
    """things: what a step consumes, in the given unit."""
    start = time.time()
    torch.cuda.reset_peak_memory_stats()
    model = make()
    as_graph = "graph" in how
    optimiser = torch.optim.AdamW(model.parameters(), rate, fused=True, capturable=as_graph)
    run = model
    if "compiled" in how:
        run = compiled(model, model.blocks if how.startswith("blocks") else ())

    def step():
        with torch.autocast("cuda", torch.bfloat16, enabled=bf16):
            loss = loss_of(run, *batch)
        loss.backward()
        optimiser.step()
        optimiser.zero_grad(set_to_none=not as_graph)

    work = captured(step, optimiser) if as_graph else step
    work()
    torch.cuda.synchronize()
    first = time.time() - start
    step_ms = median_ms(work, 10, 2)
    results.add(f"gpu step/{name}/{unit}/{how}", things / step_ms * 1e3, f"{unit}/s")
    results.add(f"gpu step/{name}/memory/{how}", torch.cuda.max_memory_allocated() / 2**30, "GiB")
    results.add(f"gpu step/{name}/first step/{how}", first, "s")
