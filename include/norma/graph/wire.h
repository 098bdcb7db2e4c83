// A wire is a value in a graph: what formulas are written with. `x + f(norm(x))` appends nodes and returns a wire.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "norma/core/shape.h"

namespace norma {

class Graph;

class Wire {
 public:
  Wire() = default;  // no wire: an absent bias, a gradient that is zero
  Wire(Graph* graph, int id) : graph_(graph), id_(id) {}

  explicit operator bool() const { return graph_ != nullptr; }
  Graph& graph() const;
  int id() const { return id_; }

  const Type& type() const;
  const Shape& shape() const { return type().shape; }
  DType dtype() const { return type().dtype; }
  const std::string& name() const;

  bool operator==(const Wire& other) const = default;

 private:
  Graph* graph_ = nullptr;
  int id_ = -1;
};

using Wires = std::vector<Wire>;
using Types = std::span<const Type>;

}  // namespace norma
