#!/usr/bin/env python3
"""The run of examples/runs/shakespeare.toml in PyTorch eager: 12 layers, d=64, T=32, B=16, Adam (0.9, 0.98), bytes.

usage: pytorch_train.py TEXT [--scheme pre|post|deepnorm] [--lr 3e-3] [--warmup 0] [--steps 300] [--seed 1]
Prints JSON: loss (mean of the last 20 steps) and tokens per second of whole steps, the first ten left out.
"""

import argparse
import json
import math
import time

import torch
import torch.nn.functional as F

LAYERS, WIDTH, HEADS, TIME, BATCH, VOCABULARY = 12, 64, 4, 32, 16, 256


class Block(torch.nn.Module):
    def __init__(self, scheme):
        super().__init__()
        self.scheme = scheme
        self.alpha = (2 * LAYERS) ** 0.25 if scheme == "deepnorm" else 1
        self.norm1, self.norm2 = torch.nn.LayerNorm(WIDTH), torch.nn.LayerNorm(WIDTH)
        self.qkv, self.out = torch.nn.Linear(WIDTH, 3 * WIDTH), torch.nn.Linear(WIDTH, WIDTH)
        self.ffn_in, self.ffn_out = torch.nn.Linear(WIDTH, 4 * WIDTH), torch.nn.Linear(4 * WIDTH, WIDTH)
        beta = (8 * LAYERS) ** -0.25 if scheme == "deepnorm" else 1
        for part, gain in zip(self.qkv.weight.chunk(3), (1, 1, beta)):  # chunks are views of the weight
            torch.nn.init.xavier_normal_(part.data, gain)
        for layer in (self.out, self.ffn_in, self.ffn_out):
            torch.nn.init.xavier_normal_(layer.weight, beta)
        for layer in (self.qkv, self.out, self.ffn_in, self.ffn_out):
            torch.nn.init.zeros_(layer.bias)

    def attention(self, x, mask):
        q, k, v = (t.view(BATCH, TIME, HEADS, -1).transpose(1, 2) for t in self.qkv(x).split(WIDTH, -1))
        scores = q @ k.transpose(-1, -2) / math.sqrt(WIDTH // HEADS) + mask
        return self.out((scores.softmax(-1) @ v).transpose(1, 2).reshape(BATCH, TIME, WIDTH))

    def feed_forward(self, x):
        return self.ffn_out(F.relu(self.ffn_in(x)))

    def forward(self, x, mask):
        if self.scheme == "pre":
            x = x + self.attention(self.norm1(x), mask)
            return x + self.feed_forward(self.norm2(x))
        x = self.norm1(self.alpha * x + self.attention(x, mask))
        return self.norm2(self.alpha * x + self.feed_forward(x))


class Model(torch.nn.Module):
    def __init__(self, scheme):
        super().__init__()
        self.token, self.position = torch.nn.Embedding(VOCABULARY, WIDTH), torch.nn.Embedding(TIME, WIDTH)
        self.blocks = torch.nn.ModuleList(Block(scheme) for _ in range(LAYERS))
        self.final = torch.nn.LayerNorm(WIDTH) if scheme == "pre" else torch.nn.Identity()
        self.head = torch.nn.Linear(WIDTH, VOCABULARY, bias=False)
        torch.nn.init.xavier_normal_(self.head.weight)
        self.register_buffer("mask", torch.full((TIME, TIME), -math.inf).triu(1))

    def forward(self, tokens, targets):
        x = self.token(tokens) + self.position.weight
        for block in self.blocks:
            x = block(x, self.mask)
        return F.cross_entropy(self.head(self.final(x)).flatten(0, 1), targets.flatten())


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("text")
    parser.add_argument("--scheme", default="pre")
    parser.add_argument("--lr", type=float, default=3e-3)
    parser.add_argument("--warmup", type=int, default=0)
    parser.add_argument("--steps", type=int, default=300)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    torch.manual_seed(options.seed)
    data = torch.frombuffer(bytearray(open(options.text, "rb").read()), dtype=torch.uint8)
    model = Model(options.scheme)
    optimizer = torch.optim.Adam(model.parameters(), lr=options.lr, betas=(0.9, 0.98))
    losses, times = [], []
    for step in range(1, options.steps + 1):
        start = time.perf_counter()
        at = torch.randint(len(data) - TIME - 1, (BATCH,))
        window = torch.stack([data[i:i + TIME + 1] for i in at]).long()
        for group in optimizer.param_groups:
            group["lr"] = options.lr * min(1, step / options.warmup if options.warmup else 1)
        loss = model(window[:, :-1], window[:, 1:])
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
        times.append(time.perf_counter() - start)
    seconds = sum(times[10:]) / len(times[10:])
    print(json.dumps({"scheme": options.scheme, "lr": options.lr, "warmup": options.warmup, "seed": options.seed,
                      "loss": sum(losses[-20:]) / 20, "tokens_per_second": BATCH * TIME / seconds, "torch": torch.__version__}))


if __name__ == "__main__":
    main()
