"""Cases of graphs for parity_test: what neighbours and segments come to, norms over nodes, and whole graph networks."""

import math

import torch
import torch.nn.functional as F

TORCH_DTYPES = {"f32": torch.float32, "f64": torch.float64}


def random_graph(nodes, edges, alone=True):
    """A dense adjacency matrix with every node its own neighbour, and its pairs; the last node knows only itself."""
    a = torch.eye(nodes)
    for i, j in torch.randint(nodes - 1 if alone else nodes, (edges, 2)).tolist():
        a[i, j] = a[j, i] = 1
    return a, a.nonzero().T.contiguous()


def attend(h, query, key, a, slope=0.2):
    """h[nodes, heads, width], query and key [nodes, heads], a[nodes, nodes]"""
    scores = F.leaky_relu(query[:, None, :] + key[None, :, :], slope).masked_fill(a[:, :, None] == 0, -torch.inf)
    return torch.einsum("ijh,jhc->ihc", scores.softmax(1), h)


def ops(writer, dtype, differentiable):
    t = TORCH_DTYPES[dtype]
    nodes = 17
    a, edges = random_graph(nodes, 30)
    dense = a.to(t)
    x, left, right = torch.randn(nodes, 6, dtype=t), torch.randn(nodes, dtype=t), torch.randn(nodes, dtype=t)
    differentiable(writer, "neighbour sum", "neighbour_sum", dtype, {"x": x, "edges": edges}, lambda x, edges: dense @ x, nodes)
    differentiable(writer, "neighbour scaled", "neighbour_sum", dtype, {"x": x, "edges": edges, "left": left, "right": right},
                   lambda x, edges, left, right: left[:, None] * (dense @ (right[:, None] * x)), nodes * 6)
    differentiable(writer, "neighbour max", "neighbour_max", dtype, {"x": x, "edges": edges},
                   lambda x, edges: x[None].expand(nodes, -1, -1).masked_fill(a[:, :, None] == 0, -torch.inf).amax(1), nodes)
    query, key = torch.randn(nodes, 2, dtype=t), torch.randn(nodes, 2, dtype=t)
    differentiable(writer, "neighbour attention", "neighbour_attention", dtype, {"x": x, "query": query, "key": key, "edges": edges},
                   lambda x, query, key, edges: attend(x.view(nodes, 2, 3), query, key, a).reshape(nodes, 6), nodes * 6, heads=2)
    ids = torch.tensor([0] * 5 + [2] * 3 + [3] + [4] * 8)
    rows = [ids == s for s in range(5)]
    zero = torch.zeros(6, dtype=t)
    for kind, put in (("sum", lambda r: r.sum(0)), ("mean", lambda r: r.mean(0)), ("max", lambda r: r.amax(0))):
        differentiable(writer, f"segment {kind}", "segment", dtype, {"x": x, "ids": ids},
                       lambda x, ids: torch.stack([put(x[r]) if r.any() else zero for r in rows]), nodes, kind=kind, segments=5)


def graph_norm(x, alpha, gain, bias, eps=1e-5):
    z = x - alpha * x.mean(0)
    return gain * z / (z.square().mean(0) + eps).sqrt() + bias


def pair_norm(x, eps=1e-6):
    z = x - x.mean(0)
    return z / (z.square().sum(1).mean() + eps).sqrt()


def norms(writer, dtype, differentiable):
    t = TORCH_DTYPES[dtype]
    x = 2 * torch.randn(11, 7, dtype=t) + 0.5
    learned = {k: 1 + 0.3 * torch.randn(7, dtype=t) for k in ("alpha", "gain", "bias")}
    differentiable(writer, "graph norm", "norm", dtype, {"x": x, **learned}, lambda x, alpha, gain, bias: graph_norm(x, alpha, gain, bias),
                   x.numel(), kind="graph", eps=1e-5)
    differentiable(writer, "pair norm", "norm", dtype, {"x": x}, pair_norm, x.numel(), kind="pair", eps=1e-6)
    differentiable(writer, "mean norm", "norm", dtype, {"x": x}, lambda x: x - x.mean(0), x.numel(), kind="mean", eps=0.0)


def convolution(kind, p, at, x, a, heads):
    degrees = a.sum(1)
    w, b = p[f"{at}.out.weight"], p[f"{at}.out.bias"]
    if kind == "gcn":
        return a / (degrees[:, None] * degrees[None, :]).sqrt() @ x @ w + b
    others = a - torch.eye(len(a), dtype=a.dtype)
    if kind == "sage":
        mean = others / others.sum(1, keepdim=True).clamp_min(1)
        return x @ p[f"{at}.self.weight"] + mean @ x @ w + b
    if kind == "gin":
        inner = F.relu(((1 + p[f"{at}.eps"]) * x + others @ x) @ p[f"{at}.in.weight"] + p[f"{at}.in.bias"])
        return inner @ w + b
    h = (x @ w).view(len(x), heads, -1)
    query, key = ((h * p[f"{at}.{name}"]).sum(2) for name in ("query", "key"))
    return attend(h, query, key, a).reshape(x.shape) + b


def parameters(kind, t, features, d, classes, layers, heads):
    p = {"embedding.weight": torch.randn(features, d, dtype=t), "embedding.bias": torch.randn(d, dtype=t)}
    for layer in range(layers):
        at = f"layers.{layer}.gcn"
        for name in ("out", *(["self"] if kind == "sage" else []), *(["in"] if kind == "gin" else [])):
            p[f"{at}.{name}.weight"] = torch.randn(d, d, dtype=t) / d ** 0.5
            if name != "self":
                p[f"{at}.{name}.bias"] = torch.randn(d, dtype=t)
        if kind == "gin":
            p[f"{at}.eps"] = torch.full((1,), 0.3, dtype=t)
        if kind == "gat":
            p[f"{at}.query"], p[f"{at}.key"] = torch.randn(heads, d // heads, dtype=t), torch.randn(heads, d // heads, dtype=t)
    p["head.weight"] = torch.randn(d, classes, dtype=t)
    return p


def gcnii(p, x, a, alpha=0.1, strength=0.5):
    """Chen et al. 2020, equation 5, behind a first relu: the initial residual, and weights near the identity."""
    degrees = a.sum(1)
    spread = a / (degrees[:, None] * degrees[None, :]).sqrt()
    x = first = F.relu(x)
    layer = 0
    while f"layers.{layer}.gcn.out.weight" in p:
        beta = math.log(strength / (layer + 1) + 1)
        y = (1 - alpha) * spread @ x + alpha * first
        w, b = p[f"layers.{layer}.gcn.out.weight"], p[f"layers.{layer}.gcn.out.bias"]
        x = F.relu((1 - beta) * y + beta * (y @ w + b))
        layer += 1
    return x


def network(writer, dtype, kind, readout=None, scheme="gcn"):
    """Two layers of relu(f(x)), or of the scheme, between a linear layer and a head; of nodes some of which are not asked for, or of three graphs."""
    t = TORCH_DTYPES[dtype]
    nodes, features, d, classes, layers, heads = 13, 7, 6, 3, 2, 2
    a, edges = random_graph(nodes, 20)
    graph_of = torch.tensor([0] * 4 + [1] * 6 + [2] * 3)
    if readout:
        a = a * (graph_of[:, None] == graph_of[None, :])
        edges = a.nonzero().T.contiguous()
    a = a.to(t)
    p = parameters(kind, t, features, d, classes, layers, heads)
    x = torch.randn(nodes, features, dtype=t)
    targets = torch.randint(classes, (3 if readout else nodes,))
    if not readout:
        targets[::3] = -100
    leaves = {k: v.clone().requires_grad_() for k, v in p.items()}
    h = x @ leaves["embedding.weight"] + leaves["embedding.bias"]
    if scheme == "gcnii":
        h = gcnii(leaves, h, a)
    for layer in range(layers if scheme != "gcnii" else 0):
        h = convolution(kind, leaves, f"layers.{layer}.gcn", h, a, heads)
        h = F.relu(pair_norm(h) if scheme == "pairnorm" else h)
    if readout:
        put = {"sum": lambda r: r.sum(0), "mean": lambda r: r.mean(0), "max": lambda r: r.amax(0)}[readout]
        h = torch.stack([put(h[graph_of == g]) for g in range(3)])
    logits = h @ leaves["head.weight"]
    loss = F.cross_entropy(logits, targets).reshape(1)
    gradients = torch.autograd.grad(loss, list(leaves.values()))
    expected = {"y": loss, "logits": logits, **{f"d/{k}": g for k, g in zip(leaves, gradients)}}
    tensors = {"features": x, "edges": edges, "degrees": a.sum(1), "targets": targets, **p}
    if readout:
        tensors["graph_of"] = graph_of
    writer.add(f"{kind} {scheme} {readout or 'nodes'}", "graphs" if readout else "gcn", dtype, tensors, expected, nodes * d * 16, layers=layers,
               width=d, classes=classes, batch=3 if readout else 1, heads=heads, convolution=kind, readout=readout or "mean", scheme=scheme,
               sizes={"nodes": nodes, "edges": edges.shape[1], "features": features})


def graphs(writer, dtype, differentiable):
    ops(writer, dtype, differentiable)
    norms(writer, dtype, differentiable)
    for kind in ("gcn", "sage", "gin", "gat"):
        network(writer, dtype, kind)
    for scheme in ("gcnii", "pairnorm"):
        network(writer, dtype, "gcn", scheme=scheme)
    for kind, readout in (("gcn", "mean"), ("gin", "sum"), ("gat", "max")):
        network(writer, dtype, kind, readout)
