// Parameters with their roles and initial values. Values depend on (seed, name) alone, never on creation order.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "norma/device/session.h"
#include "norma/graph/graph.h"
#include "norma/ops/optimiser.h"

namespace norma {

enum class WeightInit { xavier_normal, xavier_uniform };

// How a parameter starts.
struct Init {
  enum class Kind { constant, normal, uniform, values };
  Kind kind = Kind::constant;
  double value = 0;                 // the constant, the standard deviation, or the bound of the uniform distribution
  std::vector<double> values = {};  // one by one, for small tensors

  static Init constant(double value) { return {Kind::constant, value, {}}; }
  static Init normal(double deviation) { return {Kind::normal, deviation, {}}; }
  static Init uniform(double bound) { return {Kind::uniform, bound, {}}; }
  static Init listed(std::vector<double> values) { return {Kind::values, 0, std::move(values)}; }
  // Variance gain^2 * 2 / (fan_in + fan_out) (Glorot & Bengio 2010).
  static Init xavier_normal(std::int64_t fan_in, std::int64_t fan_out, double gain = 1);
};

// Columns of a weight that were packed side by side (queries, keys, values), and a factor on how they start.
struct ColumnBlock {
  std::int64_t columns = 0;
  double gain = 1;
};

struct ParameterSpec {
  std::string name;
  Init init = {};
  std::vector<ColumnBlock> blocks = {};  // empty: all columns start alike
  double lr = 1;                         // multiplies the learning rate
  double eps = 1;                        // multiplies Adam's eps
  double decay = 1;               // multiplies weight decay; 0: none. Whether vectors decay is the trainer's rule
  bool decays_as_vector = false;  // though its role is not one of vectors
  // embedding, position, query_key_value, query, key_value, out, ffn, conv, head, bias, norm, learned
  std::string role = {};
  UnitVectors unit = UnitVectors::none;
};

// The parameters of one model, made while it is traced.
class Parameters {
 public:
  Parameters(Graph& graph, DType dtype) : graph_(graph), dtype_(dtype) {}

  // `spec.name` is taken inside the open scopes.
  Wire make(const Shape& shape, ParameterSpec spec);
  // The same, or the parameter of that name if it exists: a branch that a formula calls twice has one set of weights.
  Wire share(const Shape& shape, ParameterSpec spec);
  // A tensor that the model keeps and no gradient moves, such as running statistics; or the one of that name.
  Wire keep(const Shape& shape, ParameterSpec spec);
  const std::vector<ParameterSpec>& specs() const { return specs_; }
  const std::vector<ParameterSpec>& kept() const { return kept_; }
  DType dtype() const { return dtype_; }
  Graph& graph() { return graph_; }

 private:
  Graph& graph_;
  DType dtype_;
  std::vector<ParameterSpec> specs_, kept_;
};

// Writes initial values of one member. Two members with one seed start equal.
void initialise(Session& session, const std::vector<ParameterSpec>& specs, std::uint64_t seed, int member = 0);
// The same with a seed for every member; what members of one seed share is drawn once.
void initialise(Session& session, const std::vector<ParameterSpec>& specs, std::span<const std::uint64_t> seeds);

}  // namespace norma
