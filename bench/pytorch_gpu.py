#!/usr/bin/env python3
"""What PyTorch does on the same GPU: row norms eager and compiled, and whole training steps.

Prints JSON: {"torch": version, "card": name, "copy_tbps": rate, "results": [{"name", "value", "unit"}, ...]}. Names are
those of `cuda_norms time` and of `norma bench --device cuda`, with "eager", "compiled" or "graph" behind. Rates count
what must be read and written once; statistics and gains are left out, as they are small. Steps are those that a user
would write: autocast to bf16, fused AdamW, GELU by tanh, tied head. --part leaves out the others.
"""

import argparse
import json
import sys
import time

import torch
import torch.nn.functional as F

DEVICE = "cuda"


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
    return sorted(times)[len(times) // 2]


class Results:
    def __init__(self):
        self.rows = []

    def add(self, name, value, unit):
        self.rows.append({"name": name, "value": value, "unit": unit})
        print(f"{name:64s} {value:12.4g} {unit}", file=sys.stderr, flush=True)


def copy_rate():
    x = torch.randn(1 << 29, device=DEVICE)
    y = torch.empty_like(x)
    return 2 * x.numel() * 4 / median_ms(lambda: y.copy_(x)) * 1e-9


def norm_of(x, gain, bias):
    return F.layer_norm(x, (x.shape[-1],), gain, bias)


def add_norm_of(x, branch, gain, bias):
    total = x + branch
    return total, F.layer_norm(total, (x.shape[-1],), gain, bias)


def bench_norms(results, widths, tensor_bytes=1 << 30):
    for dtype, short in ((torch.float32, "f32"), (torch.bfloat16, "bf16")):
        for width in widths:
            rows = tensor_bytes // (width * dtype.itemsize)
            shape = f"{short}/{rows}x{width}"
            x = torch.randn(rows, width, device=DEVICE, dtype=dtype)
            branch = torch.randn_like(x)
            gain = torch.ones(width, device=DEVICE, dtype=dtype)
            bias = torch.zeros_like(gain)
            size = x.numel() * dtype.itemsize
            for how in ("eager", "compiled"):
                torch._dynamo.reset()
                wrap = torch.compile if how == "compiled" else (lambda function: function)
                norm, add_norm = wrap(norm_of), wrap(add_norm_of)
                with torch.no_grad():
                    ms = median_ms(lambda: norm(x, gain, bias))
                    results.add(f"layer/forward/{shape}/{how}", 2 * size / ms * 1e-9, "TB/s")
                    ms = median_ms(lambda: add_norm(x, branch, gain, bias))
                    results.add(f"layer/forward+1/{shape}/{how}", 4 * size / ms * 1e-9, "TB/s")
                inputs = [t.detach().requires_grad_() for t in (x, gain, bias)]
                y = norm(*inputs)
                ms = median_ms(lambda: torch.autograd.grad(y, inputs, branch, retain_graph=True))
                results.add(f"layer/backward/{shape}/{how}", 3 * size / ms * 1e-9, "TB/s")
                del y, inputs
            del x, branch
            torch.cuda.empty_cache()


class Block(torch.nn.Module):
    def __init__(self, width, heads, post, alpha):
        super().__init__()
        self.heads, self.post, self.alpha = heads, post, alpha
        self.norm1, self.norm2 = torch.nn.LayerNorm(width), torch.nn.LayerNorm(width)
        self.qkv, self.out = torch.nn.Linear(width, 3 * width), torch.nn.Linear(width, width)
        self.up, self.down = torch.nn.Linear(width, 4 * width), torch.nn.Linear(4 * width, width)

    def attention(self, x):
        batch, time_steps, width = x.shape
        qkv = self.qkv(x).view(batch, time_steps, 3, self.heads, width // self.heads)
        q, k, v = qkv.permute(2, 0, 3, 1, 4).unbind(0)
        mixed = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        return self.out(mixed.transpose(1, 2).reshape(batch, time_steps, width))

    def feed_forward(self, x):
        return self.down(F.gelu(self.up(x), approximate="tanh"))

    def forward(self, x):
        if self.post:
            x = self.norm1(self.alpha * x + self.attention(x))
            return self.norm2(self.alpha * x + self.feed_forward(x))
        x = x + self.attention(self.norm1(x))
        return x + self.feed_forward(self.norm2(x))


class Decoder(torch.nn.Module):
    def __init__(self, vocabulary, time_steps, layers, width, heads, post=False, alpha=1.0):
        super().__init__()
        self.tokens = torch.nn.Embedding(vocabulary, width)
        self.positions = torch.nn.Embedding(time_steps, width)
        self.blocks = torch.nn.ModuleList(Block(width, heads, post, alpha) for _ in range(layers))
        self.norm = torch.nn.LayerNorm(width)
        for parameter in self.parameters():
            if parameter.dim() > 1:
                torch.nn.init.normal_(parameter, 0, 0.02)

    def forward(self, ids, targets):
        x = self.tokens(ids) + self.positions.weight[: ids.shape[1]]
        for block in self.blocks:
            x = block(x)
        logits = F.linear(self.norm(x), self.tokens.weight)
        return F.cross_entropy(logits.flatten(0, 1), targets.flatten())


def bench_step(results, name, how, batch, vocabulary, time_steps, layers, width, heads, **scheme):
    start = time.time()
    torch._dynamo.reset()
    torch.cuda.reset_peak_memory_stats()
    model = Decoder(vocabulary, time_steps, layers, width, heads, **scheme).to(DEVICE)
    optimiser = torch.optim.AdamW(model.parameters(), 1e-4, fused=True, capturable=how == "graph")
    ids = torch.randint(vocabulary, (batch, time_steps), device=DEVICE)
    targets = torch.randint(vocabulary, (batch, time_steps), device=DEVICE)
    run = torch.compile(model) if how == "compiled" else model

    def step():
        with torch.autocast(DEVICE, torch.bfloat16):
            loss = run(ids, targets)
        loss.backward()
        optimiser.step()
        optimiser.zero_grad(set_to_none=how != "graph")

    work = step
    if how == "graph":
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
        work = graph.replay
    step_ms = median_ms(work, 10, 2)
    results.add(f"gpu step/{name}/tokens/{how}", batch * time_steps / step_ms * 1e3, "tokens/s")
    results.add(f"gpu step/{name}/memory/{how}", torch.cuda.max_memory_allocated() / 2**30, "GiB")
    results.add(f"gpu step/{name}/set-up/{how}", time.time() - start, "s")
    del model, optimiser, run, work
    torch.cuda.empty_cache()


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--part", choices=["norms", "small", "deep", "gpt2"], action="append")
    arguments = parser.parse_args()
    wanted = arguments.part or ["norms", "small", "deep", "gpt2"]
    torch.set_float32_matmul_precision("high")
    results = Results()
    copy = copy_rate()
    print(f"copy {copy:.3f} TB/s", file=sys.stderr)
    if "gpt2" in wanted:
        bench_step(results, "GPT-2 124M T=1024 B=32 bf16", "compiled", 32, 50304, 1024, 12, 768, 12)
    if "small" in wanted:
        bench_step(results, "12 layers d=128 T=128 B=16 bf16", "graph", 16, 256, 128, 12, 128, 4)
    if "deep" in wanted:
        bench_step(results, "1000 layers d=256 T=128 B=32 deepnorm bf16", "graph", 32, 512, 128, 1000, 256, 4,
                   post=True, alpha=2000**0.25)
    if "norms" in wanted:
        bench_norms(results, (256, 1024, 4096, 8192))
    json.dump({"torch": torch.__version__, "card": torch.cuda.get_device_name(), "copy_tbps": copy,
               "results": results.rows}, sys.stdout, indent=1)
    print()


if __name__ == "__main__":
    main()
