#include "bench/gpu_case.h"

namespace norma::bench {
namespace {

ModelConfig images(const char* family, std::int64_t layers, std::int64_t width, std::int64_t batch) {
  ModelConfig model{.family = family, .layers = layers, .width = width, .classes = 10, .batch = batch};
  model.sizes = {{"image_height", 32}, {"image_width", 32}, {"image_channels", 3}};
  return model;
}

// Blocks of two convolutions in stages; norms over the batch, of the batch and followed.
ModelConfig resnet(std::int64_t blocks, std::int64_t stages, std::int64_t width, std::int64_t batch,
                   const char* scheme) {
  ModelConfig model = images("resnet", blocks, width, batch);
  model.sizes["stages"] = static_cast<double>(stages);
  model.scheme = scheme;
  model.norm = NormKind::batch;
  model.activation = Activation::relu;
  return model;
}

// Two blocks down and three up on each of four levels of 64, 128, 128 and 128 channels, attention at 16 x 16 and in the
// middle: 8,952,067 parameters and 3.2 GFLOP an image forward, as the network that PyTorch is measured on
// (Unet.IsTheStandardNetwork).
ModelConfig unet(std::int64_t batch) {
  ModelConfig model = images("unet", 8, 64, batch);
  model.sizes.insert({{"levels", 4}, {"width2", 128}, {"width3", 128}, {"width4", 128}, {"attention", 16}});
  model.classes = 0;
  model.heads = 1;
  model.scheme = "unet";
  model.norm = NormKind::group;
  model.activation = Activation::silu;
  return model;
}

ModelConfig dit(std::int64_t layers, std::int64_t width, std::int64_t batch) {
  ModelConfig model = images("dit", layers, width, batch);
  model.sizes.insert({{"patch", 4}, {"time_features", 256}});
  model.classes = 0;
  model.heads = width / 64;
  model.scheme = "adaln_zero";
  model.activation = Activation::gelu_tanh;
  return model;
}

// The size of Cora, with loops: 2,708 nodes, 1,433 features, 7 classes.
ModelConfig graph(std::int64_t layers) {
  ModelConfig model{.family = "gcn", .layers = layers, .width = 64, .classes = 7, .batch = 1};
  model.sizes = {{"nodes", 2708}, {"edges", 13264}, {"features", 1433}};
  model.scheme = "res_plus";
  return model;
}

}  // namespace

std::vector<GpuCase> family_cases() {
  using enum Precision;
  const auto row = [](const std::string& name, const ModelConfig& model, int members, Precision precision) {
    const bool graph = std::string_view(model.family->name) == "gcn";
    return GpuCase{
        .name = name + (members > 1 ? " x" + std::to_string(members) : "") + " " + std::string(name_of(precision)),
        .model = model,
        .members = members,
        .precision = precision,
        .thing = graph ? "nodes" : "images",
        .things = graph ? static_cast<std::int64_t>(model.sizes.at("nodes")) : model.batch};
  };
  const ModelConfig resnet18 = resnet(8, 4, 64, 256, "resnet_v1"), resnet20 = resnet(9, 3, 16, 128, "resnet_v1");
  const ModelConfig resnet110 = resnet(54, 3, 16, 128, "resnet_v2"), gcn = graph(32);
  ModelConfig vit = images("vit", 12, 192, 256);
  vit.heads = 3;
  vit.sizes["patch"] = 4;
  return {row("ResNet-18 32x32 B=256", resnet18, 1, bf16),
          row("ResNet-18 32x32 B=256", resnet18, 1, tf32),
          row("ResNet-20 32x32 B=128", resnet20, 1, bf16),
          row("ResNet-20 32x32 B=128", resnet20, 32, bf16),
          row("ResNet-110 pre 32x32 B=128", resnet110, 1, bf16),
          row("ViT d=192 L=12 p=4 32x32 B=256", vit, 1, bf16),
          row("DiT d=384 L=12 p=4 32x32 B=256", dit(12, 384, 256), 1, bf16),
          row("U-Net base 64 32x32 B=128", unet(128), 1, bf16),
          row("GCN d=64 L=32 of Cora's size", gcn, 1, f32),
          row("GCN d=64 L=32 of Cora's size", gcn, 64, f32),
          row("GCN d=64 L=32 of Cora's size", gcn, 1, tf32),
          row("GCN d=64 L=32 of Cora's size", gcn, 64, tf32)};
}

}  // namespace norma::bench
