"""Cases of images for parity_test: convolutions, pooling and whole residual networks."""

import json
import os
import pathlib
import struct

import torch
import torch.nn.functional as F

TORCH_DTYPES = {"f32": torch.float32, "f64": torch.float64}


def reference_model(name):
    """The weights of a model of the data collection beside the repository, or in $NORMA_DATA; None where they are not."""
    beside = pathlib.Path(__file__).resolve().parents[3] / "shared/data"
    path = pathlib.Path(os.environ.get("NORMA_DATA", beside)) / "tiny-reference-models" / f"{name}.safetensors"
    if not path.exists():
        print(f"reference: {path} is not there; its model is left out")
        return None
    return path


def conv(x, weight, stride=1, padding=0, dilation=1, groups=1):
    """x[batch, height, width, in], weight[height, width, in / groups, out]"""
    y = F.conv2d(x.permute(0, 3, 1, 2), weight.permute(3, 2, 0, 1).contiguous(), None, stride, padding, dilation, groups)
    return y.permute(0, 2, 3, 1)


def transposed(x, weight, stride=1, padding=0, dilation=1, groups=1, output_padding=0):
    """x[batch, height, width, in], weight[height, width, out / groups, in]"""
    y = F.conv_transpose2d(x.permute(0, 3, 1, 2), weight.permute(3, 2, 0, 1), None, stride, padding, output_padding, groups, dilation)
    return y.permute(0, 2, 3, 1)


def ops(writer, dtype, differentiable):
    t = TORCH_DTYPES[dtype]
    cases = [((3, 7, 6, 5), (3, 3, 5, 4), dict(padding=1)), ((2, 9, 8, 6), (3, 3, 3, 4), dict(stride=2, padding=1, groups=2)),
             ((2, 8, 8, 3), (7, 7, 3, 5), dict(stride=2, padding=3)), ((2, 9, 9, 4), (3, 3, 1, 4), dict(padding=2, dilation=2, groups=4)),
             ((33, 8, 8, 16), (3, 3, 16, 32), dict(stride=2, padding=1)), ((4, 6, 5, 8), (1, 1, 8, 3), dict(stride=2))]
    for x_shape, w_shape, options in cases:
        options = {"stride": 1, "padding": 0, "dilation": 1, "groups": 1, **options}
        x, w = torch.randn(x_shape, dtype=t), torch.randn(w_shape, dtype=t)
        differentiable(writer, f"conv2d {x_shape} {w_shape} {options}", "conv2d", dtype, {"x": x, "w": w},
                       lambda x, w: conv(x, w, **options), x.numel() // x_shape[3] * w.numel() // w_shape[3] // 9, **options)
    grown = [((3, 4, 5, 6), (4, 4, 3, 6), dict(stride=2, padding=1)), ((2, 3, 3, 4), (3, 3, 5, 4), dict(stride=2, padding=1, output_padding=1)),
             ((2, 4, 3, 6), (3, 2, 2, 6), dict(stride=3, groups=3, output_padding=2)), ((9, 8, 8, 32), (4, 4, 16, 32), dict(stride=2, padding=1)),
             ((2, 5, 4, 4), (3, 3, 1, 4), dict(padding=1, dilation=2, groups=4))]
    for x_shape, w_shape, options in grown:
        options = {"stride": 1, "padding": 0, "dilation": 1, "groups": 1, "output_padding": 0, **options}
        x, w = torch.randn(x_shape, dtype=t), torch.randn(w_shape, dtype=t)
        differentiable(writer, f"transposed_conv2d {x_shape} {w_shape} {options}", "transposed_conv2d", dtype, {"x": x, "w": w},
                       lambda x, w: transposed(x, w, **options), x.numel() // x_shape[3] * w.numel() // w_shape[3] // 4, **options)
    for size, stride, padding in ((2, 2, 0), (3, 2, 1)):
        x = torch.randn(2, 7, 8, 5, dtype=t)
        differentiable(writer, f"max_pool {size} {stride} {padding}", "max_pool", dtype, {"x": x},
                       lambda x: F.max_pool2d(x.permute(0, 3, 1, 2), size, stride, padding).permute(0, 2, 3, 1), size * size,
                       size=size, stride=stride, padding=padding)
    for batch, positions, width in ((3, 5, 7), (2, 31, 33)):
        x, scale, shift = (torch.randn(batch, n, width, dtype=t) for n in (positions, 1, 1))
        differentiable(writer, f"modulate {batch} {positions} {width}", "modulate", dtype,
                       {"x": x, "scale": scale, "shift": shift}, lambda x, scale, shift: x * (1 + scale) + shift, positions)
    for factor in (2, 3):
        differentiable(writer, f"upsample {factor}", "upsample", dtype, {"x": torch.randn(2, 3, 5, 7, dtype=t)},
                       lambda x: F.interpolate(x.permute(0, 3, 1, 2), scale_factor=factor, mode="nearest").permute(0, 2, 3, 1),
                       factor * factor, factor=factor)
    for width in (16, 7):
        half = width // 2

        def features(at):
            rates = torch.exp(-torch.log(torch.tensor(10000.0, dtype=t)) * torch.arange(half, dtype=t) / half)
            angles = at[:, None] * rates[None]
            return F.pad(torch.cat([torch.cos(angles), torch.sin(angles)], -1), (0, width % 2))

        differentiable(writer, f"time_features {width}", "time_features", dtype, {"at": torch.rand(5, dtype=t) * 9}, features, 16,
                       width=width)


def resnet_logits(p, running, image, strides, training):
    """Post-activation blocks behind a stem of 7 x 7 and max pooling; without the head's bias."""
    def bn(site, x):
        mean, variance = running[f"{site}.running_mean"].clone(), running[f"{site}.running_variance"].clone()
        return F.batch_norm(x.permute(0, 3, 1, 2), mean, variance, p[f"{site}.gain"], p[f"{site}.bias"], training, 0.1,
                            1e-5).permute(0, 2, 3, 1)

    x = F.relu(bn("stem.norm", conv(image, p["stem.weight"], 2, 3)))
    x = F.max_pool2d(x.permute(0, 3, 1, 2), 3, 2, 1).permute(0, 2, 3, 1)
    for i, stride in enumerate(strides):
        at = f"layers.{i}.conv"
        y = F.relu(bn(f"{at}.inner_norm", conv(x, p[f"{at}.in.weight"], stride, 1)))
        y = bn(f"{at}.norm1", conv(y, p[f"{at}.out.weight"], 1, 1))
        if f"{at}.skip.weight" in p:
            x = bn(f"{at}.skip_norm", conv(x, p[f"{at}.skip.weight"], stride))
        x = F.relu(x + y)
    return x.mean((1, 2)) @ p["head.weight"]


def add_resnet(writer, name, dtype, p, running, image, targets, widths, blocks):
    strides = [2 if stage > 0 and block == 0 else 1 for stage in range(len(widths)) for block in range(blocks)]
    leaves = {k: v.clone().requires_grad_() for k, v in p.items()}
    loss = F.cross_entropy(resnet_logits(leaves, running, image, strides, True), targets).reshape(1)
    gradients = torch.autograd.grad(loss, list(leaves.values()))
    expected = {"y": loss, "logits": resnet_logits(p, running, image, strides, False),
                **{f"d/{k}": g for k, g in zip(leaves, gradients)}}
    sizes = {"image_height": image.shape[1], "image_width": image.shape[2], "image_channels": image.shape[3], "stem": 7,
             "stages": len(widths), **{f"width{i + 1}": w for i, w in enumerate(widths) if i > 0}}
    writer.add(name, "resnet", dtype, {"image": image, "targets": targets, **p, **running}, expected, image.numel() * 64,
               layers=len(strides), width=widths[0], classes=p["head.weight"].shape[1], batch=image.shape[0], sizes=sizes)


def random_resnet(t, widths, blocks, channels, classes):
    p, running = {}, {}

    def norm(site, width):
        p[f"{site}.gain"], p[f"{site}.bias"] = 1 + 0.3 * torch.randn(width, dtype=t), 0.3 * torch.randn(width, dtype=t)
        running[f"{site}.running_mean"], running[f"{site}.running_variance"] = torch.randn(width, dtype=t), 0.5 + torch.rand(width, dtype=t)

    def weight(site, k, n_in, n_out):
        p[f"{site}.weight"] = torch.randn(k, k, n_in, n_out, dtype=t) * (2 / (k * k * n_out)) ** 0.5

    weight("stem", 7, channels, widths[0])
    norm("stem.norm", widths[0])
    before = widths[0]
    for i in range(len(widths) * blocks):
        width, at = widths[i // blocks], f"layers.{i}.conv"
        weight(f"{at}.in", 3, before, width)
        weight(f"{at}.out", 3, width, width)
        norm(f"{at}.inner_norm", width)
        norm(f"{at}.norm1", width)
        if i >= blocks and i % blocks == 0:
            weight(f"{at}.skip", 1, before, width)
            norm(f"{at}.skip_norm", width)
        before = width
    p["head.weight"] = torch.randn(before, classes, dtype=t) / before ** 0.5
    return p, running


def read_safetensors(path):
    raw = path.read_bytes()
    length = struct.unpack("<Q", raw[:8])[0]
    header = json.loads(raw[8:8 + length])
    tensors = {}
    for name, entry in header.items():
        if name != "__metadata__" and entry["dtype"] == "F32":
            begin, end = (8 + length + offset for offset in entry["data_offsets"])
            tensors[name] = torch.frombuffer(bytearray(raw[begin:end]), dtype=torch.float32).reshape(entry["shape"])
    return tensors


def renamed(tensors, t):
    """From torchvision's names to ours."""
    p, running = {}, {}

    def norm(ours, theirs):
        p[f"{ours}.gain"], p[f"{ours}.bias"] = tensors[f"{theirs}.weight"].to(t), tensors[f"{theirs}.bias"].to(t)
        running[f"{ours}.running_mean"], running[f"{ours}.running_variance"] = (
            tensors[f"{theirs}.running_{name}"].to(t) for name in ("mean", "var"))

    def weight(ours, theirs):
        p[f"{ours}.weight"] = tensors[f"{theirs}.weight"].to(t).permute(2, 3, 1, 0).contiguous()

    weight("stem", "conv1")
    norm("stem.norm", "bn1")
    stages = max(int(name[5]) for name in tensors if name.startswith("layer"))
    layer = 0
    for stage in range(1, stages + 1):
        block = 0
        while f"layer{stage}.{block}.conv1.weight" in tensors:
            ours, theirs = f"layers.{layer}.conv", f"layer{stage}.{block}"
            weight(f"{ours}.in", f"{theirs}.conv1")
            weight(f"{ours}.out", f"{theirs}.conv2")
            norm(f"{ours}.inner_norm", f"{theirs}.bn1")
            norm(f"{ours}.norm1", f"{theirs}.bn2")
            if f"{theirs}.downsample.0.weight" in tensors:
                weight(f"{ours}.skip", f"{theirs}.downsample.0")
                norm(f"{ours}.skip_norm", f"{theirs}.downsample.1")
            layer, block = layer + 1, block + 1
    p["head.weight"] = tensors["fc.weight"].to(t).T.contiguous()
    return p, running


def resnets(writer, dtype):
    t = TORCH_DTYPES[dtype]
    p, running = random_resnet(t, [4, 6, 8], 2, 3, 5)
    add_resnet(writer, "resnet", dtype, p, running, torch.randn(6, 33, 30, 3, dtype=t), torch.randint(5, (6,)), [4, 6, 8], 2)
    path = reference_model("pico_resnet18")
    if path is None:
        return
    config = json.loads((path.parent / "pico_resnet18_config.json").read_text())
    p, running = renamed(read_safetensors(path), t)
    side, channels = config["image_size"], config["num_channels"]
    add_resnet(writer, "pico_resnet18", dtype, p, running, torch.randn(4, side, side, channels, dtype=t),
               torch.randint(config["num_labels"], (4,)), config["widths"], config["blocks_per_stage"][0])


def tiny_vit(writer, dtype):
    """A model of Hugging Face's with its own reference; its eps is 1e-12 and ours 1e-5, hence the tolerance."""
    path = reference_model("tiny_vit")
    if path is None:
        return
    t = TORCH_DTYPES[dtype]
    config = json.loads((path.parent / "tiny_vit_config.json").read_text())
    reference = json.loads((path.parent / "tiny_vit_logits.json").read_text())
    theirs = {k[4:] if k.startswith("vit.") else k: v.to(t) for k, v in read_safetensors(path).items()}
    p = {"embedding.patch": theirs["embeddings.patch_embeddings.projection.weight"].permute(2, 3, 1, 0),
         "embedding.bias": theirs["embeddings.patch_embeddings.projection.bias"],
         "embedding.class_token": theirs["embeddings.cls_token"][0], "embedding.position": theirs["embeddings.position_embeddings"][0],
         "final.norm1.gain": theirs["layernorm.weight"], "final.norm1.bias": theirs["layernorm.bias"],
         "head.weight": theirs["classifier.weight"].T}
    for i in range(config["num_hidden_layers"]):
        at = f"layers.{i}"
        turned = lambda name: theirs[name].T if theirs[name].dim() == 2 else theirs[name]
        for kind in ("weight", "bias"):
            p[f"{at}.attn.qkv.{kind}"] = torch.cat([turned(f"{at}.attention.{name}_proj.{kind}") for name in "qkv"], -1)
            for name, of in (("attn.out", "attention.o_proj"), ("ffn.in", "mlp.fc1"), ("ffn.out", "mlp.fc2")):
                p[f"{at}.{name}.{kind}"] = turned(f"{at}.{of}.{kind}")
            for name, of in (("attn", "layernorm_before"), ("ffn", "layernorm_after")):
                p[f"{at}.{name}.norm1.{'gain' if kind == 'weight' else 'bias'}"] = theirs[f"{at}.{of}.{kind}"]
    image = torch.tensor(reference["pixels"], dtype=t).permute(1, 2, 0)[None]
    logits = torch.tensor(reference["logits"], dtype=t) - theirs["classifier.bias"]
    writer.add("tiny_vit", "vit", dtype, {"image": image, "targets": torch.zeros(1, dtype=torch.int32), **p}, {"logits": logits}, 1,
               layers=config["num_hidden_layers"], width=config["hidden_size"], heads=config["num_attention_heads"],
               hidden=config["intermediate_size"], classes=reference["num_labels"], batch=1, tolerance=1e-3,
               sizes={"image_height": config["image_size"], "image_width": config["image_size"], "class_token": 1,
                      "image_channels": config["num_channels"], "patch": config["patch_size"]})


def images(writer, dtype, differentiable):
    ops(writer, dtype, differentiable)
    resnets(writer, dtype)
    tiny_vit(writer, dtype)
