#!/usr/bin/env python3
"""Computes reference results with PyTorch for parity_test.

usage: reference.py FOLDER

Writes FOLDER/cases.json and FOLDER/data.bin. A case names an op, its attributes, its tensors and what PyTorch made of
them: "y" and, for every floating-point tensor, its gradient "d/<name>" under the loss sum(y * dy). `reduction` is the
longest sum behind any of these numbers; tolerances follow from it and the dtype.
"""

import json
import math
import pathlib
import sys

import torch
import torch.nn.functional as F

from blocks import blocks
from dit import diffusion
from graphs import graphs
from images import images
from schemes import schemes
from unet import unets

DTYPES = {"f32": torch.float32, "f64": torch.float64}


class Writer:
    def __init__(self, folder):
        self.folder, self.cases, self.data = folder, [], bytearray()

    def tensor(self, t):
        t = t.detach().contiguous()
        dtype = {torch.float32: "f32", torch.float64: "f64", torch.int32: "i32", torch.int64: "i32"}[t.dtype]
        raw = (t.to(torch.int32) if dtype == "i32" else t).numpy().tobytes()
        entry = {"dtype": dtype, "shape": list(t.shape), "offset": len(self.data), "bytes": len(raw)}
        self.data += raw
        return entry

    def add(self, name, op, dtype, tensors, expected, reduction, **attributes):
        self.cases.append({"name": f"{name}/{dtype}", "op": op, "dtype": dtype, "attributes": attributes, "reduction": reduction,
                           "tensors": {k: self.tensor(v) for k, v in tensors.items()},
                           "expected": {k: self.tensor(v) for k, v in expected.items()}})

    def finish(self):
        (self.folder / "data.bin").write_bytes(self.data)
        (self.folder / "cases.json").write_text(json.dumps({"torch": torch.__version__, "cases": self.cases}))


def differentiable(writer, name, op, dtype, tensors, function, reduction, **attributes):
    """Runs function(**tensors), pulls a random dy back through it, and records everything."""
    leaves = {k: t.clone().requires_grad_() if t.is_floating_point() else t for k, t in tensors.items()}
    y = function(**leaves)
    dy = torch.randn_like(y) if y.numel() > 1 else torch.ones_like(y)
    wanted = {k: t for k, t in leaves.items() if t.requires_grad}
    gradients = torch.autograd.grad(y, list(wanted.values()), dy)
    expected = {"y": y, **{f"d/{k}": g for k, g in zip(wanted, gradients)}}
    writer.add(name, op, dtype, {**tensors, "dy": dy}, expected, reduction, **attributes)


def norms(writer, dtype):
    t = DTYPES[dtype]
    eps = 1e-5

    def affine(width, **parts):
        make = {"gain": lambda: 1 + 0.5 * torch.randn(width, dtype=t), "bias": lambda: torch.randn(width, dtype=t)}
        return {k: make[k]() for k in parts}

    for shape in ((6, 33), (5, 7, 64), (3, 1)):
        d = shape[-1]
        x = 2 * torch.randn(shape, dtype=t) + 0.5
        label = "x".join(map(str, shape))
        both, gain = affine(d, gain=1, bias=1), affine(d, gain=1)
        # With one channel a centred norm gives its bias and ScaleNorm gives +-g0: no gradient is left to compare.
        if d > 1:
            differentiable(writer, f"layer/{label}", "norm", dtype, {"x": x, **both},
                           lambda x, gain, bias: F.layer_norm(x, (d,), gain, bias, eps), x.numel(), kind="layer", eps=eps)
            differentiable(writer, f"weightless/{label}", "norm", dtype, {"x": x},
                           lambda x: F.layer_norm(x, (d,), None, None, eps), x.numel(), kind="weightless", eps=eps)
            differentiable(writer, f"scale/{label}", "norm", dtype, {"x": x, "g0": torch.full((1,), math.sqrt(d), dtype=t)},
                           lambda x, g0: g0 * x / x.norm(dim=-1, keepdim=True).clamp_min(eps), x.numel(), kind="scale", eps=eps)
        differentiable(writer, f"rms/{label}", "norm", dtype, {"x": x, **gain},
                       lambda x, gain: gain * x * torch.rsqrt(x.square().mean(-1, keepdim=True) + eps), x.numel(), kind="rms", eps=eps)
        k = max(1, int(0.25 * d))
        differentiable(writer, f"prms/{label}", "norm", dtype, {"x": x, **gain},
                       lambda x, gain: gain * x * torch.rsqrt(x[..., :k].square().mean(-1, keepdim=True) + eps), x.numel(),
                       kind="prms", eps=eps, fraction=0.25)
        differentiable(writer, f"dyt/{label}", "norm", dtype, {"x": x, "alpha": torch.full((1,), 0.5, dtype=t), **both},
                       lambda x, alpha, gain, bias: gain * torch.tanh(alpha * x) + bias, x.numel(), kind="dyt", eps=eps)
    x, both = 2 * torch.randn(40, 33, dtype=t) + 0.5, affine(33, gain=1, bias=1)
    mean, var = torch.randn(33, dtype=t), 1 + torch.rand(33, dtype=t)
    running_mean, running_var = mean.clone(), var.clone()
    # The running statistics change at each call; only the first is recorded.
    F.batch_norm(x, running_mean, running_var, both["gain"], both["bias"], True, 0.1, eps)
    differentiable(writer, "batch train", "norm", dtype, {"x": x, **both},
                   lambda x, gain, bias: F.batch_norm(x, None, None, gain, bias, True, 0.1, eps), x.numel(), kind="batch", eps=eps)
    writer.add("batch running statistics", "batch_running", dtype, {"x": x, "mean": mean, "var": var, **both},
               {"mean": running_mean, "var": running_var}, 40, momentum=0.1, eps=eps)
    differentiable(writer, "batch eval", "batch_eval", dtype, {"x": x, **both},
                   lambda x, gain, bias: F.batch_norm(x, mean, var, gain, bias, False, 0.1, eps), x.numel(), eps=eps)
    writer.cases[-1]["tensors"].update(mean=writer.tensor(mean), var=writer.tensor(var))
    x, both = 2 * torch.randn(3, 11, 24, dtype=t) + 0.5, affine(24, gain=1, bias=1)
    differentiable(writer, "instance", "norm", dtype, {"x": x, **both},
                   lambda x, gain, bias: F.instance_norm(x.transpose(1, 2), None, None, gain, bias, True, 0.1, eps).transpose(1, 2),
                   x.numel(), kind="instance", eps=eps)
    for groups in (1, 4, 24):
        differentiable(writer, f"group {groups}", "norm", dtype, {"x": x, **both},
                       lambda x, gain, bias: F.group_norm(x.transpose(1, 2), groups, gain, bias, eps).transpose(1, 2), x.numel(),
                       kind="group", eps=eps, groups=groups)
    differentiable(writer, "sample", "norm", dtype, {"x": x, **both},
                   lambda x, gain, bias: gain * F.layer_norm(x, x.shape[1:], None, None, eps) + bias, x.numel(), kind="sample", eps=eps)
    # Over the nodes of a graph: Cai et al. 2021, Zhao and Akoglu 2020, Yang et al. 2020.
    x = 2 * torch.randn(31, 17, dtype=t) + 0.5
    centred = lambda x, alpha=1: x - alpha * x.mean(0)
    differentiable(writer, "graph norm", "norm", dtype, {"x": x, "alpha": torch.rand(17, dtype=t), **affine(17, gain=1, bias=1)},
                   lambda x, alpha, gain, bias: gain * centred(x, alpha) / (centred(x, alpha).square().mean(0) + eps).sqrt() + bias,
                   x.numel(), kind="graph", eps=eps)
    differentiable(writer, "pair norm", "norm", dtype, {"x": x},
                   lambda x: centred(x) / (centred(x).square().sum(-1).mean() + eps).sqrt(), x.numel(), kind="pair", eps=eps)
    differentiable(writer, "mean norm", "norm", dtype, {"x": x}, centred, x.numel(), kind="mean", eps=eps)


def attend(q, k, v, heads, causal, lengths=None):
    """q[B,T,H*w], k and v[B,S,Hkv*w] with Hkv dividing H."""
    batch, queries, width = q.shape
    head_width = width // heads
    split = lambda x: x.view(batch, x.shape[1], -1, head_width).transpose(1, 2)
    q, k, v = split(q), split(k), split(v)
    k, v = (x.repeat_interleave(heads // x.shape[1], 1) for x in (k, v))
    scores = q @ k.transpose(-1, -2) / math.sqrt(head_width)
    if causal:
        scores = scores.masked_fill(torch.ones(queries, queries, dtype=torch.bool).triu(1), -math.inf)
    if lengths is not None:
        hidden = torch.arange(k.shape[2])[None, :] >= lengths[:, None]
        scores = scores.masked_fill(hidden[:, None, None, :], -math.inf)
    return (scores.softmax(-1) @ v).transpose(1, 2).reshape(batch, queries, width)


def attention(writer, dtype):
    t = DTYPES[dtype]
    for name, batch, queries, keys, heads, kv_heads, width, causal in (
        ("causal", 2, 33, 33, 3, 3, 7, True), ("full", 2, 20, 20, 2, 2, 16, False), ("cross", 2, 5, 37, 2, 2, 8, False),
        ("grouped", 2, 19, 19, 4, 2, 8, True), ("long", 1, 150, 150, 1, 1, 32, True)):
        q = torch.randn(batch, queries, heads * width, dtype=t)
        k, v = (torch.randn(batch, keys, kv_heads * width, dtype=t) for _ in range(2))
        mask = "causal" if causal else "full"
        differentiable(writer, f"attention {name}", "attention", dtype, {"q": q, "k": k, "v": v},
                       lambda q, k, v: attend(q, k, v, heads, causal), keys * width, heads=heads, kv_heads=kv_heads, mask=mask)
    q, k, v = (torch.randn(3, 12, 16, dtype=t) for _ in range(3))
    lengths = torch.tensor([12, 5, 1])
    differentiable(writer, "attention lengths", "attention", dtype, {"q": q, "k": k, "v": v, "lengths": lengths},
                   lambda q, k, v, lengths: attend(q, k, v, 2, False, lengths), 12 * 16, heads=2, kv_heads=2, mask="full")


def losses(writer, dtype):
    t = DTYPES[dtype]
    for smoothing in (0.0, 0.1):
        z, targets = 3 * torch.randn(23, 57, dtype=t), torch.randint(57, (23,))
        targets[::5] = -100
        differentiable(writer, f"cross entropy smoothing {smoothing}", "cross_entropy", dtype, {"z": z, "targets": targets},
                       lambda z, targets: F.cross_entropy(z, targets, label_smoothing=smoothing).reshape(1), 23 * 57, smoothing=smoothing)
        x, w = torch.randn(23, 12, dtype=t), torch.randn(12, 57, dtype=t)
        differentiable(writer, f"linear cross entropy smoothing {smoothing}", "linear_cross_entropy", dtype,
                       {"x": x, "w": w, "targets": targets},
                       lambda x, w, targets: F.cross_entropy(x @ w, targets, label_smoothing=smoothing).reshape(1), 23 * 57,
                       smoothing=smoothing)


ACTIVATIONS = {"none": lambda z: z, "relu": F.relu, "gelu": F.gelu, "gelu_tanh": lambda z: F.gelu(z, approximate="tanh"), "silu": F.silu}


def linears(writer, dtype):
    t = DTYPES[dtype]
    for name, act in ACTIVATIONS.items():
        x, w, b = torch.randn(3, 11, 19, dtype=t), torch.randn(19, 37, dtype=t), torch.randn(37, dtype=t)
        differentiable(writer, f"linear {name}", "linear", dtype, {"x": x, "w": w, "b": b},
                       lambda x, w, b: act(x @ w + b), 33 * 19, activation=name)
    x = torch.randn(5, 26, dtype=t)
    differentiable(writer, "swiglu", "swiglu", dtype, {"x": x}, lambda x: F.silu(x[..., :13]) * x[..., 13:], 26)
    table, ids = torch.randn(17, 9, dtype=t), torch.randint(17, (4, 6))
    differentiable(writer, "embedding", "embedding", dtype, {"table": table, "ids": ids}, lambda table, ids: F.embedding(ids, table), 24)


def decoder(writer, dtype, placement):
    """Two whole layers with embeddings, loss and the gradient of every parameter."""
    t = DTYPES[dtype]
    layers, d, heads, vocabulary, batch, steps = 2, 24, 3, 31, 2, 13
    p = {"embedding.token": torch.randn(vocabulary, d, dtype=t), "embedding.position": torch.randn(steps, d, dtype=t)}
    for layer in range(layers):
        for name, n_in, n_out in (("attn.qkv", d, 3 * d), ("attn.out", d, d), ("ffn.in", d, 4 * d), ("ffn.out", 4 * d, d)):
            p[f"layers.{layer}.{name}.weight"] = torch.randn(n_in, n_out, dtype=t) / math.sqrt(n_in)
            p[f"layers.{layer}.{name}.bias"] = 0.1 * torch.randn(n_out, dtype=t)
    for site in [f"layers.{i}.{branch}.norm1" for i in range(layers) for branch in ("attn", "ffn")] + ["final.norm1"] * (placement == "pre"):
        p[f"{site}.gain"], p[f"{site}.bias"] = 1 + 0.3 * torch.randn(d, dtype=t), 0.3 * torch.randn(d, dtype=t)
    p["head.weight"] = torch.randn(d, vocabulary, dtype=t) / math.sqrt(d)
    tokens, targets = torch.randint(vocabulary, (batch, steps)), torch.randint(vocabulary, (batch, steps))

    def forward(tokens, targets, **p):
        norm = lambda site, x: F.layer_norm(x, (d,), p[f"{site}.gain"], p[f"{site}.bias"], 1e-5)
        dense = lambda site, x: x @ p[f"{site}.weight"] + p[f"{site}.bias"]
        attn = lambda site, x: dense(f"{site}.out", attend(*dense(f"{site}.qkv", x).split(d, -1), heads, True))
        ffn = lambda site, x: dense(f"{site}.out", F.gelu(dense(f"{site}.in", x)))
        x = p["embedding.token"][tokens] + p["embedding.position"]
        for i in range(layers):
            at = f"layers.{i}"
            if placement == "pre":
                x = x + attn(f"{at}.attn", norm(f"{at}.attn.norm1", x))
                x = x + ffn(f"{at}.ffn", norm(f"{at}.ffn.norm1", x))
            else:
                x = norm(f"{at}.attn.norm1", x + attn(f"{at}.attn", x))
                x = norm(f"{at}.ffn.norm1", x + ffn(f"{at}.ffn", x))
        if placement == "pre":
            x = norm("final.norm1", x)
        return F.cross_entropy((x @ p["head.weight"]).flatten(0, 1), targets.flatten()).reshape(1)

    differentiable(writer, f"decoder {placement}", "decoder", dtype, {"tokens": tokens, "targets": targets, **p}, forward,
                   batch * steps * 4 * d, placement=placement, layers=layers, width=d, heads=heads, vocabulary=vocabulary,
                   batch=batch, time=steps)


def encoder_decoder(writer, dtype, placement):
    """torch.nn.TransformerEncoder and -Decoder under our names, with padding in the source."""
    t = DTYPES[dtype]
    d, heads, hidden, vocabulary, sources, batch, steps, source_steps, depths = 24, 3, 40, 31, 19, 3, 11, 7, {"encoder": 3, "decoder": 2}
    p = {"embedding.token": torch.randn(vocabulary, d, dtype=t), "embedding.source": torch.randn(sources, d, dtype=t),
         "embedding.position": torch.randn(steps, d, dtype=t), "embedding.source_position": torch.randn(source_steps, d, dtype=t),
         "head.weight": torch.randn(d, vocabulary, dtype=t) / math.sqrt(d)}
    dense = {"attn.qkv": (d, 3 * d), "attn.out": (d, d), "cross.q": (d, d), "cross.kv": (d, 2 * d), "cross.out": (d, d),
             "ffn.in": (d, hidden), "ffn.out": (hidden, d)}
    branches = {"encoder": ("attn", "ffn"), "decoder": ("attn", "cross", "ffn")}
    for stack, depth in depths.items():
        sites = [f"{stack}.final.norm1"] * (placement == "pre")
        for layer in range(depth):
            at = f"{stack}.layers.{layer}"
            for name, (n_in, n_out) in dense.items():
                if name.split(".")[0] in branches[stack]:
                    p[f"{at}.{name}.weight"] = torch.randn(n_in, n_out, dtype=t) / math.sqrt(n_in)
                    p[f"{at}.{name}.bias"] = 0.1 * torch.randn(n_out, dtype=t)
            sites += [f"{at}.{branch}.norm1" for branch in branches[stack]]
        for site in sites:
            p[f"{site}.gain"], p[f"{site}.bias"] = 1 + 0.3 * torch.randn(d, dtype=t), 0.3 * torch.randn(d, dtype=t)
    tensors = {"tokens": torch.randint(vocabulary, (batch, steps)), "targets": torch.randint(vocabulary, (batch, steps)),
               "source": torch.randint(sources, (batch, source_steps)), "source_lengths": torch.tensor([7, 4, 1])}
    tensors["targets"][1, 5:] = -100
    settings = dict(dim_feedforward=hidden, dropout=0.0, activation=F.gelu, batch_first=True, norm_first=placement == "pre", dtype=t)
    final = lambda: torch.nn.LayerNorm(d, dtype=t) if placement == "pre" else None
    encoder = torch.nn.TransformerEncoder(torch.nn.TransformerEncoderLayer(d, heads, **settings), depths["encoder"], final())
    decoder = torch.nn.TransformerDecoder(torch.nn.TransformerDecoderLayer(d, heads, **settings), depths["decoder"], final())

    def theirs(stack, p):
        """Our parameters under the names and layouts of torch.nn."""
        out = {}
        for layer in range(depths[stack]):
            at, to = f"{stack}.layers.{layer}", f"layers.{layer}"
            move = {"attn.qkv": "self_attn.in_proj_{}", "attn.out": "self_attn.out_proj.{}", "cross.out": "multihead_attn.out_proj.{}",
                    "ffn.in": "linear1.{}", "ffn.out": "linear2.{}"}
            for name, target in move.items():
                if f"{at}.{name}.weight" in p:
                    out[f"{to}.{target.format('weight')}"] = p[f"{at}.{name}.weight"].t()
                    out[f"{to}.{target.format('bias')}"] = p[f"{at}.{name}.bias"]
            if stack == "decoder":
                for kind, axis in (("weight", 1), ("bias", 0)):
                    packed = torch.cat([p[f"{at}.cross.q.{kind}"], p[f"{at}.cross.kv.{kind}"]], axis)
                    out[f"{to}.multihead_attn.in_proj_{kind}"] = packed.t() if kind == "weight" else packed
            for i, branch in enumerate(branches[stack], 1):
                out[f"{to}.norm{i}.weight"], out[f"{to}.norm{i}.bias"] = p[f"{at}.{branch}.norm1.gain"], p[f"{at}.{branch}.norm1.bias"]
        if placement == "pre":
            out["norm.weight"], out["norm.bias"] = p[f"{stack}.final.norm1.gain"], p[f"{stack}.final.norm1.bias"]
        return out

    def forward(tokens, targets, source, source_lengths, **p):
        call = torch.nn.utils.stateless.functional_call
        padding = torch.arange(source_steps)[None, :] >= source_lengths[:, None]
        memory = call(encoder, theirs("encoder", p), (p["embedding.source"][source] + p["embedding.source_position"],),
                      {"src_key_padding_mask": padding})
        later = torch.ones(steps, steps, dtype=torch.bool).triu(1)
        x = call(decoder, theirs("decoder", p), (p["embedding.token"][tokens] + p["embedding.position"], memory),
                 {"tgt_mask": later, "memory_key_padding_mask": padding})
        return F.cross_entropy((x @ p["head.weight"]).flatten(0, 1), targets.flatten()).reshape(1)

    differentiable(writer, f"encoder-decoder {placement}", "encoder_decoder", dtype, {**tensors, **p}, forward, batch * steps * 4 * d,
                   placement=placement, layers=depths["decoder"], encoder_layers=depths["encoder"], width=d, heads=heads, hidden=hidden,
                   vocabulary=vocabulary, source_vocabulary=sources, batch=batch, time=steps, source_time=source_steps)


def optimisers(writer, dtype):
    t = DTYPES[dtype]
    steps = 9  # RAdam rectifies from the sixth on
    common = {"lr": 3e-2, "betas": (0.9, 0.98), "eps": 1e-6, "weight_decay": 0.1}
    kinds = {
        "adamw": (torch.optim.AdamW, common, "decoupled"),
        "adam": (torch.optim.Adam, common, "l2"),
        "radam": (torch.optim.RAdam, common, "l2"),
        "sgd": (torch.optim.SGD, {"lr": 3e-2, "momentum": 0.9, "weight_decay": 0.1}, "l2"),
        "adagrad": (torch.optim.Adagrad, {"lr": 3e-2, "eps": 1e-6, "weight_decay": 0.1}, "l2"),
    }
    for name, (kind, settings, decay) in kinds.items():
        p = torch.randn(101, dtype=t).requires_grad_()
        gradients = torch.randn(steps, 101, dtype=t)
        optimizer = kind([p], **settings)
        start, path = p.detach().clone(), []
        for g in gradients:
            p.grad = g.clone()
            optimizer.step()
            path.append(p.detach().clone())
        writer.add(f"optimiser {name}", "optimiser", dtype, {"p": start, "g": gradients}, {"path": torch.stack(path)}, steps,
                   optimiser=name, lr=settings["lr"], beta1=0.9, beta2=0.98, eps=1e-6, weight_decay=0.1, decay=decay)


def main():
    folder = pathlib.Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    torch.manual_seed(1)
    torch.set_num_threads(1)
    writer = Writer(folder)
    for dtype in DTYPES:
        norms(writer, dtype)
        attention(writer, dtype)
        losses(writer, dtype)
        linears(writer, dtype)
        for placement in ("pre", "post"):
            decoder(writer, dtype, placement)
            encoder_decoder(writer, dtype, placement)
        schemes(writer, dtype, DTYPES[dtype])
        optimisers(writer, dtype)
        images(writer, dtype, differentiable)
        graphs(writer, dtype, differentiable)
        blocks(writer, dtype)
        unets(writer, dtype)
        diffusion(writer, dtype)
    writer.finish()
    print(f"{len(writer.cases)} cases from PyTorch {torch.__version__}")


if __name__ == "__main__":
    main()
