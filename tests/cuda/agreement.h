// The same graph on the CPU in f64, on the CPU in f32 and on the GPU in f32: the GPU must be as near to the truth as
// the CPU is, up to a factor and the rounding of the result.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "norma/backends/cpu.h"
#include "norma/backends/cuda.h"
#include "norma/backends/device.h"
#include "norma/core/random.h"
#include "norma/device/cuda/device.h"
#include "norma/graph/graph.h"
#include "norma/ops/optimiser.h"

#define SKIP_WITHOUT_GPU() \
  if (!norma::cuda::presence().usable) GTEST_SKIP() << norma::cuda::presence().why_not

namespace norma::test {

using Tensors = std::map<std::string, std::vector<double>>;

// What a named tensor starts with; below 2^24 and exact in f32.
inline std::vector<double> start_of(const std::string& name, const Type& type, std::uint64_t seed, std::int64_t below) {
  const auto count = static_cast<std::size_t>(type.shape.elements());
  std::vector<double> values(count);
  const RandomStream stream(seed, name);
  if (type.dtype == DType::i32) {
    if (name == "key" || name == "dropout_key") return {7, 0, 3, 0};
    for (std::size_t i = 0; i < count; ++i)
      values[i] = static_cast<double>(stream.below(i, static_cast<std::uint64_t>(below)));
    // Pairs of nodes are sorted by the first.
    if (name == "edges") std::sort(values.begin(), values.begin() + static_cast<std::ptrdiff_t>(count / 2));
    if (name == "segments") std::sort(values.begin(), values.end());
    return values;
  }
  if (name == "control") return {0.01, 0.001, 0, 0.9, 0.99, 1e-8, 0.1, 0.01, 1, 1};
  static const std::map<std::string, double, std::less<>> kNumbers = {
      {"p", 0.25}, {"first", 1}, {"clip", 0.5}, {"scale", 0.75}, {"dropout", 0.25}, {"smoothing", 0.125}};
  if (const auto found = kNumbers.find(name); found != kNumbers.end()) return {found->second};
  const bool positive = name.ends_with("/v") || name.ends_with("variance") || name == "degrees";
  for (std::size_t i = 0; i < count; ++i) {
    const double value = static_cast<float>(stream.normal(i));
    values[i] = positive ? std::abs(value) + 0.125 : value;
  }
  return values;
}

inline void stage_start(Session& session, int member, std::uint64_t seed, std::int64_t below) {
  for (const Role role : {Role::parameter, Role::state, Role::input}) {
    for (const std::string& name : session.plan().slot_names(role)) {
      const Handle tensor = session.handle(name);
      const std::vector<double> values = start_of(name, tensor.type(), seed, below);
      if (tensor.type().dtype == DType::i32) {
        session.write<std::int32_t>(tensor, std::vector<std::int32_t>(values.begin(), values.end()), member);
      } else {
        session.stage_numbers(tensor, member, values);
      }
    }
  }
}

// Outputs, parameters and states after a run.
inline Tensors results_of(Session& session, int member) {
  Tensors results;
  for (const Role role : {Role::computed, Role::parameter, Role::state}) {
    for (const std::string& name : session.plan().slot_names(role)) {
      if (session.plan().slot(name).offset < 0) continue;
      const DType dtype = session.plan().slot(name).type.dtype;
      if (dtype == DType::f32 || dtype == DType::f64) results[name] = session.numbers(name, member);
    }
  }
  return results;
}

inline double largest(const std::vector<double>& values) {
  double most = 0;
  for (const double value : values) most = std::max(most, std::abs(value));
  return most;
}

// NaN where one of the two is NaN and the other is not.
inline double distance(const std::vector<double>& a, const std::vector<double>& b) {
  double most = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    if (a[i] == b[i] || (std::isnan(a[i]) && std::isnan(b[i]))) continue;
    const double apart = std::abs(a[i] - b[i]);
    if (!(apart <= most)) most = apart;
  }
  return most;
}

struct Closeness {
  double factor = 8;    // times the CPU's own distance to the truth
  double floor = 4e-6;  // of the tensor's largest element
  double rest = 0;      // of the largest element of all tensors: what nearly cancels is as good as zero
};

// By tensor: what differs too much, in words.
inline std::string disagreement(const Tensors& truth, const Tensors& cpu, const Tensors& gpu,
                                Closeness closeness = {}) {
  std::string words;
  double most = 0;
  for (const auto& [name, exact] : truth) most = std::max(most, largest(exact));
  for (const auto& [name, exact] : truth) {
    const double scale = largest(exact);
    const double allowed =
        closeness.factor * distance(exact, cpu.at(name)) + closeness.floor * scale + closeness.rest * most;
    const double found = distance(exact, gpu.at(name));
    if (found <= allowed) continue;
    words += fmt::format("{}: {:.3g} off, {:.3g} allowed, largest element {:.3g}\n", name, found, allowed, scale);
  }
  return words;
}

struct Run {
  std::function<void(Graph&, DType)> build;
  std::int64_t below = 2;  // of integer inputs
  bool fuse = true;
  int members = 1;
  int inactive = -1;
  bool tf32 = false;
};

inline std::vector<Tensors> run_on(const Backend& backend, DType dtype, const Run& run, int times = 1) {
  Graph graph;
  run.build(graph, dtype);
  CompileOptions options;
  if (!run.fuse) options.rewrites.emplace();
  const auto session =
      make_session(compile(graph, backend, options), {.members = run.members, .threads = 1, .tf32 = run.tf32});
  for (int member = 0; member < run.members; ++member)
    stage_start(*session, member, static_cast<std::uint64_t>(member + 1), run.below);
  if (run.inactive >= 0) session->set_active(run.inactive, false);
  for (int i = 0; i < times; ++i) session->run();
  std::vector<Tensors> results;
  for (int member = 0; member < run.members; ++member) results.push_back(results_of(*session, member));
  return results;
}

inline std::string disagreement(const Run& run, Closeness closeness = {}, int times = 1) {
  const auto truth = run_on(cpu_backend(), DType::f64, run, times), cpu = run_on(cpu_backend(), DType::f32, run, times),
             gpu = run_on(cuda_backend(), DType::f32, run, times);
  std::string words;
  for (int member = 0; member < run.members; ++member) {
    if (member == run.inactive) continue;
    const auto at = static_cast<std::size_t>(member);
    const std::string one = disagreement(truth[at], cpu[at], gpu[at], closeness);
    if (!one.empty()) words += fmt::format("member {}\n{}", member, one);
  }
  return words;
}

// NaN in the same places, in some but not in all of them, and elsewhere numbers that are as near in all as `most` says.
inline void expect_nan_where_it_is(const std::vector<double>& truth, const std::vector<double>& found, double most,
                                   const std::string& words) {
  ASSERT_EQ(truth.size(), found.size()) << words;
  std::size_t misplaced = 0, numbers = 0;
  double wrong = 0, whole = 0;
  for (std::size_t i = 0; i < truth.size(); ++i) {
    misplaced += std::isnan(truth[i]) == std::isnan(found[i]) ? 0 : 1;
    if (std::isnan(truth[i]) || std::isnan(found[i])) continue;
    ++numbers;
    wrong += (found[i] - truth[i]) * (found[i] - truth[i]);
    whole += truth[i] * truth[i];
  }
  EXPECT_EQ(misplaced, 0u) << words;
  EXPECT_LT(numbers, truth.size()) << words;
  EXPECT_LT(std::sqrt(wrong), most * std::sqrt(whole)) << words;
}

}  // namespace norma::test
