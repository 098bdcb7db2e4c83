// Parameters with their roles and initial values. Values depend on (seed, name) alone, never on creation order.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "norma/device/session.h"
#include "norma/graph/graph.h"

namespace norma {

// How a parameter starts.
struct Init {
  enum class Kind { constant, normal, uniform };
  Kind kind = Kind::constant;
  double value = 0;  // the constant, the standard deviation, or the bound of the uniform distribution

  static Init constant(double value) { return {Kind::constant, value}; }
  static Init normal(double deviation) { return {Kind::normal, deviation}; }
  static Init uniform(double bound) { return {Kind::uniform, bound}; }
  // Variance gain^2 * 2 / (fan_in + fan_out) (Glorot & Bengio 2010).
  static Init xavier_normal(std::int64_t fan_in, std::int64_t fan_out, double gain = 1);
};

struct ParameterSpec {
  std::string name;
  Init init;
  // Gains on equal blocks of the last axis, for weights packed side by side (queries, keys, values); empty: 1.
  std::vector<double> block_gains = {};
  double lr = 1;      // multiplies the learning rate
  bool decay = true;  // whether weight decay applies
};

// The parameters of one model, made while it is traced.
class Parameters {
 public:
  Parameters(Graph& graph, DType dtype) : graph_(graph), dtype_(dtype) {}

  Wire make(std::string_view name, const Shape& shape, Init init, std::vector<double> block_gains = {});
  // The same, or the parameter of that name if it exists: a branch that a formula calls twice has one set of weights.
  Wire share(std::string_view name, const Shape& shape, Init init, std::vector<double> block_gains = {});
  // Sets how the optimiser treats the parameter made last.
  void set_group(double lr, bool decay);
  const std::vector<ParameterSpec>& specs() const { return specs_; }
  DType dtype() const { return dtype_; }
  Graph& graph() { return graph_; }

 private:
  Graph& graph_;
  DType dtype_;
  std::vector<ParameterSpec> specs_;
};

// Writes initial values of one member. Two members with one seed start equal.
void initialise(Session& session, const std::vector<ParameterSpec>& specs, std::uint64_t seed, int member = 0);

}  // namespace norma
