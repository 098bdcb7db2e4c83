// Helpers of the tests: random tensors by name, running small graphs, and finite differences.
#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "device/cpu/cpu_session.h"
#include "error_of.h"
#include "norma/core/error.h"
#include "norma/core/random.h"
#include "norma/graph/differentiate.h"
#include "norma/graph/graph.h"
#include "norma/graph/plan.h"
#include "norma/ops/elementwise.h"
#include "norma/ops/reduce.h"
#include "plain_plan.h"

namespace norma::test {

// Fills a named tensor with normal numbers that depend on name and seed alone.
template <typename T>
void randomise(CpuSession& session, const std::string& name, std::uint64_t seed = 1, double mean = 0,
               double deviation = 1) {
  const RandomStream stream(seed, name);
  for (int member = 0; member < session.members(); ++member) {
    std::span<T> tensor = session.tensor<T>(name, member);
    for (std::size_t i = 0; i < tensor.size(); ++i) tensor[i] = static_cast<T>(mean + deviation * stream.normal(i));
  }
}

// Randomises every floating-point parameter, state and input.
inline void randomise_all(CpuSession& session, std::uint64_t seed = 1) {
  for (const Role role : {Role::parameter, Role::state, Role::input}) {
    for (const std::string& name : session.plan().slot_names(role)) {
      const DType dtype = session.plan().slot(name).type.dtype;
      if (dtype == DType::f32) randomise<float>(session, name, seed);
      if (dtype == DType::f64) randomise<double>(session, name, seed);
    }
  }
}

struct GradientCheck {
  double step = 1e-5;
  double tolerance = 1e-7;  // relative to the largest gradient of the tensor, plus the same absolute
  int most_elements = 60;   // per tensor; spread over it
  std::uint64_t seed = 1;
  bool fuse = false;
  std::function<void(CpuSession&)> prepare = nullptr;  // after randomising: tokens, special values
};

// Compares differentiate() with central differences in f64 for a scalar built by `build` over the named wires.
// Asserts first that each gradient is not all zero.
inline void check_gradients(const std::function<Wire(Graph&)>& build, const std::vector<std::string>& names,
                            const GradientCheck& options = {}) {
  Graph graph;
  const Wire loss = build(graph);
  Wires wrt;
  for (const std::string& name : names) wrt.push_back(graph.find(name));
  const Wires gradients = differentiate(loss, wrt);
  graph.output("loss", loss);
  for (std::size_t i = 0; i < names.size(); ++i) graph.output("d/" + names[i], gradients[i]);
  CpuSession session(options.fuse ? compile(graph, cpu_backend()) : plain_plan(graph),
                     {.threads = 1});  // many tiny runs: waking a team costs more
  randomise_all(session, options.seed);
  if (options.prepare) options.prepare(session);
  session.run();
  std::map<std::string, std::vector<double>> analytic;
  for (const std::string& name : names) {
    const std::span<double> d = session.tensor<double>("d/" + name);
    analytic[name].assign(d.begin(), d.end());
  }
  for (const std::string& name : names) {
    const std::vector<double>& expected = analytic[name];
    double largest = 0;
    for (const double g : expected) largest = std::max(largest, std::abs(g));
    ASSERT_GT(largest, 0) << "the gradient by " << name << " is zero everywhere";
    const std::span<double> x = session.tensor<double>(name);
    const std::size_t stride = std::max<std::size_t>(1, x.size() / static_cast<std::size_t>(options.most_elements));
    for (std::size_t i = 0; i < x.size(); i += stride) {
      const double old = x[i];
      x[i] = old + options.step;
      session.run();
      const double up = session.tensor<double>("loss")[0];
      x[i] = old - options.step;
      session.run();
      const double down = session.tensor<double>("loss")[0];
      x[i] = old;
      const double numeric = (up - down) / (2 * options.step);
      EXPECT_NEAR(expected[i], numeric, options.tolerance * (1 + largest)) << "d loss / d " << name << "[" << i << "]";
    }
  }
}

}  // namespace norma::test
