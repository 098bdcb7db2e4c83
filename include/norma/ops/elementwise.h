// Elementary arithmetic with broadcasting: what reference compositions and formulas are written in.
#pragma once

#include "norma/graph/op.h"

namespace norma {

// step: x > 0 ? 1 : 0
enum class Unary { neg, exp, log, sqrt, rsqrt, reciprocal, square, tanh, erf, sigmoid, step, sin, cos };
enum class Binary { add, sub, mul, div };

std::string_view name_of(Unary function);
std::string_view name_of(Binary function);

class UnaryOp final : public Op {
 public:
  explicit UnaryOp(Unary function) : function_(function) {}
  Unary function() const { return function_; }
  std::string_view name() const override { return name_of(function_); }
  std::vector<Type> infer(std::span<const Type> in) const override;
  Wires vjp(const VjpContext& context) const override;
  bool can_overwrite(int, int) const override { return true; }

 private:
  Unary function_;
};

// z = a (.) b. Shapes broadcast as in NumPy: aligned at the last axis, size 1 or missing axes repeat.
class BinaryOp final : public Op {
 public:
  explicit BinaryOp(Binary function) : function_(function) {}
  Binary function() const { return function_; }
  std::string_view name() const override { return name_of(function_); }
  Elementary elementary() const override { return function_ == Binary::mul ? Elementary::product : Elementary::other; }
  std::vector<Type> infer(std::span<const Type> in) const override;
  Wires vjp(const VjpContext& context) const override;
  bool can_overwrite(int, int) const override { return true; }

 private:
  Binary function_;
};

Wire unary(Unary function, Wire x);
Wire binary(Binary function, Wire a, Wire b);

inline Wire exp(Wire x) { return unary(Unary::exp, x); }
inline Wire log(Wire x) { return unary(Unary::log, x); }
inline Wire sqrt(Wire x) { return unary(Unary::sqrt, x); }
inline Wire rsqrt(Wire x) { return unary(Unary::rsqrt, x); }
inline Wire reciprocal(Wire x) { return unary(Unary::reciprocal, x); }
inline Wire square(Wire x) { return unary(Unary::square, x); }
inline Wire tanh(Wire x) { return unary(Unary::tanh, x); }
inline Wire erf(Wire x) { return unary(Unary::erf, x); }
inline Wire sigmoid(Wire x) { return unary(Unary::sigmoid, x); }
inline Wire step(Wire x) { return unary(Unary::step, x); }
inline Wire sin(Wire x) { return unary(Unary::sin, x); }
inline Wire cos(Wire x) { return unary(Unary::cos, x); }
inline Wire operator-(Wire x) { return unary(Unary::neg, x); }

Wire operator+(Wire a, Wire b);
inline Wire operator-(Wire a, Wire b) { return binary(Binary::sub, a, b); }
inline Wire operator*(Wire a, Wire b) { return binary(Binary::mul, a, b); }
inline Wire operator/(Wire a, Wire b) { return binary(Binary::div, a, b); }

Wire operator+(Wire a, double b);
Wire operator*(Wire a, double b);
inline Wire operator+(double a, Wire b) { return b + a; }
inline Wire operator-(Wire a, double b) { return a + -b; }
inline Wire operator-(double a, Wire b) { return -b + a; }
inline Wire operator*(double a, Wire b) { return b * a; }
inline Wire operator/(Wire a, double b) { return a * (1.0 / b); }

}  // namespace norma
