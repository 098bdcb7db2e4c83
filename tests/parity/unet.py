"""Cases of U-Nets for parity_test: the network of Ho, Jain, Abbeel 2020, with its losses, answers and every gradient."""

import math

import torch
import torch.nn.functional as F

from images import TORCH_DTYPES, conv, transposed


class Net:
    """Parameters by our names, drawn where they are first asked for."""

    def __init__(self, t, groups):
        self.t, self.groups, self.p = t, groups, {}

    def parameter(self, name, *shape, scale=0.3, shift=0.0):
        if name not in self.p:
            self.p[name] = (shift + scale * torch.randn(*shape, dtype=self.t)).requires_grad_()
        return self.p[name]

    def conv(self, site, x, out, kernel=3, stride=1):
        c = x.shape[3]
        weight = self.parameter(f"{site}.weight", kernel, kernel, c, out, scale=(kernel * kernel * c) ** -0.5)
        return conv(x, weight, stride, kernel // 2) + self.parameter(f"{site}.bias", out)

    def linear(self, site, x, out):
        return x @ self.parameter(f"{site}.weight", x.shape[-1], out, scale=x.shape[-1] ** -0.5) + self.parameter(f"{site}.bias", out)

    def norm(self, site, x):
        c = x.shape[3]
        gain, bias = self.parameter(f"{site}.gain", c, shift=1.0), self.parameter(f"{site}.bias", c)
        return F.group_norm(x.permute(0, 3, 1, 2), self.groups, gain, bias).permute(0, 2, 3, 1)

    def attend(self, site, x, heads):
        n, a, b, c = x.shape
        packed = self.linear(f"{site}.qkv", self.norm(f"{site}.norm1", x).reshape(n, a * b, c), 3 * c)
        q, k, v = packed.view(n, a * b, 3, heads, c // heads).permute(2, 0, 3, 1, 4)
        seen = torch.softmax(q @ k.transpose(-1, -2) / math.sqrt(c // heads), -1) @ v
        return x + self.linear(f"{site}.out", seen.transpose(1, 2).reshape(n, a * b, c), c).view(n, a, b, c)

    def layer(self, site, x, e, out, heads):
        """A residual block, and attention behind it where there are heads."""
        at = f"{site}.conv"
        y = self.conv(f"{at}.in", F.silu(self.norm(f"{at}.norm1", x)), out)
        y = y + self.linear(f"{at}.condition", e, out)[:, None, None]
        y = self.conv(f"{at}.out", F.silu(self.norm(f"{at}.inner_norm", y)), out)
        x = (x if x.shape[3] == out else self.conv(f"{at}.skip", x, out, 1)) + y
        return self.attend(f"{site}.attn", x, heads) if heads else x


def unet(net, noised, timestep, hidden, *, widths, blocks, attended, heads, classes, grows):
    base, kept, layer = widths[0], [], 0
    half = base // 2
    angles = timestep[:, None] * torch.exp(-math.log(1e4) * torch.arange(half, dtype=net.t) / half)
    e = F.silu(net.linear("time.in", F.pad(torch.cat([angles.cos(), angles.sin()], -1), (0, base % 2)), 4 * base))
    e = net.linear("time.out", e, 4 * base)
    if classes:
        e = e + net.parameter("embedding.class", classes + 1, 4 * base)[hidden]
    e = F.silu(e)
    x = net.conv("stem", noised, base)
    kept.append(x)
    for level, width in enumerate(widths):
        if level > 0:
            kept.append(x := net.conv(f"shrink{layer}", x, x.shape[3], stride=2))
        for _ in range(blocks[level]):
            kept.append(x := net.layer(f"down.layers.{layer}", x, e, width, heads if level == attended else 0))
            layer += 1
    for i in range(2):
        x = net.layer(f"middle.layers.{i}", x, e, widths[-1], heads if i == 0 else 0)
    layer = 0
    for level, width in reversed(list(enumerate(widths))):
        if level + 1 < len(widths):
            c = x.shape[3]
            if grows == "transposed":
                weight = net.parameter(f"grow{layer}.weight", 4, 4, c, c, scale=(4 * c) ** -0.5)
                x = transposed(x, weight, 2, 1) + net.parameter(f"grow{layer}.bias", c)
            else:
                x = net.conv(f"grow{layer}", x.repeat_interleave(2, 1).repeat_interleave(2, 2), c)
        for _ in range(blocks[level] + 1):
            x = net.layer(f"up.layers.{layer}", torch.cat([x, kept.pop()], 3), e, width, heads if level == attended else 0)
            layer += 1
    assert not kept
    return net.conv("head", F.silu(net.norm("up.final.norm1", x)), noised.shape[3])


CASES = [("unet", (2, 8, 8, 3), dict(widths=[6, 12], blocks=[2, 2], attended=0, heads=2, classes=0, grows="repeated")),
         ("unet of odd sizes", (3, 12, 4, 1), dict(widths=[5, 8, 6], blocks=[2, 1, 1], attended=1, heads=1, classes=3, grows="repeated")),
         ("unet transposed", (2, 4, 8, 2), dict(widths=[4, 6], blocks=[2, 1], attended=1, heads=3, classes=2, grows="transposed"))]


def unets(writer, dtype):
    t = TORCH_DTYPES[dtype]
    for name, shape, given in CASES:
        widths, classes = given["widths"], given["classes"]
        net = Net(t, 1 if widths[0] % 2 else 2)
        noised, answer = torch.randn(shape, dtype=t), torch.randn(shape, dtype=t)
        timestep, hidden = torch.rand(shape[0], dtype=t) * 9, torch.randint(classes + 1, shape[:1])
        logits = unet(net, noised, timestep, hidden, **given)
        loss = F.mse_loss(logits, answer).reshape(1)
        gradients = torch.autograd.grad(loss, list(net.p.values()))
        expected = {"y": loss, "logits": logits, **{f"d/{k}": g for k, g in zip(net.p, gradients)}}
        inputs = {"noised": noised, "timestep": timestep, "answer": answer, **({"class": hidden} if classes else {})}
        sizes = {"image_height": shape[1], "image_width": shape[2], "image_channels": shape[3], "levels": len(widths),
                 "attention": shape[1] >> given["attended"], **{f"width{i + 1}": w for i, w in enumerate(widths) if i > 0}}
        if given["grows"] == "transposed":
            sizes["transposed"] = 1
        writer.add(name, "unet", dtype, {**inputs, **net.p}, expected, noised.numel() * 64, layers=sum(given["blocks"]), width=widths[0],
                   heads=given["heads"], classes=classes, batch=shape[0], norm="group", norm_groups=net.groups, sizes=sizes)
