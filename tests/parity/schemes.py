"""The catalogue of schemes in PyTorch, each written from its paper: loss and the gradient of every parameter.

A Net makes its parameters when they are first asked for, under norma's names: norms of a formula are numbered as they are
written, the outer one first.
"""

import math

import torch
import torch.nn.functional as F

LAYERS, D, HEADS, HIDDEN, VOCABULARY, BATCH, TIME = 4, 24, 3, 40, 31, 2, 9
SUBLAYERS, HEAD = 2 * LAYERS, D // HEADS


def unit(x):
    return x / x.norm(dim=-1, keepdim=True)


def rms(x):
    return x * (x.square().mean(-1, keepdim=True) + 1e-6).rsqrt()


class Net:
    def __init__(self, dtype, parameters=None):
        self.dtype, self.p, self.fixed = dtype, {} if parameters is None else parameters, parameters is not None
        self.scores, self.scale, self.logit_scale = None, HEAD**-0.5, 1.0

    def get(self, name, *shape, mean=0.0, spread=0.3):
        if name not in self.p:
            assert not self.fixed, name
            self.p[name] = mean + spread * torch.randn(*shape, dtype=self.dtype)
        return self.p[name]

    def dense(self, site, x, n_out, bias=True):
        y = x @ self.get(f"{site}.weight", x.shape[-1], n_out, spread=x.shape[-1] ** -0.5)
        return y + self.get(f"{site}.bias", n_out, spread=0.1) if bias else y

    def ln(self, site, x):
        width = x.shape[-1]
        return F.layer_norm(x, (width,), self.get(f"{site}.gain", width, mean=1.0), self.get(f"{site}.bias", width), 1e-5)

    def rms(self, site, x, offset=0.0):
        return rms(x) * (offset + self.get(f"{site}.gain", x.shape[-1], mean=1.0 - offset))

    def dyt(self, site, x):
        return torch.tanh(self.get(f"{site}.alpha", 1, mean=0.5, spread=0.1) * x) * self.get(f"{site}.gain", D, mean=1.0) + self.get(f"{site}.bias", D)

    def attn(self, at, x, qk=None, v_norm=None, inner=None, carry=False, head_gain=False, bias=True):
        """qk and v_norm map (site, x[B, T, heads, width]) to the same shape."""
        split = lambda y: y.view(BATCH, TIME, HEADS, HEAD)
        q, k, v = map(split, self.dense(f"{at}.attn.qkv", x, 3 * D, bias).split(D, -1))
        if qk:
            q, k = qk(f"{at}.attn.q_norm", q), qk(f"{at}.attn.k_norm", k)
        if v_norm:
            v = v_norm(f"{at}.attn.v_norm", v)
        scores = torch.einsum("bqhw,bkhw->bhqk", q, k) * self.scale
        if carry:
            scores = scores if self.scores is None else scores + self.scores
            self.scores = scores
        p = scores.masked_fill(torch.ones(TIME, TIME, dtype=torch.bool).triu(1), -math.inf).softmax(-1)
        context = torch.einsum("bhqk,bkhw->bqhw", p, v).reshape(BATCH, TIME, D)
        out = self.dense(f"{at}.attn.out", inner(f"{at}.attn.inner_norm", context) if inner else context, D, bias)
        if head_gain:
            out = (split(out) * self.get(f"{at}.attn.head_gain", HEADS, 1, mean=1.0)).reshape(BATCH, TIME, D)
        return out

    def ffn(self, at, x, inner=None):
        h = F.gelu(self.dense(f"{at}.ffn.in", x, HIDDEN))
        return self.dense(f"{at}.ffn.out", inner(f"{at}.ffn.inner_norm", h) if inner else h, D)

    def layers(self):
        return [(l, f"layers.{l - 1}") for l in range(1, LAYERS + 1)]

    def sublayers(self, ffn_options=None, **options):
        """(layer, sublayer, site, branch) of each sublayer."""
        for l, at in self.layers():
            yield l, 2 * l - 1, f"{at}.attn", lambda x, at=at: self.attn(at, x, **options)
            yield l, 2 * l, f"{at}.ffn", lambda x, at=at: self.ffn(at, x, **(ffn_options or {}))


def post(m, x, skip=lambda m, at: 1.0, **options):
    for l, k, at, f in m.sublayers(**options):
        x = m.ln(f"{at}.norm1", skip(m, at) * x + f(x))
    return x


def pre(m, x, b=lambda m, at: 1.0, s=lambda l: 1.0, **options):
    for l, k, at, f in m.sublayers(**options):
        x = x + b(m, at) * f(m.ln(f"{at}.norm1", x) * s(l))
    return m.ln("final.norm1", x)


def unnormed(m, x, gain):
    for l, k, at, f in m.sublayers():
        x = x + gain(l, at) * f(x)
    return x


def parallel(m, x):
    for l, at in m.layers():
        y = m.ln(f"{at}.norm1", x)
        x = x + m.attn(at, y) + m.ffn(at, y)
    return m.ln("final.norm1", x)


def peri(m, x, norm):
    for l, k, at, f in m.sublayers():
        x = x + norm(f"{at}.norm1", f(norm(f"{at}.norm2", x)))
    return norm("final.norm1", x)


def olmo2(m, x):
    full = lambda site, y: m.rms(site, y.reshape(BATCH, TIME, D)).view(BATCH, TIME, HEADS, HEAD)
    for l, k, at, f in m.sublayers(qk=full):
        x = x + m.rms(f"{at}.norm1", f(x))
    return m.rms("final.norm1", x)


def normformer(m, x):
    for l, at in m.layers():
        x = x + m.ln(f"{at}.attn.norm1", m.attn(at, m.ln(f"{at}.attn.norm2", x), head_gain=True))
        x = x + m.ffn(at, m.ln(f"{at}.ffn.norm1", x), inner=m.ln)
    return m.ln("final.norm1", x)


def b2t(m, x):
    for l, at in m.layers():
        u = m.ln(f"{at}.norm1", x + m.attn(at, x))
        x = m.ln(f"{at}.norm2", x + u + m.ffn(at, u))
    return x


def residual(m, x):
    r = x
    for l, k, at, f in m.sublayers():
        y = f(x)
        x, r = m.ln(f"{at}.norm1", x + y), r + y
    return x + m.ln("final.norm1", r)


def siamese(m, x):
    y = x
    for l, k, at, f in m.sublayers():
        x = m.ln(f"{at}.norm1", x)
        z = f(m.ln(f"{at}.norm2", x + m.ln(f"{at}.norm3", y)))
        x, y = x + z / math.sqrt(2 * l), y + z
    return m.ln("final.norm1", m.ln("final.norm2", x) + m.ln("final.norm3", y))


def mix(m, x):
    for l, k, at, f in m.sublayers():
        x = m.ln(f"{at}.norm1", x + f(x)) if l <= LAYERS // 4 else x + f(m.ln(f"{at}.norm2", x))
    return m.ln("final.norm1", x)


def hybrid(m, x, star):
    for l, at in m.layers():
        first = star and l == 1
        attend = lambda y: m.attn(at, y, qk=m.ln, v_norm=m.ln)
        x = x + attend(m.ln(f"{at}.attn.norm1", x) if first else x)
        y = m.ln(f"{at}.ffn.norm1", x)
        x = (x if first else y) + m.ffn(at, y)
    return m.ln("final.norm1", x)


def keel(m, x):
    for l, k, at, f in m.sublayers():
        if k == 1:
            x = x + f(m.rms(f"{at}.norm1", x))
        elif l == 1:
            x = m.rms(f"{at}.norm1", x + f(m.rms(f"{at}.norm2", x)))
        else:
            # In the formula the case of the first layer comes first: one norm for attention, two for feed-forward.
            outer = 2 if at.endswith("attn") else 3
            x = m.rms(f"{at}.norm{outer}", SUBLAYERS * x + f(m.rms(f"{at}.norm{outer + 1}", x)))
    return x


def gpas(m, x):
    for l, k, at, f in m.sublayers():
        y = x + f(m.ln(f"{at}.norm1", x))
        x = y - F.silu(m.get(f"{at}.g", 1)) * y.detach()
    return m.ln("final.norm1", x)


def dyt(m, x):
    x = m.get("e", 1, mean=math.sqrt(D)) * x
    for l, k, at, f in m.sublayers():
        x = x + f(m.dyt(f"{at}.norm1", x))
    return m.dyt("final.norm1", x)


def blend(m, x, first, s=0.3):
    """`first`: which of the two comes first in the formula."""
    for l, k, at, f in m.sublayers():
        after, before = ("norm1", "norm2") if first == "post" else ("norm2", "norm1")
        x = s * m.ln(f"{at}.{after}", x + f(x)) + (1 - s) * (x + f(m.ln(f"{at}.{before}", x)))
    return m.ln("final.norm1", x)


def depth(m, x, exponent):
    m.scale = 1 / HEAD
    return pre(m, x, b=lambda m, at: LAYERS**-exponent)


def ngpt(m, x):
    stored = math.sqrt(D)  # one over what gains are stored as
    m.scale = math.sqrt(HEAD)
    for l, at in m.layers():
        gain = lambda site, y: unit(y) * (m.get(f"{at}.attn.qk_gain", D, mean=0.2, spread=0.05) * stored).view(HEADS, HEAD)
        hidden = lambda y: m.dense(f"{at}.ffn.in", y, HIDDEN, bias=False) * m.get(f"{at}.ffn.gain", HIDDEN, mean=1.0) * math.sqrt(D)
        ffn = lambda y: m.dense(f"{at}.ffn.out", F.gelu(hidden(y)), D, bias=False)
        for name, f in (("attn", lambda y: m.attn(at, y, qk=gain, bias=False)), ("ffn", ffn)):
            alpha = (m.get(f"{at}.{name}.a", D) * 0.05 * stored).abs()
            x = unit(x + alpha * (unit(f(x)) - x))
    m.logit_scale = m.get("head.gain", VOCABULARY, mean=0.2, spread=0.05) * stored
    return x


def hyper_connections(m, x, dynamic, c=4):
    h = x.unsqueeze(2).repeat(1, 1, c, 1)
    for l, k, at, f in m.sublayers():
        am, ar, b = m.get(f"{at}.am", c), m.get(f"{at}.ar", c, c), m.get(f"{at}.b", c, mean=1.0)
        if dynamic:
            n = m.ln(f"{at}.norm1", h)
            sa, sb = m.get(f"{at}.sa", 1), m.get(f"{at}.sb", 1)
            am = am + sa * torch.tanh(n @ m.get(f"{at}.wm", D))
            ar = ar + sa * torch.tanh(n @ m.get(f"{at}.wr", D, c))
            b = b + sb * torch.tanh(n @ m.get(f"{at}.wb", D))
        read = (h * am.unsqueeze(-1)).sum(2)
        y = f(m.ln(f"{at}.norm{2 if dynamic else 1}", read))
        h = (ar.transpose(-1, -2) @ h) + b.unsqueeze(-1) * y.unsqueeze(2)
    return m.ln("final.norm1", h.sum(2))


def mhc(m, x, c=4):
    h = x.unsqueeze(2).repeat(1, 1, c, 1)
    for l, k, at, f in m.sublayers():
        v = rms(h.flatten(2))
        raw = lambda i, out: m.get(f"{at}.s{i}", 1, mean=0.5) * (v @ m.get(f"{at}.w{i}", c * D, out, spread=0.05))
        read = torch.sigmoid(raw(1, c) + m.get(f"{at}.b1", c))
        write = 2 * torch.sigmoid(raw(2, c) + m.get(f"{at}.b2", c))
        mixer = torch.exp(raw(3, c * c).unflatten(-1, (c, c)) + m.get(f"{at}.b3", c, c))
        for _ in range(20):
            mixer = mixer / mixer.sum(-2, keepdim=True)
            mixer = mixer / mixer.sum(-1, keepdim=True)
        y = f(m.ln(f"{at}.norm1", (h * read.unsqueeze(-1)).sum(2)))
        h = mixer @ h + write.unsqueeze(-1) * y.unsqueeze(2)
    return m.ln("final.norm1", h.sum(2))


def attention_residuals(m, x, block):
    values, partial = [x], []

    def aggregate(at):
        v = torch.stack(values + ([sum(partial)] if partial else []), 2)
        weights = (rms(v) @ m.get(f"{at}.w", D)).softmax(-1)
        return (weights.unsqueeze(-1) * v).sum(2)

    for l, k, at, f in m.sublayers():
        partial.append(f(m.ln(f"{at}.norm1", aggregate(at))))
        if len(partial) == block:
            values.append(sum(partial))
            partial.clear()
    return m.ln("final.norm1", aggregate("final"))


vector = lambda name: lambda m, at: m.get(f"{at}.{name}", D, mean=1.0)
SCHEMES = {
    "deepnorm": lambda m, x: post(m, x, lambda m, at: (2 * LAYERS) ** 0.25),
    "admin": lambda m, x: post(m, x, vector("omega")),
    "admin_torch": lambda m, x: post(m, x, vector("omega")),
    "realformer": lambda m, x: post(m, x, carry=True),
    "lns": lambda m, x: pre(m, x, s=lambda l: l**-0.5),
    "layerscale": lambda m, x: pre(m, x, vector("g")),
    "qk": lambda m, x: pre(m, x, qk=m.ln),
    "subln": lambda m, x: pre(m, x, inner=m.ln, ffn_options={"inner": m.ln}),
    "rezero": lambda m, x: unnormed(m, x, lambda l, at: m.get(f"layers.{l - 1}.g", 1)),
    "skipinit": lambda m, x: unnormed(m, x, lambda l, at: m.get(f"{at}.g", 1)),
    "tfixup": lambda m, x: unnormed(m, x, lambda l, at: 1.0),
    "depth_mup": lambda m, x: depth(m, x, 0.5),
    "completep": lambda m, x: depth(m, x, 1),
    "parallel": parallel,
    "peri": lambda m, x: peri(m, x, m.ln),
    "gemma2": lambda m, x: peri(m, x, lambda site, y: m.rms(site, y, offset=1.0)),
    "olmo2": olmo2,
    "normformer": normformer,
    "b2t": b2t,
    "residual": residual,
    "siamese": siamese,
    "mix": mix,
    "hybridnorm": lambda m, x: hybrid(m, x, False),
    "hybridnorm_star": lambda m, x: hybrid(m, x, True),
    "keel": keel,
    "gpas": gpas,
    "dyt": dyt,
    "pre_to_post": lambda m, x: blend(m, x, "pre"),
    "post_pre_post": lambda m, x: blend(m, x, "post"),
    "ngpt": ngpt,
    "hc_static": lambda m, x: hyper_connections(m, x, False),
    "hc_dynamic": lambda m, x: hyper_connections(m, x, True),
    "mhc": mhc,
    "attnres": lambda m, x: attention_residuals(m, x, 1),
    "attnres_block": lambda m, x: attention_residuals(m, x, 1),  # eight sublayers in eight blocks
}


# By sqrt(d), before positions are added.
SCALES_TOKENS = {"admin", "gemma2", "tfixup"}


def run(scheme, net, tokens, targets):
    scale = math.sqrt(D) if scheme in SCALES_TOKENS else 1.0
    x = scale * net.get("embedding.token", VOCABULARY, D, spread=1 / scale)[tokens]
    x = x + net.get("embedding.position", TIME, D, spread=1.0)
    x = SCHEMES[scheme](net, x)
    logits = net.logit_scale * (x @ net.get("head.weight", D, VOCABULARY, spread=D**-0.5))
    return F.cross_entropy(logits.flatten(0, 1), targets.flatten()).reshape(1)


def schemes(writer, dtype, torch_dtype):
    for scheme in SCHEMES:
        ids = {"tokens": torch.randint(VOCABULARY, (BATCH, TIME)), "targets": torch.randint(VOCABULARY, (BATCH, TIME))}
        made = Net(torch_dtype)
        run(scheme, made, **ids)
        p = {name: value.requires_grad_() for name, value in made.p.items()}
        loss = run(scheme, Net(torch_dtype, p), **ids)
        gradients = torch.autograd.grad(loss, list(p.values()), allow_unused=True)
        # Some gradients are 0 by construction and cannot be compared: of weights over a single value, of a bias that all keys
        # share, of a mixer between equal copies or before their sum.
        expected = {f"d/{name}": g for name, g in zip(p, gradients) if g is not None and g.abs().max() > 1e-12}
        fixed = {"schedule.s": torch.tensor([0.3], dtype=torch_dtype)} if scheme in ("pre_to_post", "post_pre_post") else {}
        # Without a norm rounding grows from sublayer to sublayer as the stream does: four times what others may be off by.
        # Dynamic hyper-connections: the gradient of sa sums over the 4 + 4 x 4 weights that it scales, not over 4 times the width alone.
        growth = {"tfixup": 16, "hc_dynamic": 5}.get(scheme, 1)
        writer.add(f"scheme {scheme}", "scheme", dtype, {**ids, **p, **fixed}, {"y": loss, **expected}, BATCH * TIME * 4 * D * growth,
                   placement=scheme, layers=LAYERS, width=D, heads=HEADS, hidden=HIDDEN, vocabulary=VOCABULARY, batch=BATCH, time=TIME,
                   parameters=len(p))
