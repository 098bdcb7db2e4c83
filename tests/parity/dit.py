"""Diffusion for parity_test: the transformer of Peebles and Xie 2023, noise schedules, and samples by DDPM and DDIM."""

import math

import torch
import torch.nn.functional as F

from images import TORCH_DTYPES


class Dit:
    """Weights made where they are first asked for, under norma's names."""

    def __init__(self, dtype, scheme, width, heads, layers, patch, classes):
        self.t, self.scheme, self.p = dtype, scheme, {}
        self.width, self.heads, self.layers, self.patch, self.classes = width, heads, layers, patch, classes

    def parameter(self, name, *shape, scale=0.3, shift=0.0):
        if name not in self.p:
            self.p[name] = (shift + scale * torch.randn(*shape, dtype=self.t)).requires_grad_()
        return self.p[name]

    def linear(self, site, x, out):
        weight = self.parameter(f"{site}.weight", x.shape[-1], out, scale=x.shape[-1] ** -0.5)
        return x @ weight + self.parameter(f"{site}.bias", out)

    def timestep(self, t):
        """GLIDE's features of a timestep, cosines before sines, and a perceptron."""
        half = self.width // 2
        angles = t[:, None] * torch.exp(-math.log(1e4) * torch.arange(half, dtype=self.t) / half)
        features = F.pad(torch.cat([angles.cos(), angles.sin()], -1), (0, self.width % 2))
        return self.linear("time.out", F.silu(self.linear("time.in", features, self.width)), self.width)

    def attention(self, site, x):
        n, tokens, d = x.shape
        q, k, v = self.linear(f"{site}.qkv", x, 3 * d).view(n, tokens, 3, self.heads, d // self.heads).permute(2, 0, 3, 1, 4)
        seen = torch.softmax(q @ k.transpose(-1, -2) / math.sqrt(d // self.heads), -1) @ v
        return self.linear(f"{site}.out", seen.transpose(1, 2).reshape(n, tokens, d), d)

    def feed_forward(self, site, x):
        return self.linear(f"{site}.out", F.gelu(self.linear(f"{site}.in", x, 4 * x.shape[2])), x.shape[2])

    def normed(self, site, x, c):
        """Brought to scale, then scaled and shifted: by vectors made of c, or by vectors learned as they are."""
        d = x.shape[-1]
        if self.scheme == "pre":
            gain, bias = self.parameter(f"{site}.norm1.gain", d, shift=1.0), self.parameter(f"{site}.norm1.bias", d)
            return F.layer_norm(x, (d,), gain, bias, 1e-5)
        scale, shift = self.linear(f"{site}.scale", c, d)[:, None], self.linear(f"{site}.shift", c, d)[:, None]
        return F.layer_norm(x, (d,), None, None, 1e-5) * (1 + scale) + shift

    def __call__(self, noised, t, label):
        n, height, width, channels = noised.shape
        d, p = self.width, self.patch
        kernel = self.parameter("embedding.patch", p, p, channels, d)
        x = F.conv2d(noised.permute(0, 3, 1, 2), kernel.permute(3, 2, 0, 1), self.parameter("embedding.bias", d), p)
        x = x.flatten(2).transpose(1, 2)
        x = x + self.parameter("embedding.position", x.shape[1], d)
        c = self.timestep(t)
        if self.classes:
            c = c + self.parameter("embedding.class", self.classes + 1, d)[label]
        if self.scheme == "pre":
            x = x + c[:, None]
        else:
            c = F.silu(c)
        for i in range(self.layers):
            for branch, f in (("attn", self.attention), ("ffn", self.feed_forward)):
                site = f"layers.{i}.{branch}"
                y = f(site, self.normed(site, x, c))
                x = x + (self.linear(f"{site}.gate", c, d)[:, None] * y if self.scheme == "adaln_zero" else y)
        x = self.linear("head", self.normed("final", x, c), p * p * channels)
        x = x.view(n, height // p, width // p, p, p, channels).permute(0, 1, 3, 2, 4, 5)
        return x.reshape(n, height, width, channels)

    def attributes(self, shape):
        return dict(layers=self.layers, width=self.width, heads=self.heads, classes=self.classes, batch=shape[0], scheme=self.scheme,
                    norm="layer", sizes={"image_height": shape[1], "image_width": shape[2], "image_channels": shape[3],
                                         "patch": self.patch})


def transformers(writer, dtype):
    t = TORCH_DTYPES[dtype]
    for scheme, shape, width, classes in (("adaln_zero", (3, 4, 6, 3), 12, 5), ("adaln", (2, 6, 4, 2), 10, 0), ("pre", (2, 4, 4, 1), 12, 3)):
        net = Dit(t, scheme, width, 2, 2, 2, classes)
        noised, answer = torch.randn(shape, dtype=t), torch.randn(shape, dtype=t)
        timestep, label = torch.rand(shape[0], dtype=t) * 9, torch.randint(classes + 1, shape[:1])
        logits = net(noised, timestep, label)
        loss = F.mse_loss(logits, answer).reshape(1)
        gradients = torch.autograd.grad(loss, list(net.p.values()))
        inputs = {"noised": noised, "timestep": timestep, "answer": answer, **({"class": label} if classes else {})}
        writer.add(f"dit {scheme}", "dit", dtype, {**inputs, **net.p},
                   {"y": loss, "logits": logits, **{f"d/{k}": g for k, g in zip(net.p, gradients)}}, noised.numel() * width * 4,
                   **net.attributes(shape))


def kept(schedule, steps):
    """The product of 1 - beta up to each step: linear betas of Ho et al. 2020, which go from 1e-4 to 0.02 in a thousand steps, or
    the cosine of Nichol and Dhariwal 2021 (its equation 17, betas at most 0.999)."""
    if schedule == "linear":
        beta = torch.linspace(1e-4 * 1000 / steps, 0.02 * 1000 / steps, steps, dtype=torch.float64)
    else:
        f = torch.cos((torch.arange(steps + 1, dtype=torch.float64) / steps + 0.008) / 1.008 * math.pi / 2) ** 2
        beta = 1 - f[1:] / f[:-1]
    return torch.cumprod(1 - beta.clamp(max=0.999), 0)


def clean_and_noise(prediction, answer, x, a):
    """x0 and e behind x = sqrt(a) x0 + sqrt(1 - a) e; v = sqrt(a) e - sqrt(1 - a) x0 is Salimans and Ho's 2022."""
    alpha, sigma = a.sqrt(), (1 - a).sqrt()
    if prediction == "epsilon":
        return (x - sigma * answer) / alpha, answer
    x0 = answer if prediction == "x0" else alpha * x - sigma * answer
    return x0, (x - alpha * x0) / sigma


def ddpm(a, answer_of, prediction, noise):
    """Algorithm 2 of Ho et al. 2020 with the posterior's variance: x0 of the model into equation 7."""
    x = noise[0]
    for step, t in enumerate(reversed(range(len(a))), 1):
        before = a[t - 1] if t > 0 else torch.ones((), dtype=torch.float64)
        beta = 1 - a[t] / before
        x0, _ = clean_and_noise(prediction, answer_of(x, t), x, a[t])
        mean = before.sqrt() * beta / (1 - a[t]) * x0 + (1 - beta).sqrt() * (1 - before) / (1 - a[t]) * x
        variance = (1 - before) / (1 - a[t]) * beta
        x = mean + (variance.sqrt() * noise[step] if t > 0 else 0)
    return x


def ddim(a, answer_of, prediction, noise, steps, eta, clip):
    """Equations 12 and 16 of Song et al. 2021, over evenly spaced timesteps that end with the last."""
    x = noise[0]
    times = [len(a) * i // steps - 1 for i in range(1, steps + 1)]
    for step, i in enumerate(reversed(range(steps)), 1):
        now, then = a[times[i]], a[times[i - 1]] if i > 0 else torch.ones((), dtype=torch.float64)
        x0, e = clean_and_noise(prediction, answer_of(x, times[i]), x, now)
        if clip:
            x0 = x0.clamp(-clip, clip)
            e = (x - now.sqrt() * x0) / (1 - now).sqrt()
        spread = eta * ((1 - then) / (1 - now)).sqrt() * (1 - now / then).sqrt()
        x = then.sqrt() * x0 + (1 - then - spread ** 2).sqrt() * e + spread * noise[step]
    return x


SAMPLERS = [("ddpm", "linear", "epsilon", 40, 40, 1.0, 1.0, 0.0), ("ddpm", "cosine", "v", 25, 25, 1.0, 1.0, 0.0),
            ("ddim", "linear", "epsilon", 40, 7, 0.0, 1.0, 0.0), ("ddim", "cosine", "v", 30, 11, 0.0, 2.5, 0.0),
            ("ddim", "linear", "x0", 24, 10, 0.4, 0.0, 0.0), ("ddim", "cosine", "epsilon", 16, 5, 1.0, 3.0, 1.2)]


def samples(writer):
    t, shape, classes = torch.float64, (3, 4, 4, 2), 4
    for schedule, steps in (("linear", 1000), ("linear", 50), ("linear", 10), ("cosine", 1000), ("cosine", 7)):
        writer.add(f"noise {schedule} {steps}", "noise_schedule", "f64", {}, {"kept": kept(schedule, steps)}, steps, schedule=schedule,
                   timesteps=steps)
    for sampler, schedule, prediction, timesteps, steps, eta, guidance, clip in SAMPLERS:
        net = Dit(t, "adaln_zero", 8, 2, 1, 2, classes)
        label, hidden = torch.randint(classes, shape[:1]), torch.full(shape[:1], classes)
        noise = torch.randn(steps + 1, *shape, dtype=t)

        @torch.no_grad()
        def answer_of(x, at):
            when = torch.full(shape[:1], float(at), dtype=t)
            told, untold = net(x, when, label), net(x, when, hidden)
            return (1 - guidance) * untold + guidance * told

        a = kept(schedule, timesteps)
        if sampler == "ddpm":
            x = ddpm(a, answer_of, prediction, noise)
        else:
            x = ddim(a, answer_of, prediction, noise, steps, eta, clip)
        # Rounding errors grow by 1 / alpha where the way begins and at every step by what the network makes of them.
        writer.add(f"{sampler} {schedule} {prediction}", "sampler", "f64", {"noise": noise, "class": label, **net.p}, {"x": x}, 1,
                   tolerance=1e-9, schedule=schedule, prediction=prediction, timesteps=timesteps, steps=steps, eta=eta, guidance=guidance,
                   clip=clip, **net.attributes(shape))


def diffusion(writer, dtype):
    transformers(writer, dtype)
    if dtype == "f64":
        samples(writer)
