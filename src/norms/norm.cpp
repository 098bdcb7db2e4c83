#include "norma/norms/norm.h"

#include <algorithm>
#include <cmath>

#include "norma/core/error.h"
#include "norma/core/names.h"

namespace norma {
namespace {

using Extent = NormTensor::Extent;
using Start = NormTensor::Start;

const std::vector<NormInfo>& table() {
  static const NormTensor gain{"gain"}, bias{"bias", Extent::channels, 0};
  static const std::vector<NormInfo> infos = {
      {NormKind::layer,
       "layer",
       "LayerNorm",
       "y = gain (x - mean(x)) / sqrt(var(x) + eps) + bias",
       "Ba, Kiros, Hinton 2016, arXiv 1607.06450",
       NormReach::row,
       1e-5,
       {gain, bias},
       {}},
      {NormKind::weightless,
       "weightless",
       "LayerNorm without parameters",
       "y = (x - mean(x)) / sqrt(var(x) + eps)",
       "Xu et al. 2019, arXiv 1911.07013",
       NormReach::row,
       1e-5,
       {},
       {}},
      {NormKind::rms,
       "rms",
       "RMSNorm",
       "y = gain x / sqrt(mean(x^2) + eps)",
       "Zhang, Sennrich 2019, arXiv 1910.07467",
       NormReach::row,
       1e-6,
       {gain},
       {}},
      {NormKind::prms,
       "prms",
       "pRMSNorm",
       "y = gain x / sqrt(mean over the first p d channels of x^2 + eps)",
       "Zhang, Sennrich 2019, arXiv 1910.07467",
       NormReach::row,
       1e-6,
       {gain},
       {}},
      {NormKind::scale,
       "scale",
       "ScaleNorm",
       "y = g0 x / max(norm(x), eps)",
       "Nguyen, Salazar 2019, arXiv 1910.05895",
       NormReach::row,
       1e-5,
       {{"g0", Extent::one, 1, Start::sqrt_width}},
       {}},
      {NormKind::dyt,
       "dyt",
       "DyT",
       "y = gain tanh(alpha x) + bias",
       "Zhu et al. 2025, arXiv 2503.10622",
       NormReach::element,
       0,
       {{"alpha", Extent::one, 0.5}, gain, bias},
       {}},
      {NormKind::batch,
       "batch",
       "BatchNorm",
       "y = gain (x - mean) / sqrt(var + eps) + bias over all rows of a channel",
       "Ioffe, Szegedy 2015, arXiv 1502.03167",
       NormReach::batch_channel,
       1e-5,
       {gain, bias},
       {{"running_mean", Extent::channels, 0}, {"running_variance", Extent::channels, 1}}},
      {NormKind::instance,
       "instance",
       "InstanceNorm",
       "y = gain (x - mean) / sqrt(var + eps) + bias over one sample's channel",
       "Ulyanov, Vedaldi, Lempitsky 2016, arXiv 1607.08022",
       NormReach::sample_group,
       1e-5,
       {gain, bias},
       {}},
      {NormKind::group,
       "group",
       "GroupNorm",
       "y = gain (x - mean) / sqrt(var + eps) + bias over one sample's group",
       "Wu, He 2018, arXiv 1803.08494",
       NormReach::sample_group,
       1e-5,
       {gain, bias},
       {}},
      {NormKind::sample,
       "sample",
       "LayerNorm of whole samples",
       "y = gain (x - mean) / sqrt(var + eps) + bias over all positions and channels of one sample",
       "Ba, Kiros, Hinton 2016, arXiv 1607.06450; GroupNorm with one group",
       NormReach::sample_group,
       1e-5,
       {gain, bias},
       {}},
      {NormKind::graph,
       "graph",
       "GraphNorm",
       "y = gain z / sqrt(mean(z^2) + eps) + bias, z = x - alpha mean, over the nodes of a graph",
       "Cai et al. 2021, arXiv 2009.03294",
       NormReach::batch_channel,
       1e-5,
       {{"alpha"}, gain, bias},
       {}},
      {NormKind::pair,
       "pair",
       "PairNorm",
       "y = z / sqrt(mean(|z|^2) + eps), z = x - mean, over the nodes of a graph",
       "Zhao, Akoglu 2020, arXiv 1909.12223",
       NormReach::batch,
       1e-6,
       {},
       {}},
      {NormKind::mean,
       "mean",
       "MeanNorm",
       "y = x - mean over the nodes of a graph",
       "Yang et al. 2020, arXiv 2003.13663",
       NormReach::batch_channel,
       0,
       {},
       {}},
  };
  return infos;
}

}  // namespace

double NormTensor::initial_value(std::int64_t width) const {
  return start == Start::sqrt_width ? std::sqrt(static_cast<double>(width)) : initial;
}

std::span<const NormInfo> norms() { return table(); }

const NormInfo& norm(NormKind kind) {
  return *std::find_if(table().begin(), table().end(), [&](const NormInfo& info) { return info.kind == kind; });
}

const NormInfo& norm(std::string_view name) {
  std::vector<std::string> names;
  for (const NormInfo& info : table()) {
    if (info.name == name || std::string(info.name) + "norm" == name) return info;
    names.emplace_back(info.name);
  }
  fail("there is no norm named '{}'{}; known are {}", name, did_you_mean(name, names), fmt::join(names, ", "));
}

std::string_view name_of(NormKind kind) { return norm(kind).name; }

Wire& NormWires::at(std::string_view name) {
  if (name == "gain") return gain;
  if (name == "bias") return bias;
  if (name == "alpha") return alpha;
  if (name == "g0") return g0;
  if (name == "running_mean") return running.mean;
  NORMA_ASSERT(name == "running_variance");
  return running.variance;
}

NormWires declare_norm(Graph& graph, const NormInfo& info, std::int64_t width, DType dtype) {
  NormWires wires;
  for (const NormTensor& tensor : info.parameters) {
    wires.at(tensor.name) = graph.parameter(tensor.name, {tensor.shape(width), dtype});
  }
  for (const NormTensor& tensor : info.states) {
    wires.at(tensor.name) = graph.state(tensor.name, {tensor.shape(width), dtype});
  }
  return wires;
}

Wire apply_norm(const NormInfo& info, Wire x, const NormWires& wires, const NormSettings& settings) {
  const Scalar eps = settings.eps ? Scalar(settings.eps) : Scalar(info.eps);
  switch (info.kind) {
    case NormKind::layer: return layer_norm(x, wires.gain, wires.bias, eps);
    case NormKind::weightless: return layer_norm(x, {}, {}, eps);
    case NormKind::rms: return rms_norm(x, wires.gain, eps);
    case NormKind::prms: return prms_norm(x, wires.gain, settings.fraction, eps);
    case NormKind::scale: return scale_norm(x, wires.g0, eps);
    case NormKind::dyt: return dyt(x, wires.alpha, wires.gain, wires.bias);
    case NormKind::batch:
      return settings.mode == NormMode::train
                 ? batch_norm(x, wires.gain, wires.bias, wires.running, eps, settings.momentum)
                 : batch_norm_eval(x, wires.gain, wires.bias, wires.running, eps);
    case NormKind::instance: return instance_norm(x, wires.gain, wires.bias, eps);
    case NormKind::group: return group_norm(x, settings.groups, wires.gain, wires.bias, eps);
    case NormKind::sample: return group_norm(x, 1, wires.gain, wires.bias, eps);
    case NormKind::graph: return graph_norm(x, wires.alpha, wires.gain, wires.bias, eps, settings.segments);
    case NormKind::pair: return pair_norm(x, eps, settings.segments);
    case NormKind::mean: return mean_norm(x, settings.segments);
  }
  fail("norm '{}' cannot be applied", info.name);
}

}  // namespace norma
