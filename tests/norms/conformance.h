// A norm on trial: a graph with its gradients, filled with reproducible numbers, in any dtype.
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "check.h"
#include "norma/norms/norm.h"
#include "norma/ops/views.h"

namespace norma::test {

struct Trial {
  const NormInfo* info = nullptr;
  std::int64_t rows = 7;  // positions of each sample, for norms over samples
  std::int64_t width = 33;
  DType dtype = DType::f64;
  bool by_reference = false;  // in elementary ops instead of the norm's own
};

inline bool over_samples(const NormInfo& info) { return info.reach == NormReach::sample_group; }

inline bool centres(const NormInfo& info) {
  return info.kind != NormKind::rms && info.kind != NormKind::prms && info.kind != NormKind::scale &&
         info.kind != NormKind::dyt && info.kind != NormKind::graph;  // which learns how much of the mean
}

inline std::int64_t groups_of(std::int64_t width) { return width % 4 == 0 ? 4 : width % 3 == 0 ? 3 : 1; }

inline Shape shape_of(const Trial& trial) {
  return over_samples(*trial.info) ? Shape{3, trial.rows, trial.width} : Shape{trial.rows, trial.width};
}

inline NormSettings settings_of(const Trial& trial) { return {.groups = groups_of(trial.width)}; }

// y and the norm's names: "x", then its parameters.
struct Traced {
  Wire y;
  Wire rstd;  // empty where there is none
  std::vector<std::string> names;
};

inline Traced trace(Graph& graph, const Trial& trial) {
  Traced traced{.y = {}, .rstd = {}, .names = {"x"}};
  const Wire x = graph.input("x", {shape_of(trial), trial.dtype});
  traced.y = apply_norm(*trial.info, x, declare_norm(graph, *trial.info, trial.width, trial.dtype), settings_of(trial));
  const Node node = graph.node(graph.value(traced.y.id()).producer);
  if (node.outputs.size() > 1) traced.rstd = Wire(&graph, node.outputs[1]);
  if (trial.by_reference) {
    Wires in;
    for (const int id : node.inputs) in.emplace_back(&graph, id);
    traced.y = node.op->reference(in)[0];
  }
  for (const NormTensor& parameter : trial.info->parameters) traced.names.emplace_back(parameter.name);
  return traced;
}

// A loss whose gradient by y is the input "dy".
inline Wire loss_of(Wire y) { return sum_all(y * y.graph().input("dy", y.type())); }

// The same, with a gradient that also depends on y.
inline Wire curved_loss_of(Wire y) { return sum_all(tanh(y) * y.graph().input("dy", y.type())); }

// A plan that computes y, rstd if any, and the gradients by x and every parameter ("d/x", "d/gain", ...).
inline std::shared_ptr<const Plan> plan_of(const Trial& trial) {
  Graph graph;
  const Traced traced = trace(graph, trial);
  Wires wrt;
  for (const std::string& name : traced.names) wrt.push_back(graph.find(name));
  const Wires gradients = differentiate(loss_of(traced.y), wrt);
  graph.output("y", traced.y);
  if (traced.rstd) graph.output("rstd", traced.rstd);
  for (std::size_t i = 0; i < wrt.size(); ++i) graph.output("d/" + traced.names[i], gradients[i]);
  return test::plain_plan(graph);
}

inline std::vector<std::string> results_of(const Trial& trial) {
  std::vector<std::string> names = {"y", "d/x"};
  for (const NormTensor& parameter : trial.info->parameters) names.push_back("d/" + std::string(parameter.name));
  return names;
}

// Calls action with a number of the trial's type.
template <typename Action>
void with_type(DType dtype, const Action& action) {
  dtype == DType::f32 ? action(0.0f) : action(0.0);
}

// Every input but ids, the same numbers in both dtypes: normal, rounded to f32.
inline void fill(CpuSession& session, std::uint64_t seed, double mean = 0, double deviation = 1, int member = 0) {
  for (const Role role : {Role::parameter, Role::state, Role::input}) {
    for (const std::string& name : session.plan().slot_names(role)) {
      if (session.plan().slot(name).type.dtype == DType::i32) continue;
      const RandomStream stream(seed, name);
      with_type(session.plan().slot(name).type.dtype, [&](auto zero) {
        using T = decltype(zero);
        const std::span<T> tensor = session.tensor<T>(name, member);
        for (std::size_t i = 0; i < tensor.size(); ++i) {
          const double normal = stream.normal(i);
          tensor[i] = static_cast<T>(static_cast<float>(name == "x" ? mean + deviation * normal : normal));
        }
      });
    }
  }
}

inline std::vector<double> read(CpuSession& session, const std::string& name, int member = 0) {
  std::vector<double> result;
  with_type(session.plan().slot(name).type.dtype, [&](auto zero) {
    const auto tensor = session.tensor<decltype(zero)>(name, member);
    result.assign(tensor.begin(), tensor.end());
  });
  return result;
}

inline double largest(const std::vector<double>& values) {
  double result = 0;
  for (const double v : values) result = std::max(result, std::abs(v));
  return result;
}

// The magnitude of the terms that a result is a difference of, against which rounding is measured.
inline double term_size(CpuSession& session, const std::string& result) {
  double size = largest(read(session, result));
  if (result != "d/x" || !session.plan().has_slot("rstd")) return size;
  double term = largest(read(session, "rstd")) * largest(read(session, "dy"));
  for (const char* gain : {"gain", "g0"}) {
    if (session.plan().has_slot(gain)) term *= largest(read(session, gain));
  }
  return size + term;
}

inline void expect_close(const std::vector<double>& actual, const std::vector<double>& expected, double tolerance,
                         const std::string& what) {
  ASSERT_EQ(actual.size(), expected.size()) << what;
  for (std::size_t i = 0; i < actual.size(); ++i) {
    ASSERT_NEAR(actual[i], expected[i], tolerance) << what << "[" << i << "]";
  }
}

// Rounding of a sum of n terms in dtype, relative to the largest: a random walk, with room for the operations around.
inline double rounding(DType dtype, std::int64_t n) {
  return epsilon_of(dtype) * (16 + 4 * std::sqrt(static_cast<double>(n)));
}

}  // namespace norma::test
