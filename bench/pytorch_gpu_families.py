#!/usr/bin/env python3
"""Training steps of image, diffusion and graph models in PyTorch on the GPU that norma is measured on.

Prints JSON as bench/pytorch_gpu.py does, with the names of `norma bench --device cuda` and behind them eager, compiled or
graph; --match chooses rows and --how ways. bf16 autocast, fused AdamW, channels last for convolutions; graphs in TF32.
--check needs no GPU: builds every model, takes one small step and prints its number of parameters.
"""

import argparse
import json
import math
import sys

import torch
import torch.nn.functional as F
from torch import nn

from pytorch_step import Results, measure_step


def plain_attention(q, k, v):
    return (q @ k.transpose(-1, -2) * q.shape[-1] ** -0.5).softmax(-1) @ v


attention = getattr(F, "scaled_dot_product_attention", plain_attention)  # older than 2.0: --check alone


def time_features(t, width):
    rates = torch.exp(torch.arange(width // 2, device=t.device) * (-math.log(1e4) / (width // 2)))
    angles = t[:, None] * rates
    return torch.cat([angles.cos(), angles.sin()], -1)


def conv(inside, outside, size=3, stride=1, bias=True):
    return nn.Conv2d(inside, outside, size, stride, size // 2, bias=bias)


class ResNetBlock(nn.Module):
    """Two convolutions; He et al. 2015 ("post": relu(x + f(x))) or 2016 ("pre": x + f(x), norms and relus first)."""

    def __init__(self, inside, outside, stride, place):
        super().__init__()
        self.pre = place == "pre"
        self.norms = nn.ModuleList([nn.BatchNorm2d(inside if self.pre else outside), nn.BatchNorm2d(outside)])
        self.convs = nn.ModuleList([conv(inside, outside, 3, stride, False), conv(outside, outside, 3, 1, False)])
        same = inside == outside and stride == 1
        self.skip = nn.Identity() if same else conv(inside, outside, 1, stride, False)

    def forward(self, x):
        h = x
        if self.pre:
            for norm, convolve in zip(self.norms, self.convs):
                h = convolve(F.relu(norm(h)))
            return self.skip(x) + h
        h = F.relu(self.norms[0](self.convs[0](h)))
        return F.relu(self.skip(x) + self.norms[1](self.convs[1](h)))


class ResNet(nn.Module):
    def __init__(self, blocks, widths, place="post", classes=10):
        super().__init__()
        parts = [conv(3, widths[0], bias=False), nn.BatchNorm2d(widths[0]), nn.ReLU()]
        width = widths[0]
        for stage, outside in enumerate(widths):
            for block in range(blocks):
                parts.append(ResNetBlock(width, outside, 2 if stage > 0 and block == 0 else 1, place))
                width = outside
        self.body, self.head = nn.Sequential(*parts), nn.Linear(width, classes)

    def forward(self, x):
        return self.head(self.body(x).mean((2, 3)))


class TransformerBlock(nn.Module):
    """Pre-LN; with a condition adaLN-Zero (Peebles, Xie 2023)."""

    def __init__(self, width, heads, conditioned):
        super().__init__()
        self.heads, self.approximate = heads, "tanh" if conditioned else "none"
        self.norms = nn.ModuleList(nn.LayerNorm(width, elementwise_affine=not conditioned) for _ in range(2))
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)
        self.condition = nn.Linear(width, 6 * width) if conditioned else None

    def attend(self, x):
        batch, tokens, width = x.shape
        q, k, v = self.qkv(x).view(batch, tokens, 3, self.heads, -1).permute(2, 0, 3, 1, 4).unbind(0)
        return self.out(attention(q, k, v).transpose(1, 2).reshape(batch, tokens, width))

    def feed_forward(self, x):
        return self.down(F.gelu(self.up(x), approximate=self.approximate))

    def forward(self, x, condition):
        if self.condition is None:
            x = x + self.attend(self.norms[0](x))
            return x + self.feed_forward(self.norms[1](x))
        given = self.condition(F.silu(condition))[:, None].chunk(6, -1)
        for norm, branch, (shift, scale, gate) in zip(self.norms, (self.attend, self.feed_forward),
                                                      (given[:3], given[3:])):
            x = x + gate * branch(norm(x) * (1 + scale) + shift)
        return x


class PatchTransformer(nn.Module):
    """A ViT that averages its tokens, or a DiT where there are no classes."""

    def __init__(self, width, layers, heads, classes=0, size=32, patch=4, times=256):
        super().__init__()
        self.patch, self.times, denoises = patch, times, classes == 0
        self.patches = nn.Conv2d(3, width, patch, patch)
        self.places = nn.Parameter(torch.randn(1, (size // patch) ** 2, width) * 0.02)
        self.blocks = nn.ModuleList(TransformerBlock(width, heads, denoises) for _ in range(layers))
        self.norm = nn.LayerNorm(width)
        self.head = nn.Linear(width, 3 * patch * patch if denoises else classes)
        self.time = nn.Sequential(nn.Linear(times, width), nn.SiLU(), nn.Linear(width, width)) if denoises else None

    def forward(self, x, t=None):
        condition = None if t is None else self.time(time_features(t, self.times))
        h = self.patches(x).flatten(2).transpose(1, 2) + self.places
        for block in self.blocks:
            h = block(h, condition)
        h = self.norm(h)
        if condition is None:
            return self.head(h.mean(1))
        return F.fold(self.head(h).transpose(1, 2), x.shape[2:], self.patch, stride=self.patch)


class UNetBlock(nn.Module):
    def __init__(self, inside, outside, times, attends):
        super().__init__()
        self.norms = nn.ModuleList([nn.GroupNorm(32, inside), nn.GroupNorm(32, outside)])
        self.convs = nn.ModuleList([conv(inside, outside), conv(outside, outside)])
        self.time = nn.Linear(times, outside)
        self.skip = nn.Identity() if inside == outside else conv(inside, outside, 1)
        self.attends = attends
        if attends:
            self.norm, self.qkv, self.out = nn.GroupNorm(32, outside), conv(outside, 3 * outside, 1), conv(outside, outside, 1)

    def forward(self, x, time):
        h = self.convs[0](F.silu(self.norms[0](x))) + self.time(F.silu(time))[:, :, None, None]
        h = self.skip(x) + self.convs[1](F.silu(self.norms[1](h)))
        if not self.attends:
            return h
        batch, channels, rows, columns = h.shape
        q, k, v = self.qkv(self.norm(h)).view(batch, 3, 1, channels, rows * columns).transpose(3, 4).unbind(1)
        return h + self.out(attention(q, k, v).transpose(2, 3).reshape(h.shape))


class UNet(nn.Module):
    """The network of DDPM (Ho et al. 2020), with attention on the second level and in the middle."""

    def __init__(self, base=64, factors=(1, 2, 2, 2), blocks=2):
        super().__init__()
        times, width = 4 * base, base
        self.base = base
        self.time = nn.Sequential(nn.Linear(base, times), nn.SiLU(), nn.Linear(times, times))
        self.stem = conv(3, base)
        self.down, self.up, kept = nn.ModuleList(), nn.ModuleList(), [base]
        for level, factor in enumerate(factors):
            for _ in range(blocks):
                self.down.append(UNetBlock(width, base * factor, times, level == 1))
                width = base * factor
                kept.append(width)
            if level + 1 < len(factors):
                self.down.append(conv(width, width, 3, 2))
                kept.append(width)
        self.middle = nn.ModuleList(UNetBlock(width, width, times, attends) for attends in (True, False))
        for level in reversed(range(len(factors))):
            for _ in range(blocks + 1):
                self.up.append(UNetBlock(width + kept.pop(), base * factors[level], times, level == 1))
                width = base * factors[level]
            if level > 0:
                self.up.append(conv(width, width))
        self.norm, self.head = nn.GroupNorm(32, width), conv(width, 3)

    def forward(self, x, t):
        time = self.time(time_features(t, self.base))
        h = self.stem(x)
        kept = [h]
        for part in self.down:
            h = part(h, time) if isinstance(part, UNetBlock) else part(h)
            kept.append(h)
        for block in self.middle:
            h = block(h, time)
        for part in self.up:
            if isinstance(part, UNetBlock):
                h = part(torch.cat([h, kept.pop()], 1), time)
            else:
                h = part(F.interpolate(h, scale_factor=2))
        return self.head(F.silu(self.norm(h)))


class GCN(nn.Module):
    """h + A (relu(norm(h)) W + b), the sum over neighbours as a product with a sparse matrix."""

    def __init__(self, adjacency, features=1433, width=64, layers=32, classes=7):
        super().__init__()
        self.adjacency = adjacency
        self.first, self.last = nn.Linear(features, width), nn.Linear(width, classes)
        self.layers = nn.ModuleList(nn.Linear(width, width) for _ in range(layers))
        self.norms = nn.ModuleList(nn.LayerNorm(width) for _ in range(layers))

    def forward(self, x):
        h = self.first(x)
        for layer, norm in zip(self.layers, self.norms):
            h = h + torch.sparse.mm(self.adjacency, layer(F.relu(norm(h))))
        return self.last(h)


def adjacency_of(nodes, links, device):
    """Random edges and a loop for every node, weights by degree."""
    edges = torch.randint(nodes, (2, links), generator=torch.Generator().manual_seed(1))
    source, target = torch.cat([edges, torch.arange(nodes).repeat(2, 1)], 1)
    degree = torch.bincount(target, minlength=nodes).float()
    weights = (degree[source] * degree[target]).rsqrt()
    matrix = torch.sparse_coo_tensor(torch.stack([target, source]), weights, (nodes, nodes)).coalesce()
    return matrix.to_sparse_csr().to(device)


class Row:
    def __init__(self, name, unit, make, batch, loss, things, graph=False):
        self.name, self.unit, self.make, self.batch, self.loss = name, unit, make, batch, loss
        self.things, self.graph = things, graph


def rows_on(device, small=False):
    last = {"memory_format": torch.channels_last}

    def images(count):
        x = torch.randn(count, 3, 32, 32, device=device).to(**last)
        return x, torch.randint(10, (count,), device=device)

    def noisy(count):
        x, _ = images(count)
        return x, torch.rand(count, device=device) * 1000, torch.randn_like(x)

    def classify(model, x, classes):
        return F.cross_entropy(model(x), classes)

    def denoise(model, x, t, noise):
        return F.mse_loss(model(x, t), noise)

    def image_row(name, count, make, batch, loss, form=last):
        count = 2 if small else count
        return Row(name, "images", lambda: make().to(device, **form), lambda: batch(count), loss, count)

    nodes, links, features = (50, 100, 1433) if small else (2708, 10556, 1433)
    return [
        image_row("ResNet-18 32x32 B=256 bf16", 256, lambda: ResNet(2, (64, 128, 256, 512)), images, classify),
        image_row("ResNet-20 32x32 B=128 bf16", 128, lambda: ResNet(3, (16, 32, 64)), images, classify),
        image_row("ResNet-110 pre 32x32 B=128 bf16", 128, lambda: ResNet(18, (16, 32, 64), "pre"), images, classify),
        image_row("ViT d=192 L=12 p=4 32x32 B=256 bf16", 256, lambda: PatchTransformer(192, 12, 3, classes=10), images,
                  classify, {}),
        image_row("DiT d=384 L=12 p=4 32x32 B=256 bf16", 256, lambda: PatchTransformer(384, 12, 6), noisy, denoise, {}),
        image_row("U-Net base 64 32x32 B=128 bf16", 128, UNet, noisy, denoise),
        Row("GCN d=64 L=32 of Cora's size tf32", "nodes", lambda: GCN(adjacency_of(nodes, links, device)).to(device),
            lambda: (torch.rand(nodes, features, device=device), torch.randint(7, (nodes,), device=device)), classify,
            nodes, graph=True),
    ]


def check():
    for row in rows_on("cpu", small=True):
        model = row.make()
        row.loss(model, *row.batch()).backward()
        without = [name for name, p in model.named_parameters() if p.grad is None]
        if without:
            sys.exit(f"{row.name}: no gradient reaches {', '.join(without)}")
        print(f"{row.name:40s} {sum(p.numel() for p in model.parameters()):12,d} parameters")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--match", default="", help="text in the name of what is measured")
    parser.add_argument("--how", choices=["eager", "graph", "compiled"], action="append")
    parser.add_argument("--check", action="store_true")
    arguments = parser.parse_args()
    if arguments.check:
        return check()
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = True
    torch.backends.cudnn.benchmark = True
    results = Results()
    for row in rows_on("cuda"):
        if arguments.match in row.name:
            for how in arguments.how or ["eager", "graph", "compiled"]:
                measure_step(results, row.name, how, row.make, row.loss, row.batch(), row.things, row.unit, rate=1e-3,
                             bf16=not row.graph)
    json.dump({"torch": torch.__version__, "card": torch.cuda.get_device_name(), "failed": results.failed,
               "results": results.rows}, sys.stdout, indent=1)
    print()


if __name__ == "__main__":
    main()
