#include "models/branch_bench.h"

#include <cmath>

#include "models/moment_sum.h"
#include "models/straight_weights.h"
#include "norma/backends/cpu.h"
#include "norma/backends/device.h"
#include "norma/core/random.h"
#include "norma/graph/differentiate.h"
#include "norma/ops/elementwise.h"
#include "norma/ops/reduce.h"

namespace norma {
namespace {

constexpr int kFirstScale = -4, kScales = 9, kCorrelations = 7;
constexpr int kFirstCrossScale = -2, kCrossScales = 5, kCrossCorrelations = 4;
constexpr double kStep = 3e-3;  // of a change, as a share of what it changes; far above rounding, still linear

}  // namespace

BranchBench::BranchBench(const Build& build, const BranchKind& kind, const BranchShape& shape, std::int64_t time,
                         std::int64_t memory_time)
    : kind_(kind),
      shape_(shape),
      memory_time_(memory_time),
      time_(static_cast<double>(time)),
      width_(shape.width),
      backward_(make_session(plan(build, true), {.members = shape.seeds, .threads = 1})),
      forward_(make_session(plan(build, false), {.members = shape.seeds, .threads = 1})) {
  for (int m = 0; m < shape.seeds; ++m) {
    for (Session* session : {backward_.get(), forward_.get()}) {
      initialise(*session, specs_, seed(m), m);
      for (const ParameterSpec& spec : specs_) {
        if (spec.name.ends_with("weight")) straighten(*session, spec, m);
      }
    }
  }
}

BranchTable BranchBench::measure() {
  std::vector<BranchResponse> points;
  for (int scale = 0; scale < kScales; ++scale) {
    for (int c = 0; c < kCorrelations; ++c)
      points.push_back(point(std::exp2(kFirstScale + scale), static_cast<double>(c) / (kCorrelations - 1), 0).query);
  }
  return {kFirstScale, kScales, kCorrelations, std::move(points)};
}

CrossTable BranchBench::measure_split() {
  std::vector<CrossResponse> points;
  for (int scale = 0; scale < kScales; ++scale) {
    for (int c = 0; c < kCorrelations; ++c) {
      const double correlation = static_cast<double>(c) / (kCorrelations - 1);
      points.push_back(point(std::exp2(kFirstScale + scale), correlation, correlation, "x"));
    }
  }
  return {kFirstScale, kScales, kCorrelations, 1, std::move(points)};
}

CrossTable BranchBench::measure_cross() {
  std::vector<CrossResponse> points;
  for (int scale = 0; scale < kCrossScales; ++scale) {
    for (int c = 0; c < kCrossCorrelations; ++c) {
      for (int m = 0; m < kCorrelations; ++m)
        points.push_back(point(std::exp2(kFirstCrossScale + scale), static_cast<double>(c) / (kCrossCorrelations - 1),
                               static_cast<double>(m) / (kCorrelations - 1)));
    }
  }
  return {kFirstCrossScale, kCrossScales, kCrossCorrelations, kCorrelations, std::move(points)};
}

std::shared_ptr<const Plan> BranchBench::plan(const Build& build, bool derivatives) {
  Graph graph;
  Parameters parameters(graph, DType::f32);
  const Shape rows{shape_.batch, shape_.time, width_};
  const Wire x = graph.input("x", {rows, DType::f32});
  const Wire memory =
      memory_time_ == 0 ? Wire() : graph.input("memory", {{shape_.batch, memory_time_, width_}, DType::f32});
  const Wire y = build(parameters, x, memory);
  graph.output("y", y);
  if (derivatives) {
    const Wire weighted = sum_all(y * graph.input("g", {rows, DType::f32}));
    Wires wrt = {x, graph.find(kind_.last_weight())};
    if (memory) wrt.push_back(memory);
    const Wires gradients = differentiate(weighted, wrt);
    graph.output("dx", gradients[0]);
    graph.output("dw", gradients[1]);
    if (memory) graph.output("dmemory", gradients[2]);
  }
  specs_ = parameters.specs();
  return compile(graph, cpu_backend());
}

const std::vector<float>& BranchBench::normals(const std::string& name, int member, std::size_t count) {
  std::vector<float>& numbers = normals_[name + "#" + std::to_string(member)];
  if (numbers.empty()) {
    const RandomStream stream(seed(member), name);
    stream.each_normal(count, [&](std::size_t, double normal) { numbers.push_back(static_cast<float>(normal)); });
    // Each row with rms 1, so that little scatter is left.
    const std::size_t width = static_cast<std::size_t>(width_);
    for (std::size_t begin = 0; begin < count; begin += width) {
      double square = 0;
      for (std::size_t i = begin; i < begin + width; ++i) square += static_cast<double>(numbers[i]) * numbers[i];
      const auto factor = static_cast<float>(std::sqrt(static_cast<double>(width) / square));
      for (std::size_t i = begin; i < begin + width; ++i) numbers[i] *= factor;
    }
  }
  return numbers;
}

void BranchBench::fill(Session& session, const char* input, int member, double scale, double shared, const char* name,
                       std::span<const float> onto) {
  const Handle tensor = session.handle(input);
  std::vector<float> target(tensor.elements());
  const std::size_t width = static_cast<std::size_t>(width_);
  const std::size_t sequence = target.size() / static_cast<std::size_t>(shape_.batch);
  const std::vector<float>& own = normals(std::string(name) + ".own", member, target.size());
  const std::vector<float>& common =
      normals(std::string(name) + ".shared", member, width * static_cast<std::size_t>(shape_.batch));
  const auto a = static_cast<float>(scale * std::sqrt(1 - shared)), b = static_cast<float>(scale * std::sqrt(shared));
  for (std::size_t i = 0; i < target.size(); ++i)
    target[i] = a * own[i] + b * common[i / sequence * width + i % width] + (onto.empty() ? 0.0f : onto[i]);
  session.write<float>(tensor, target, member);
}

CrossResponse BranchBench::point(double scale, double correlation, double memory_correlation, const char* memory) {
  const double square = scale * scale;
  CrossResponse all;
  BranchResponse& response = all.query;
  for (int m = 0; m < shape_.seeds; ++m) {
    fill(*backward_, "x", m, scale, correlation, "x");
    if (memory_time_ > 0) fill(*backward_, "memory", m, scale, memory_correlation, memory);
  }
  put_back("x");
  if (memory_time_ > 0) put_back("memory");
  for (const bool shared : {false, true}) {
    for (int m = 0; m < shape_.seeds; ++m) fill(*backward_, "g", m, 1, shared ? 1 : 0, "g");
    backward_->run();
    MomentSum output, gradient, memory_gradient;
    double weight = 0;
    for (int m = 0; m < shape_.seeds; ++m) {
      output.add(backward_->read<float>("y", m), width_, shape_.time);
      gradient.add(backward_->read<float>("dx", m), width_, shape_.time);
      if (memory_time_ > 0) memory_gradient.add(backward_->read<float>("dmemory", m), width_, memory_time_);
      for (const float w : backward_->read<float>("dw", m)) weight += static_cast<double>(w) * w;
    }
    response.output = output.mean(1 / square);
    (shared ? response.gradient_shared : response.gradient_own) = gradient.mean();
    if (memory_time_ > 0) (shared ? all.gradient_shared : all.gradient_own) = memory_gradient.mean();
    (shared ? response.weight_shared : response.weight_own) =
        weight / static_cast<double>(shape_.seeds * shape_.batch) / square;
  }
  lengthen(response);
  keep_outputs();
  for (const bool shared : {false, true}) {
    (shared ? response.change_shared : response.change_own) = changed_by("x", kStep * scale, shared);
    if (memory_time_ > 0) (shared ? all.change_shared : all.change_own) = changed_by("memory", kStep * scale, shared);
  }
  measure_noise(response, square);
  return all;
}

void BranchBench::put_back(const char* input) {
  for (int m = 0; m < shape_.seeds; ++m) forward_->write<float>(input, backward_->read<float>(input, m), m);
}

Moments BranchBench::changed_by(const char* input, double step, bool shared) {
  // Of x the numbers have always been called so.
  const std::string name = std::string_view(input) == "x" ? "change" : "memory.change";
  for (int m = 0; m < shape_.seeds; ++m)
    fill(*forward_, input, m, step, shared ? 1 : 0, name.c_str(), backward_->read<float>(input, m));
  const Moments moved = changed(1 / (step * step));
  put_back(input);
  return moved;
}

void BranchBench::lengthen(BranchResponse& response) const {
  const double measured = static_cast<double>(shape_.time);
  const double token = response.weight_own / measured;
  const double pair = measured > 1 ? (response.weight_shared - response.weight_own) / (measured * (measured - 1)) : 0;
  response.weight_own = time_ * token;
  response.weight_shared = time_ * token + time_ * (time_ - 1) * pair;
}

void BranchBench::keep_outputs() {
  before_.clear();
  for (int m = 0; m < shape_.seeds; ++m) before_.push_back(backward_->read<float>("y", m));
}

Moments BranchBench::changed(double scale) {
  forward_->run();
  MomentSum sum;
  for (int m = 0; m < shape_.seeds; ++m) {
    std::vector<float> moved = before_[static_cast<std::size_t>(m)];
    const std::vector<float> y = forward_->read<float>("y", m);
    for (std::size_t i = 0; i < moved.size(); ++i) moved[i] = y[i] - moved[i];
    sum.add(moved, width_, shape_.time);
  }
  return sum.mean(scale);
}

void BranchBench::measure_noise(BranchResponse& response, double square) {
  for (const BranchKind::Weight& weight : kind_.weights) {
    const Moments moved = noise(weight, square);
    Moments& sum = weight.part == BranchKind::Weight::Part::last    ? response.noise_last
                   : weight.part == BranchKind::Weight::Part::first ? response.noise_first
                                                                    : response.noise_scores;
    sum = {sum.own + moved.own, sum.shared + moved.shared};
  }
}

Moments BranchBench::noise(const BranchKind::Weight& part, double square) {
  const std::string& name = part.name;
  const std::size_t columns = static_cast<std::size_t>(forward_->plan().slot(name).type.shape.channels());
  const std::size_t block = columns / static_cast<std::size_t>(part.blocks);
  const std::size_t first = static_cast<std::size_t>(part.block) * block, end = first + block;
  const double step = kStep / std::sqrt(static_cast<double>(width_));
  std::vector<std::vector<float>> kept;
  for (int m = 0; m < shape_.seeds; ++m) {
    std::vector<float> weight = forward_->read<float>(name, m);
    kept.push_back(weight);
    const std::vector<float>& normal = normals(name + ".noise", m, weight.size());
    for (std::size_t i = 0; i < weight.size(); ++i) {
      const std::size_t column = i % columns;
      if (column < first || column >= end) continue;
      weight[i] += static_cast<float>(step) * normal[i];
    }
    forward_->write<float>(name, weight, m);
  }
  const Moments moved = changed(1 / (step * step * square));
  for (int m = 0; m < shape_.seeds; ++m) forward_->write<float>(name, kept[static_cast<std::size_t>(m)], m);
  return moved;
}

}  // namespace norma
