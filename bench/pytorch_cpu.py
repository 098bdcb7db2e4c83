#!/usr/bin/env python3
"""The shapes of `norma bench`, measured in PyTorch eager on the CPU. Prints JSON; feed it to `norma bench --peer`.

Same method: warm up once, repeat for --seconds, take the best. Rates count the same bytes and operations; --match
leaves out what does not have the text in its name.
Debian's PyTorch calls whatever libblas.so.3 points at; install libopenblas0-pthread for a fair peer.
"""

import argparse
import json
import math
import os
import time

import torch
import torch.nn.functional as F


def best_seconds(work, seconds):
    work()
    best, start, runs = math.inf, time.perf_counter(), 0
    while runs < 5 or time.perf_counter() - start < seconds:
        before = time.perf_counter()
        work()
        best = min(best, time.perf_counter() - before)
        runs += 1
    return best


def layer_norm(x, gain, bias):
    return F.layer_norm(x, (x.shape[-1],), gain, bias)


def rms_norm(x, gain, bias):
    return gain * (x * torch.rsqrt(x.square().mean(-1, keepdim=True) + 1e-5))


class Block(torch.nn.Module):
    """Attention written with the fused projection and batched products, as PyTorch 1.13 offers it in eager mode."""

    def __init__(self, width, heads, placement):
        super().__init__()
        self.heads, self.placement = heads, placement
        self.norm1, self.norm2 = torch.nn.LayerNorm(width), torch.nn.LayerNorm(width)
        self.qkv, self.out = torch.nn.Linear(width, 3 * width), torch.nn.Linear(width, width)
        self.ffn_in, self.ffn_out = torch.nn.Linear(width, 4 * width), torch.nn.Linear(4 * width, width)

    def attention(self, x, mask):
        batch, steps, width = x.shape
        q, k, v = (t.view(batch, steps, self.heads, -1).transpose(1, 2) for t in self.qkv(x).split(width, -1))
        scores = q @ k.transpose(-1, -2) / math.sqrt(width // self.heads) + mask
        return self.out((scores.softmax(-1) @ v).transpose(1, 2).reshape(batch, steps, width))

    def feed_forward(self, x):
        return self.ffn_out(F.gelu(self.ffn_in(x)))

    def forward(self, x, mask):
        if self.placement == "pre":
            x = x + self.attention(self.norm1(x), mask)
            return x + self.feed_forward(self.norm2(x))
        x = self.norm1(x + self.attention(x, mask))
        return self.norm2(x + self.feed_forward(x))


class Decoder(torch.nn.Module):
    def __init__(self, layers, width, heads, vocabulary, steps, placement):
        super().__init__()
        self.tokens = torch.nn.Embedding(vocabulary, width)
        self.positions = torch.nn.Parameter(0.02 * torch.randn(steps, width))
        self.blocks = torch.nn.ModuleList(Block(width, heads, placement) for _ in range(layers))
        self.final = torch.nn.LayerNorm(width) if placement == "pre" else torch.nn.Identity()
        self.head = torch.nn.Linear(width, vocabulary, bias=False)
        self.register_buffer("mask", torch.full((steps, steps), -math.inf).triu(1))

    def forward(self, tokens, targets):
        x = self.tokens(tokens) + self.positions
        for block in self.blocks:
            x = block(x, self.mask)
        return F.cross_entropy(self.head(self.final(x)).flatten(0, 1), targets.flatten())


class ResNet20(torch.nn.Module):
    """He et al. 2015 for images of 32 x 32, with projections where blocks change the shape; channels last, as is fastest."""

    def __init__(self, classes=10):
        super().__init__()

        def conv(n_in, n_out, kernel, stride=1):
            return torch.nn.Sequential(torch.nn.Conv2d(n_in, n_out, kernel, stride, kernel // 2, bias=False),
                                       torch.nn.BatchNorm2d(n_out))

        self.stem, self.blocks, before = conv(3, 16, 3), torch.nn.ModuleList(), 16
        for width in (16, 32, 64):
            for block in range(3):
                stride = 2 if width > 16 and block == 0 else 1
                skip = conv(before, width, 1, stride) if before != width else torch.nn.Identity()
                self.blocks.append(torch.nn.ModuleList([conv(before, width, 3, stride), conv(width, width, 3), skip]))
                before = width
        self.head = torch.nn.Linear(before, classes, bias=False)

    def forward(self, image, targets):
        x = F.relu_(self.stem(image))
        for one, two, skip in self.blocks:
            x = F.relu_(skip(x) + two(F.relu_(one(x))))
        return F.cross_entropy(self.head(x.mean((2, 3))), targets)


class Report:
    """Measures what is wanted and keeps its rate."""

    def __init__(self, seconds, match):
        self.seconds, self.match, self.results = seconds, match, []

    def wants(self, name):
        return self.match in name

    def add(self, name, unit, amount, work):
        if self.wants(name):
            self.keep(name, unit, amount / best_seconds(work, self.seconds))

    def keep(self, name, unit, value):
        self.results.append({"name": name, "unit": unit, "value": value})


def bench_norms(report):
    for rows, width in ((131072, 1024), (4096, 512)):
        if not any(report.wants(f"norm/{name}/{what}/{rows}x{width}") for name in ("layer", "rms")
                   for what in ("forward", "add forward", "backward")):
            continue
        nbytes = 4 * rows * width
        x, f = torch.randn(rows, width), torch.randn(rows, width)
        gain, bias = torch.randn(width, requires_grad=True), torch.randn(width, requires_grad=True)
        for name, norm in (("layer", layer_norm), ("rms", rms_norm)):
            def record(what, tensors, work):
                report.add(f"norm/{name}/{what}/{rows}x{width}", "GB/s", tensors * nbytes * 1e-9, work)

            def forward():
                with torch.no_grad():
                    norm(x, gain, bias)

            def add_forward():
                with torch.no_grad():
                    s = x + f
                    norm(s, gain, bias)

            record("forward", 2, forward)
            record("add forward", 4, add_forward)
            leaf = x.clone().requires_grad_()
            y = norm(leaf, gain, bias)
            dy = torch.randn_like(y)
            wanted = [leaf, gain] + ([bias] if name == "layer" else [])
            record("backward", 3, lambda: torch.autograd.grad(y, wanted, dy, retain_graph=True))


def bench_attention(report):
    for batch, heads, steps, width in ((16, 4, 64, 32), (8, 4, 32, 16), (4, 8, 256, 64)):
        q, k, v = (torch.randn(batch, heads, steps, width, requires_grad=True) for _ in range(3))
        mask = torch.full((steps, steps), -math.inf).triu(1)
        scale = 1 / math.sqrt(width)
        pairs = batch * heads * steps * (steps + 1) / 2
        name = f"B={batch} H={heads} T={steps} dh={width}"

        def attend():
            return ((q @ k.transpose(-1, -2)) * scale + mask).softmax(-1) @ v

        def forward():
            with torch.no_grad():
                attend()

        out = attend()
        dout = torch.randn_like(out)
        backward = lambda: torch.autograd.grad(out, [q, k, v], dout, retain_graph=True)
        for what, flops, work in (("forward", 4, forward), ("backward", 10, backward)):
            report.add(f"attention/{what}/{name}", "GFLOP/s", flops * pairs * width * 1e-9, work)


def bench_steps(report):
    for name, layers, width, heads, batch, steps, placement in (
        ("6 layers d=128 T=64 B=16", 6, 128, 4, 16, 64, "pre"),
        ("6 layers d=128 T=64 B=16 post", 6, 128, 4, 16, 64, "post"),
        ("12 layers d=64 T=32 B=16", 12, 64, 4, 16, 32, "pre"),
        ("100 layers d=64 T=32 B=8", 100, 64, 4, 8, 32, "pre"),
    ):
        if not report.wants(f"step/{name}"):
            continue
        vocabulary = 256
        model = Decoder(layers, width, heads, vocabulary, steps, placement)
        optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4, betas=(0.9, 0.98), eps=1e-9, weight_decay=0.01)
        tokens, targets = (torch.randint(vocabulary, (batch, steps)) for _ in range(2))

        def step():
            optimizer.zero_grad(set_to_none=True)
            model(tokens, targets).backward()
            optimizer.step()

        best = best_seconds(step, 2 * report.seconds)
        weights = layers * 12 * width * width + width * vocabulary
        flops = 6 * (weights + layers * 2 * width * (steps + 1) / 2) * batch * steps
        report.keep(f"step/{name}", "GFLOP/s", flops / best * 1e-9)
        report.keep(f"step/{name}/tokens", "tokens/s", batch * steps / best)


class Convolution(torch.nn.Module):
    """Layers of a graph network over pairs of neighbours, sorted by node, each node with itself."""

    def __init__(self, kind, width, heads=4):
        super().__init__()
        self.kind, self.heads = kind, heads
        self.out = torch.nn.Linear(width, width)
        if kind == "sage":
            self.own = torch.nn.Linear(width, width, bias=False)
        if kind == "gin":
            self.inner, self.eps = torch.nn.Linear(width, width), torch.nn.Parameter(torch.zeros(1))
        if kind == "gat":
            self.query, self.key = (torch.nn.Parameter(0.3 * torch.randn(heads, width // heads)) for _ in range(2))

    def forward(self, x, graph):
        if self.kind == "gcn":
            return self.out(graph["symmetric"](x))
        if self.kind == "sage":
            return self.out((graph["sum"](x) - x) / graph["others"]) + self.own(x)
        if self.kind == "gin":
            return self.out(F.relu(self.inner(self.eps * x + graph["sum"](x))))
        node, other = graph["pairs"]
        h = F.linear(x, self.out.weight).view(len(x), self.heads, -1)
        scores = F.leaky_relu((h * self.query).sum(-1)[node] + (h * self.key).sum(-1)[other], 0.2)
        weights = (scores - scores.detach().max()).exp()
        sums = torch.zeros(len(x), self.heads).index_add(0, node, weights)
        y = torch.zeros_like(h).index_add(0, node, h[other] * weights[..., None])
        return (y / sums[..., None]).reshape(x.shape) + self.out.bias


def neighbour_sums(node, other, nodes):
    """Sums over pairs of neighbours, sorted by node, in the fastest of the ways that PyTorch has for them."""
    degrees = torch.bincount(node, minlength=nodes).float()

    def ways(values):
        rows = torch.cat([torch.zeros(1, dtype=torch.int64), degrees.long().cumsum(0)])
        csr = torch.sparse_csr_tensor(rows, other, values, (nodes, nodes))
        coo = torch.sparse_coo_tensor(torch.stack([node, other]), values, (nodes, nodes)).coalesce()

        def product(matrix):
            class Product(torch.autograd.Function):  # the matrix is its own transpose, which saves PyTorch making one
                @staticmethod
                def forward(context, x):
                    return matrix @ x

                @staticmethod
                def backward(context, dy):
                    return matrix @ dy.contiguous()

            return Product.apply

        return {"csr, own derivative": product(csr), "coo, own derivative": product(coo),
                "coo": lambda x: torch.sparse.mm(coo, x),
                "index_add": lambda x: torch.zeros_like(x).index_add(0, node, x[other] * values[:, None])}

    symmetric, timed = ways((degrees[node] * degrees[other]).rsqrt()), {}
    for name, way in symmetric.items():
        x = torch.randn(nodes, 64, requires_grad=True)
        timed[name] = best_seconds(lambda: torch.autograd.grad(way(x).sum(), x), 0.1)
    best = min(timed, key=timed.get)
    return {"pairs": (node, other), "others": (degrees - 1).clamp_min(1)[:, None], "symmetric": symmetric[best],
            "sum": ways(torch.ones(len(node)))[best], "way": best}


def citation_graph(nodes, edges):
    generator = torch.Generator().manual_seed(1)
    pairs = {(i, i) for i in range(nodes)}
    while len(pairs) < nodes + 2 * edges:
        a, b = torch.randint(nodes, (2,), generator=generator).tolist()
        if a != b:
            pairs |= {(a, b), (b, a)}
    return neighbour_sums(*torch.tensor(sorted(pairs)).T.contiguous(), nodes)


def bench_graphs(report):
    nodes, features, classes, width, layers = 2708, 1433, 7, 64, 32
    names = {kind: f"step/{kind} {layers} layers d={width} Cora's size" for kind in ("gcn", "sage", "gin", "gat")}
    if not any(report.wants(name) for name in names.values()):
        return
    graph = citation_graph(nodes, 5278)
    x = torch.zeros(nodes, features).scatter_(1, torch.randint(features, (nodes, 18)), 1 / 18)
    targets = torch.full((nodes,), -100)
    targets[:140] = torch.arange(140) % classes
    for kind, name in names.items():
        if not report.wants(name):
            continue
        first, head = torch.nn.Linear(features, width), torch.nn.Linear(width, classes, bias=False)
        convolutions = torch.nn.ModuleList(Convolution(kind, width) for _ in range(layers))
        parameters = [p for module in (first, convolutions, head) for p in module.parameters()]
        optimizer = torch.optim.AdamW(parameters, lr=1e-3, weight_decay=0.01)

        def step():
            optimizer.zero_grad(set_to_none=True)
            h = first(x)
            for convolution in convolutions:
                h = F.relu(convolution(h, graph))
            F.cross_entropy(head(h), targets).backward()
            optimizer.step()

        report.keep(f"{name}/steps", "steps/s", 1 / best_seconds(step, 2 * report.seconds))


def bench_images(report):
    name, batch = "step/resnet-20 32x32 B=64", 64
    if not report.wants(name):
        return
    model = ResNet20()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4, betas=(0.9, 0.98), eps=1e-9, weight_decay=0.01)
    flops, image, targets = 0, torch.randn(batch, 3, 32, 32), torch.randint(10, (batch,))
    for module in model.modules():
        if isinstance(module, torch.nn.Conv2d):
            side = {16: 32, 32: 16, 64: 8}[module.out_channels]
            flops += 2 * module.weight.numel() * side * side * batch
    best = math.inf
    for layout in (torch.contiguous_format, torch.channels_last):  # the faster of the two counts
        model, pixels = model.to(memory_format=layout), image.contiguous(memory_format=layout)

        def step():
            optimizer.zero_grad(set_to_none=True)
            model(pixels, targets).backward()
            optimizer.step()

        best = min(best, best_seconds(step, report.seconds))
    report.keep(name, "GFLOP/s", 3 * (flops + 2 * 64 * 10 * batch) / best * 1e-9)
    report.keep(f"{name}/images", "images/s", batch / best)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=0.5, help="time per measurement")
    parser.add_argument("--threads", type=int, default=len(os.sched_getaffinity(0)), help="default: all cores")
    parser.add_argument("--match", default="", help="only what has this text in its name")
    arguments = parser.parse_args()
    torch.set_num_threads(arguments.threads)
    report = Report(arguments.seconds, arguments.match)
    for bench in (bench_norms, bench_attention, bench_graphs, bench_steps, bench_images):
        bench(report)
    print(json.dumps({"torch": torch.__version__, "threads": torch.get_num_threads(), "results": report.results},
                     indent=2))


if __name__ == "__main__":
    main()
