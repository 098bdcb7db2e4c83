#!/usr/bin/env python3
"""What PyTorch does on the same GPU: row norms eager and compiled, and whole training steps.

Prints JSON: {"torch": version, "card": name, "copy_tbps": rate, "results": [{"name", "value", "unit"}, ...]}. Names are
those of `cuda_norms time` and of `norma bench --device cuda`, with how it was run behind: the fastest way that was found
for each. Rates count what must be read and written once; statistics and gains are left out, as they are small. Steps are
those that a user would write: autocast to bf16, fused AdamW, GELU by tanh, tied head. --part leaves out the others.
"""

import argparse
import json
import sys

import torch
import torch.nn.functional as F

from pytorch_step import Results, measure_step, median_ms

DEVICE = "cuda"
PARTS = ["gpt2", "small", "members", "deep", "norms"]


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
    def __init__(self, width, heads, post, alpha, fused):
        super().__init__()
        self.heads, self.post, self.alpha, self.fused = heads, post, alpha, fused
        self.norm1, self.norm2 = torch.nn.LayerNorm(width), torch.nn.LayerNorm(width)
        self.qkv, self.out = torch.nn.Linear(width, 3 * width), torch.nn.Linear(width, width)
        self.up, self.down = torch.nn.Linear(width, 4 * width), torch.nn.Linear(4 * width, width)

    def attention(self, x):
        batch, time_steps, width = x.shape
        qkv = self.qkv(x).view(batch, time_steps, 3, self.heads, width // self.heads)
        q, k, v = qkv.permute(2, 0, 3, 1, 4).unbind(0)
        if self.fused:
            mixed = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        else:  # vmap has no batching rule for the fused kernel
            scores = (q @ k.transpose(-1, -2)) * (width // self.heads) ** -0.5
            later = torch.ones(time_steps, time_steps, dtype=torch.bool, device=x.device).triu(1)
            mixed = scores.masked_fill(later, float("-inf")).softmax(-1).to(v.dtype) @ v
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
    def __init__(self, vocabulary, time_steps, layers, width, heads, post=False, alpha=1.0, fused=True):
        super().__init__()
        self.tokens = torch.nn.Embedding(vocabulary, width)
        self.positions = torch.nn.Embedding(time_steps, width)
        self.blocks = torch.nn.ModuleList(Block(width, heads, post, alpha, fused) for _ in range(layers))
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
    ids = torch.randint(vocabulary, (batch, time_steps), device=DEVICE)
    targets = torch.randint(vocabulary, (batch, time_steps), device=DEVICE)
    measure_step(results, name, how,
                 lambda: Decoder(vocabulary, time_steps, layers, width, heads, **scheme).to(DEVICE),
                 lambda model, *given: model(*given), (ids, targets), batch * time_steps, "tokens")


class Members(torch.nn.Module):
    """Several decoders as one program: their weights stacked, one of them mapped over the stacks."""

    def __init__(self, members, make):
        super().__init__()
        models = [make() for _ in range(members)]
        weights, _ = torch.func.stack_module_state(models)
        self.names = list(weights)
        self.weights = torch.nn.ParameterList(weights[name].detach() for name in self.names)
        self.one = [models[0].to("meta")]  # in a list, so that its parameters are not this module's

    def forward(self, ids, targets):
        def loss(weights):
            return torch.func.functional_call(self.one[0], weights, (ids, targets))

        return torch.func.vmap(loss)(dict(zip(self.names, self.weights))).sum()


def bench_members(results, name, members, batch, vocabulary, time_steps, layers, width, heads):
    ids = torch.randint(vocabulary, (batch, time_steps), device=DEVICE)
    targets = torch.randint(vocabulary, (batch, time_steps), device=DEVICE)
    make = lambda: Decoder(vocabulary, time_steps, layers, width, heads, fused=False).to(DEVICE)
    measure_step(results, name, "vmap compiled", lambda: Members(members, make), lambda model, *given: model(*given),
                 (ids, targets), members * batch * time_steps, "tokens")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--part", choices=PARTS, action="append")
    arguments = parser.parse_args()
    wanted = arguments.part or PARTS
    torch.set_float32_matmul_precision("high")
    results = Results()
    copy = copy_rate()
    print(f"copy {copy:.3f} TB/s", file=sys.stderr)
    if "gpt2" in wanted:
        bench_step(results, "GPT-2 124M T=1024 B=32 bf16", "compiled", 32, 50304, 1024, 12, 768, 12)
    if "small" in wanted:
        bench_step(results, "12 layers d=128 T=128 B=16 bf16", "graph", 16, 256, 128, 12, 128, 4)
    if "members" in wanted:
        bench_members(results, "12 layers d=128 T=128 B=16 x64 bf16", 64, 16, 256, 128, 12, 128, 4)
    if "deep" in wanted:
        bench_step(results, "1000 layers d=256 T=128 B=32 deepnorm bf16", "blocks compiled, graph", 32, 512, 128, 1000,
                   256, 4, post=True, alpha=2000**0.25)
    if "norms" in wanted:
        bench_norms(results, (256, 1024, 4096, 8192))
    json.dump({"torch": torch.__version__, "card": torch.cuda.get_device_name(), "copy_tbps": copy,
               "failed": results.failed, "results": results.rows}, sys.stdout, indent=1)
    print()


if __name__ == "__main__":
    main()
