#!/usr/bin/env python3
"""Drives `norma check` and compares logits, loss and every gradient with PyTorch models written from the papers.

usage: check_models.py NORMA FOLDER. Exits with 77 where there is no torch. Everything in double precision.
"""

import json
import math
import pathlib
import struct
import subprocess
import sys

try:
    import torch
    import torch.nn.functional as F
except ImportError:
    print("skipped: no torch")
    sys.exit(77)

DTYPES = {"F64": torch.float64, "F32": torch.float32, "I32": torch.int32}


def read_safetensors(path):
    raw = path.read_bytes()
    (length,) = struct.unpack("<Q", raw[:8])
    header = json.loads(raw[8:8 + length])
    tensors = {}
    for name, entry in header.items():
        if name == "__metadata__":
            continue
        begin, end = entry["data_offsets"]
        data = bytearray(raw[8 + length + begin:8 + length + end])
        tensors[name] = torch.frombuffer(data, dtype=DTYPES[entry["dtype"]]).reshape(entry["shape"]).clone()
    return tensors


def write_safetensors(path, tensors):
    names = {torch.float64: "F64", torch.float32: "F32", torch.int32: "I32"}
    header, data = {}, b""
    for name, tensor in tensors.items():
        raw = tensor.detach().contiguous().numpy().tobytes()
        header[name] = {"dtype": names[tensor.dtype], "shape": list(tensor.shape), "data_offsets": [len(data), len(data) + len(raw)]}
        data += raw
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    path.write_bytes(struct.pack("<Q", len(text)) + text + data)


class Model:
    """A transformer over a dictionary of parameters under norma's names. Weights are [in, out]."""

    def __init__(self, p, scheme, heads, depths):
        self.p, self.scheme, self.heads, self.depths = p, scheme, heads, depths

    def norm(self, name, x):
        return F.layer_norm(x, x.shape[-1:], self.p[name + ".gain"], self.p[name + ".bias"], 1e-5)

    def linear(self, name, x):
        return x @ self.p[name + ".weight"] + self.p[name + ".bias"]

    def attend(self, q, k, v, hidden):
        split = lambda t: t.reshape(t.shape[0], t.shape[1], self.heads, -1).transpose(1, 2)
        q, k, v = split(q), split(k), split(v)
        scores = (q @ k.transpose(-1, -2) / math.sqrt(q.shape[-1])).masked_fill(hidden, -math.inf)
        out = (scores.softmax(-1) @ v).transpose(1, 2)
        return out.reshape(out.shape[0], out.shape[1], -1)

    def self_attention(self, name, x, hidden):
        q, k, v = self.linear(name + ".qkv", x).chunk(3, -1)
        return self.linear(name + ".out", self.attend(q, k, v, hidden))

    def cross_attention(self, name, x, memory, hidden):
        k, v = self.linear(name + ".kv", memory).chunk(2, -1)
        return self.linear(name + ".out", self.attend(self.linear(name + ".q", x), k, v, hidden))

    def feed_forward(self, name, x):
        return self.linear(name + ".out", F.gelu(self.linear(name + ".in", x)))

    def alpha(self, stack):
        n, m = self.depths.get("encoder", 0), self.depths.get("decoder", self.depths.get("", 0))
        if stack == "encoder.":
            return 0.81 * (n**4 * m) ** (1 / 16)
        return (3 * m) ** 0.25 if stack == "decoder." else (2 * m) ** 0.25

    def sublayer(self, stack, layer, name, x, r, f):
        """One residual sublayer: the new stream and, for ResiDual, the second stream."""
        norm = lambda k, t: self.norm(f"{name}.norm{k}", t)
        if self.scheme == "post":
            return norm(1, x + f(x)), r
        if self.scheme == "pre":
            return x + f(norm(1, x)), r
        if self.scheme == "peri":  # the outer norm is written first
            return x + norm(1, f(norm(2, x))), r
        if self.scheme == "deepnorm":
            return norm(1, self.alpha(stack) * x + f(x)), r
        if self.scheme == "rezero":
            return x + self.p[f"{stack}layers.{layer}.g"] * f(x), r
        if self.scheme == "residual":
            y = f(x)
            return norm(1, x + y), r + y
        raise ValueError(self.scheme)

    def stack(self, stack, layers, x, hidden, memory=None, memory_hidden=None):
        r = x
        for layer in range(layers):
            at = f"{stack}layers.{layer}."
            x, r = self.sublayer(stack, layer, at + "attn", x, r, lambda u: self.self_attention(at + "attn", u, hidden))
            if memory is not None:
                x, r = self.sublayer(stack, layer, at + "cross", x, r,
                                     lambda u: self.cross_attention(at + "cross", u, memory, memory_hidden))
            x, r = self.sublayer(stack, layer, at + "ffn", x, r, lambda u: self.feed_forward(at + "ffn", u))
        if self.scheme in ("pre", "peri"):
            return self.norm(stack + "final.norm1", x)
        return x + self.norm(stack + "final.norm1", r) if self.scheme == "residual" else x


def causal(time):
    return torch.ones(time, time, dtype=torch.bool).triu(1)


def forward(p, ids, scheme, heads, depths):
    model = Model(p, scheme, heads, depths)
    embed = lambda kind, tokens: p[f"embedding.{kind}"][tokens] + p["embedding.position" if kind == "token" else "embedding.source_position"][:tokens.shape[1]]
    tokens = ids["tokens"].long()
    if "source" not in ids:
        x = model.stack("", depths[""], embed("token", tokens), causal(tokens.shape[1]))
    else:
        source = ids["source"].long()
        padding = torch.arange(source.shape[1])[None, :] >= ids["source_lengths"].long()[:, None]
        padding = padding[:, None, None, :]
        memory = model.stack("encoder.", depths["encoder"], embed("source", source), padding)
        x = model.stack("decoder.", depths["decoder"], embed("token", tokens), causal(tokens.shape[1]), memory, padding)
    logits = x @ p["head.weight"]
    return logits, F.cross_entropy(logits.flatten(0, 1), ids["targets"].long().flatten(), ignore_index=-100)


def run(norma, *arguments):
    done = subprocess.run([norma, "check", *map(str, arguments)], capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f"norma check {arguments} exited with {done.returncode}: {done.stderr}")


def compare(norma, folder, family, scheme):
    torch.manual_seed(1)
    batch, time, source_time, vocabulary, sources, heads = 3, 9, 7, 23, 19, 3
    ids = {"tokens": torch.randint(vocabulary, (batch, time), dtype=torch.int32),
           "targets": torch.randint(vocabulary, (batch, time), dtype=torch.int32)}
    ids["targets"][1, 3] = -100
    settings = [f"--model.scheme={scheme}", f"--model.family={family}", "--model.layers=2", "--model.width=24", f"--model.heads={heads}",
                f"--model.vocabulary={vocabulary}", "--model.dtype=f64"]
    depths = {"": 2}
    if family == "encoder_decoder":
        ids["source"] = torch.randint(sources, (batch, source_time), dtype=torch.int32)
        ids["source_lengths"] = torch.tensor([7, 3, 5], dtype=torch.int32)
        settings += ["--model.encoder_layers=3", f"--model.source_vocabulary={sources}"]
        depths = {"encoder": 3, "decoder": 2}
    tokens, weights, out = (folder / f"{name}.safetensors" for name in ("tokens", "weights", "out"))
    write_safetensors(tokens, ids)
    run(norma, *settings, "--tokens", tokens, "--out", out)
    # Nowhere special: gains, biases and learned scalars move off 0 and 1.
    start = {name[len("weight."):]: t for name, t in read_safetensors(out).items() if name.startswith("weight.")}
    p = {name: (t + 0.2 * torch.randn_like(t)).requires_grad_() for name, t in start.items()}
    write_safetensors(weights, p)
    run(norma, *settings, "--tokens", tokens, "--weights", weights, "--out", out)
    ours = read_safetensors(out)
    logits, loss = forward(p, ids, scheme, heads, depths)
    loss.backward()
    expected = {"logits": logits.detach(), "loss": loss.detach().reshape(1)}
    for name, tensor in p.items():
        assert tensor.grad is not None, f"{family} {scheme}: {name} has no gradient in the PyTorch model"
        expected["gradient." + name] = tensor.grad
    missing = {name for name in ours if name.startswith("gradient.")} ^ {n for n in expected if n.startswith("gradient.")}
    assert not missing, f"{family} {scheme}: only one side has {missing}"
    worst = 0
    for name, theirs in expected.items():
        error = (ours[name] - theirs).abs().max().item() / max(1e-3, theirs.abs().max().item())
        worst = max(worst, error)
        if not error < 1e-10:
            sys.exit(f"{family} {scheme}: '{name}' differs by {error:.3g} of its largest element")
    print(f"{family:<16} {scheme:<10} {len(expected)} tensors agree to {worst:.1e}")


def main():
    norma, folder = sys.argv[1], pathlib.Path(sys.argv[2])
    folder.mkdir(parents=True, exist_ok=True)
    for family in ("decoder", "encoder_decoder"):
        for scheme in ("post", "pre", "deepnorm", "peri", "rezero", "residual"):
            compare(norma, folder, family, scheme)


if __name__ == "__main__":
    main()
