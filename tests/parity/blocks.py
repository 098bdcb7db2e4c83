"""Whole classifiers of other blocks for parity_test: pre-activation, ResNet-D, NF-ResNet and ConvNeXt, with formed weights."""

import torch
import torch.nn.functional as F
from torch.nn.utils.parametrizations import _SpectralNorm

from images import TORCH_DTYPES, conv

GAMMA = 1.7139588594436646  # sqrt(2 / (1 - 1 / pi))


class Net:
    """Parameters made where they are first asked for, under norma's names; what is asked for again is the same tensor."""

    def __init__(self, dtype, norm, form="plain"):
        self.dtype, self.norm_kind, self.form, self.p, self.running = dtype, norm, form, {}, {}

    def parameter(self, name, *shape, scale=1.0, mean=0.0):
        if name not in self.p:
            self.p[name] = (mean + scale * torch.randn(*shape, dtype=self.dtype)).requires_grad_()
        return self.p[name]

    def formed(self, site, w):
        """The weight [.., out] that a layer uses."""
        if self.form == "plain":
            return w
        flat = w.reshape(-1, w.shape[-1])
        if self.form == "spectral":  # PyTorch's own, with norma's start and number of iterations
            module = _SpectralNorm(flat.detach(), n_power_iterations=8, dim=0)
            module._v = torch.ones(w.shape[-1], dtype=self.dtype)
            return module.train()(flat).reshape(w.shape)
        gain = self.parameter(f"{site}.weight_gain", w.shape[-1], scale=0.3, mean=1)
        if self.form == "weight_norm":
            made = torch._weight_norm(flat, gain[None], 1)
        else:
            n = flat.shape[0]
            made = gain * (flat - flat.mean(0)) / (n * flat.var(0, unbiased=False) + 1e-4).sqrt()
        return made.reshape(w.shape)

    def conv(self, site, x, k, out, stride=1, padding=None, groups=1, bias=False):
        w = self.parameter(f"{site}.weight", k, k, x.shape[-1] // groups, out, scale=(2 / (k * k * out / groups)) ** 0.5)
        y = conv(x, self.formed(site, w), stride, (k - 1) // 2 if padding is None else padding, 1, groups)
        return y + self.parameter(f"{site}.bias", out, scale=0.1) if bias else y

    def norm(self, site, x):
        """x[batch, .., channels]"""
        d = x.shape[-1]
        gain, bias = self.parameter(f"{site}.gain", d, scale=0.3, mean=1), self.parameter(f"{site}.bias", d, scale=0.3)
        if self.norm_kind == "layer":
            return F.layer_norm(x, (d,), gain, bias, 1e-5)
        if f"{site}.running_mean" not in self.running:
            self.running[f"{site}.running_mean"] = torch.randn(d, dtype=self.dtype)
            self.running[f"{site}.running_variance"] = 0.5 + torch.rand(d, dtype=self.dtype)
        flat = x.reshape(-1, d)
        return F.batch_norm(flat, self.running[f"{site}.running_mean"].clone(), self.running[f"{site}.running_variance"].clone(),
                            gain, bias, self.training, 0.1, 1e-5).reshape(x.shape)

    def head(self, x, classes):
        return x @ self.parameter("head.weight", x.shape[-1], classes, scale=x.shape[-1] ** -0.5)


def halved(x):
    return F.avg_pool2d(x.permute(0, 3, 1, 2), 2, 2, ceil_mode=True, count_include_pad=False).permute(0, 2, 3, 1)


def pre_activation(net, image, widths, blocks, classes):
    """He et al. 2016: bottlenecks, and a projection of what the branch reads."""
    x = net.conv("stem", image, 3, widths[0])
    for i in range(len(widths) * blocks):
        width, at, stride = widths[i // blocks], f"layers.{i}.conv", 2 if i >= blocks and i % blocks == 0 else 1
        y = F.relu(net.norm(f"{at}.norm1", x))
        skip = net.conv(f"{at}.skip", y, 1, 2 * width, stride) if stride > 1 or x.shape[-1] != 2 * width else x
        y = F.relu(net.norm(f"{at}.inner_norm", net.conv(f"{at}.in", y, 1, width)))
        y = F.relu(net.norm(f"{at}.inner_norm2", net.conv(f"{at}.middle", y, 3, width, stride)))
        x = skip + net.conv(f"{at}.out", y, 1, 2 * width)
    return net.head(F.relu(net.norm("final.norm1", x)).mean((1, 2)), classes)


def resnet_d(net, image, widths, blocks, classes):
    x = image
    for site, width, stride in (("stem1", widths[0] // 2, 2), ("stem2", widths[0] // 2, 1), ("stem", widths[0], 1)):
        x = F.relu(net.norm(f"{site}.norm", net.conv(site, x, 3, width, stride)))
    x = F.max_pool2d(x.permute(0, 3, 1, 2), 3, 2, 1).permute(0, 2, 3, 1)
    for i in range(len(widths) * blocks):
        width, at, stride = widths[i // blocks], f"layers.{i}.conv", 2 if i >= blocks and i % blocks == 0 else 1
        y = F.relu(net.norm(f"{at}.inner_norm", net.conv(f"{at}.in", x, 3, width, stride)))
        y = net.norm(f"{at}.norm1", net.conv(f"{at}.out", y, 3, width))
        if stride > 1:
            x = net.norm(f"{at}.skip_norm", net.conv(f"{at}.skip", halved(x), 1, width))
        x = F.relu(x + y)
    return net.head(x.mean((1, 2)), classes)


def nf_resnet(net, image, widths, blocks, classes, alpha=0.2):
    """Brock et al. 2021, with the count of their code: a block that projects begins anew, with one branch added."""
    x, variance = net.conv("stem", image, 3, widths[0]), 1.0
    for i in range(len(widths) * blocks):
        width, at, stride = widths[i // blocks], f"layers.{i}.conv", 2 if i >= blocks and i % blocks == 0 else 1
        y = GAMMA * F.relu(x / variance ** 0.5)
        if stride > 1:
            x, variance = net.conv(f"{at}.skip", halved(y), 1, width), 1.0
        y = GAMMA * F.relu(net.conv(f"{at}.in", y, 3, width, stride, bias=True))
        x = x + alpha * net.conv(f"{at}.out", y, 3, width, bias=True)
        variance += alpha ** 2
    return net.head(F.relu(x).mean((1, 2)), classes)


def convnext(net, image, widths, blocks, classes):
    x = net.norm("stem.norm", net.conv("stem", image, 2, widths[0], 2, 0, bias=True))
    for i in range(len(widths) * blocks):
        width, at = widths[i // blocks], f"layers.{i}.conv"
        if i >= blocks and i % blocks == 0:
            x = net.norm(f"{at}.skip_norm", x)
            x = F.pad(x, (0, 0, 0, x.shape[2] % 2, 0, x.shape[1] % 2))
            x = net.conv(f"{at}.skip", x, 2, width, 2, 0, bias=True)
        y = net.norm(f"{at}.inner_norm", net.conv(f"{at}.depthwise", x, 7, width, groups=width))
        y = F.gelu(net.conv(f"{at}.in", y, 1, 4 * width, bias=True))
        x = x + net.parameter(f"{at}.g", width) * net.conv(f"{at}.out", y, 1, width, bias=True)
    return net.head(net.norm("head_norm", x.mean((1, 2))), classes)


def without_norms(net, image, widths, blocks, classes, block):
    """`block(at, x, f)` is what a block makes of x beside f(x), two convolutions; a projection of x takes the place of x."""
    x = net.conv("stem", image, 3, widths[0])
    for i in range(len(widths) * blocks):
        width, at, stride = widths[i // blocks], f"layers.{i}.conv", 2 if i >= blocks and i % blocks == 0 else 1
        skip = net.conv(f"{at}.skip", x, 1, width, stride) if stride > 1 else x
        f = lambda y, act: net.conv(f"{at}.out", act(net.conv(f"{at}.in", y, 3, width, stride, bias=True)), 3, width, bias=True)
        x = block(at, x, skip, f)
    return net.head(x.mean((1, 2)), classes)


def fixup(net, *sizes):
    """Zhang et al. 2019, with one bias before a branch and one behind it."""
    number = lambda at, name, mean: net.parameter(f"{at}.{name}", 1, scale=0.3, mean=mean)
    return without_norms(net, *sizes, lambda at, x, skip, f: F.relu(
        skip + number(at, "g", 1) * f(x + number(at, "a", 0), F.relu) + number(at, "b", 0)))


def skipinit(net, *sizes):
    """De and Smith 2020, before an activation; norma's inner activation is GELU unless told otherwise."""
    return without_norms(net, *sizes, lambda at, x, skip, f: skip + net.parameter(f"{at}.g", 1) * f(F.relu(x), F.gelu))


CASES = [("resnet_v2", pre_activation, "batch", "plain", {"expansion": 2}),
         ("resnet_v2", pre_activation, "batch", "weight_norm", {"expansion": 2}),
         ("resnet_v2", pre_activation, "batch", "spectral", {"expansion": 2}),
         ("resnet_d", resnet_d, "batch", "standardised", {"stem": 7, "deep_stem": 1}),
         ("nf_resnet", nf_resnet, "batch", "standardised", {}),
         ("convnext", convnext, "layer", "plain", {"stem": 2}), ("fixup", fixup, "layer", "plain", {}),
         ("skipinit", skipinit, "layer", "plain", {})]


def mixer(writer, dtype):
    """Tolstikhin et al. 2021: a perceptron over patches and one over channels, each before its norm."""
    t = TORCH_DTYPES[dtype]
    net, width, layers, patch, classes = Net(t, "layer"), 6, 2, 2, 3
    image, targets = torch.randn(3, 6, 4, 2, dtype=t), torch.randint(classes, (3,))
    linear = lambda site, x, out: (x @ net.parameter(f"{site}.weight", x.shape[-1], out, scale=x.shape[-1] ** -0.5)
                                   + net.parameter(f"{site}.bias", out, scale=0.1))
    mlp = lambda site, x, hidden: linear(f"{site}.out", F.gelu(linear(f"{site}.in", x, hidden)), x.shape[-1])
    kernel = net.parameter("embedding.patch", patch, patch, 2, width)
    x = (conv(image, kernel, patch) + net.parameter("embedding.bias", width)).flatten(1, 2)
    for i in range(layers):
        at = f"layers.{i}"
        x = x + mlp(f"{at}.token", net.norm(f"{at}.token.norm1", x).transpose(1, 2), width // 2).transpose(1, 2)
        x = x + mlp(f"{at}.ffn", net.norm(f"{at}.ffn.norm1", x), 4 * width)
    logits = net.head(net.norm("final.norm1", x).mean(1), classes)
    loss = F.cross_entropy(logits, targets).reshape(1)
    gradients = torch.autograd.grad(loss, list(net.p.values()))
    writer.add("mixer", "mixer", dtype, {"image": image, "targets": targets, **net.p},
               {"y": loss, "logits": logits, **{f"d/{k}": g for k, g in zip(net.p, gradients)}}, image.numel() * 16, layers=layers,
               width=width, classes=classes, batch=3, norm="layer",
               sizes={"image_height": 6, "image_width": 4, "image_channels": 2, "patch": patch})


def blocks(writer, dtype):
    mixer(writer, dtype)
    t = TORCH_DTYPES[dtype]
    widths, each, classes = [4, 6, 8], 2, 5
    for scheme, logits, norm, form, sizes in CASES:
        net = Net(t, norm, form)
        image = torch.randn(6, 34 if "stem" in sizes else 9, 30 if "stem" in sizes else 10, 3, dtype=t)
        targets = torch.randint(classes, (6,))
        net.training = True
        loss = F.cross_entropy(logits(net, image, widths, each, classes), targets).reshape(1)
        gradients = torch.autograd.grad(loss, list(net.p.values()))
        net.training = False
        with torch.no_grad():
            expected = {"y": loss.detach(), "logits": logits(net, image, widths, each, classes),
                        **{f"d/{k}": g for k, g in zip(net.p, gradients)}}
        p = {k: v.detach() for k, v in net.p.items()}
        writer.add(f"{scheme} {form}", "resnet", dtype, {"image": image, "targets": targets, **p, **net.running}, expected,
                   image.numel() * 64, layers=len(widths) * each, width=widths[0], classes=classes, batch=6, scheme=scheme, norm=norm,
                   weight_form=form, sizes={"image_height": image.shape[1], "image_width": image.shape[2], "image_channels": 3,
                                            "stages": len(widths), "width2": widths[1], "width3": widths[2], **sizes})
