// Ops that exist only to test the graph: an update, an op with two outputs, and one that is differentiated through its
// reference.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "norma/core/error.h"
#include "norma/graph/graph.h"
#include "norma/graph/op.h"
#include "norma/ops/elementwise.h"
#include "plain_plan.h"

namespace norma::test {

// target += change (f32): the simplest optimiser.
class Accumulate final : public Op {
 public:
  std::string_view name() const override { return "accumulate"; }
  std::vector<Type> infer(std::span<const Type> in) const override {
    if (in[0] != in[1]) fail("{} and {} differ", in[0].str(), in[1].str());
    return {in[0]};
  }
  std::vector<Update> updates() const override { return {{.out = 0, .in = 0}}; }
};

inline CpuKernel cpu_kernel(const Accumulate&, Types in, Types) {
  const std::int64_t count = in[0].shape.elements();
  return {.phases = {{1, [count](const Call& call, std::int64_t) {
                        for (std::int64_t i = 0; i < count; ++i)
                          call.out<float>(0)[i] = call.in<float>(0)[i] + call.in<float>(1)[i];
                      }}}};
}

inline Wire accumulate(Wire target, Wire change) {
  const Wire in[] = {target, change};
  return target.graph().apply(std::make_shared<Accumulate>(), in)[0];
}

// (x + 1, x + 2) (f32). Either output may be written over x; the kernel reads each element before it writes it.
class TwoOutputs final : public Op {
 public:
  std::string_view name() const override { return "two_outputs"; }
  std::vector<Type> infer(std::span<const Type> in) const override { return {in[0], in[0]}; }
  bool can_overwrite(int, int) const override { return true; }
};

inline CpuKernel cpu_kernel(const TwoOutputs&, Types in, Types) {
  const std::int64_t count = in[0].shape.elements();
  return {.phases = {{1, [count](const Call& call, std::int64_t) {
                        for (std::int64_t i = 0; i < count; ++i) {
                          const float x = call.in<float>(0)[i];
                          call.out<float>(1)[i] = x + 2;
                          call.out<float>(0)[i] = x + 1;
                        }
                      }}}};
}

// a * tanh(b), which has no derivative rule of its own: differentiation goes through the reference.
class Gate final : public Op {
 public:
  std::string_view name() const override { return "gate"; }
  std::string attributes() const override { return "by=tanh"; }
  std::vector<Type> infer(std::span<const Type> in) const override { return {in[0]}; }
  bool has_reference() const override { return true; }
  Wires reference(std::span<const Wire> in) const override { return {in[0] * tanh(in[1])}; }
};

inline CpuKernel cpu_kernel(const Gate&, Types in, Types) {
  const std::int64_t count = in[0].shape.elements();
  const auto kernel = [count]<typename T>(T) -> CpuKernel {
    return {.phases = {{1, [count](const Call& call, std::int64_t) {
                          for (std::int64_t i = 0; i < count; ++i)
                            call.out<T>(0)[i] = call.in<T>(0)[i] * std::tanh(call.in<T>(1)[i]);
                        }}}};
  };
  return in[0].dtype == DType::f64 ? kernel(0.0) : kernel(0.0f);
}

inline Wire gate(Wire a, Wire b) {
  const Wire in[] = {a, b};
  return a.graph().apply(std::make_shared<Gate>(), in)[0];
}

// The CPU with these ops as well.
inline const CpuBackend& test_backend() {
  static const CpuBackend backend = [] {
    CpuBackend cpu = cpu_backend();
    cpu.add<Accumulate>(cpu_kernel, {DType::f32});
    cpu.add<TwoOutputs>(cpu_kernel, {DType::f32});
    cpu.add<Gate>(cpu_kernel, {DType::f32, DType::f64});
    return cpu;
  }();
  return backend;
}

inline std::shared_ptr<const Plan> test_plan(Graph& graph, CompileOptions options = {}) {
  return plain_plan(graph, std::move(options), test_backend());
}

}  // namespace norma::test
