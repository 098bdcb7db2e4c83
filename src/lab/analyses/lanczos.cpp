#include "lab/analyses/lanczos.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "norma/core/error.h"

namespace norma {
namespace {

void add(Vector& to, const Vector& v, double factor) {
  for (std::size_t i = 0; i < to.size(); ++i) to[i] += factor * v[i];
}

// One member's iterations: the last two vectors and what is known of the matrix in their basis.
struct Iteration {
  Vector v, before;
  std::vector<Vector> basis = {};
  Tridiagonal known = {};
  double length = 0;  // of the next vector before it was scaled to 1
  bool done = false;

  explicit Iteration(Vector start) : v(std::move(start)), before(v.size(), 0) { scale(v, 1 / std::sqrt(dot(v, v))); }

  void advance(Vector product, const LanczosOptions& options) {
    if (done) return;
    if (!known.a.empty()) known.b.push_back(length);
    const double whole = std::sqrt(dot(product, product)), a = dot(v, product);
    for (std::size_t i = 0; i < product.size(); ++i) product[i] -= a * v[i] + length * before[i];
    if (options.basis == Basis::kept) {
      basis.push_back(v);
      for (const Vector& one : basis) add(product, one, -dot(one, product));
    }
    known.a.push_back(a);
    length = std::sqrt(dot(product, product));
    done = !(length > options.nothing * whole);
    if (done) return;
    scale(product, 1 / length);
    before = std::exchange(v, std::move(product));
  }
};

bool is_finite(const Tridiagonal& matrix) {
  const auto finite = [](double x) { return std::isfinite(x); };
  return std::ranges::all_of(matrix.a, finite) && std::ranges::all_of(matrix.b, finite);
}

}  // namespace

double dot(const Vector& a, const Vector& b) {
  double sum = 0;
  for (std::size_t i = 0; i < a.size(); ++i) sum += a[i] * b[i];
  return sum;
}

void scale(Vector& v, double factor) {
  for (double& x : v) x *= factor;
}

std::vector<Tridiagonal> lanczos(const Product& product, std::vector<Vector> starts, const LanczosOptions& options) {
  std::vector<Iteration> members;
  for (Vector& start : starts) members.emplace_back(std::move(start));
  for (int step = 0; step < options.steps; ++step) {
    if (std::ranges::all_of(members, [](const Iteration& member) { return member.done; })) break;
    std::vector<Vector> directions;
    for (const Iteration& member : members) directions.push_back(member.v);
    std::vector<Vector> products = product(directions);
    for (std::size_t m = 0; m < members.size(); ++m) members[m].advance(std::move(products[m]), options);
  }
  std::vector<Tridiagonal> found;
  for (Iteration& member : members) found.push_back(std::move(member.known));
  return found;
}

// Jacobi rotations of the dense matrix: a few dozen rows, and nothing to tune.
std::vector<GaussNode> gauss_rule(const Tridiagonal& matrix) {
  const std::size_t n = matrix.a.size();
  if (!is_finite(matrix)) return std::vector<GaussNode>(n, {.node = std::nan(""), .weight = std::nan("")});
  std::vector<Vector> m(n, Vector(n, 0));
  for (std::size_t i = 0; i < n; ++i) {
    m[i][i] = matrix.a[i];
    if (i + 1 < n) m[i][i + 1] = m[i + 1][i] = matrix.b[i];
  }
  Vector first(n, 0);  // row 0 of the product of all rotations
  first[0] = 1;
  constexpr int kMostSweeps = 60;
  constexpr double kNothing = 1e-15;
  for (int sweep = 0; sweep < kMostSweeps; ++sweep) {
    double inside = 0, beside = 0;
    for (std::size_t p = 0; p < n; ++p) {
      inside += m[p][p] * m[p][p];
      for (std::size_t q = 0; q < p; ++q) beside += 2 * m[p][q] * m[p][q];
    }
    if (beside <= kNothing * kNothing * inside) break;
    for (std::size_t p = 0; p + 1 < n; ++p) {
      for (std::size_t q = p + 1; q < n; ++q) {
        if (m[p][q] == 0) continue;
        const double theta = (m[q][q] - m[p][p]) / (2 * m[p][q]);
        const double t = std::copysign(1 / (std::abs(theta) + std::sqrt(1 + theta * theta)), theta);
        const double c = 1 / std::sqrt(1 + t * t), s = c * t;
        const auto rotate = [&](double& x, double& y) {
          const double old = x;
          x = c * old - s * y;
          y = s * old + c * y;
        };
        for (std::size_t i = 0; i < n; ++i) rotate(m[i][p], m[i][q]);
        for (std::size_t i = 0; i < n; ++i) rotate(m[p][i], m[q][i]);
        rotate(first[p], first[q]);
      }
    }
  }
  std::vector<GaussNode> rule;
  for (std::size_t i = 0; i < n; ++i) rule.push_back({.node = m[i][i], .weight = first[i] * first[i]});
  std::ranges::sort(rule, {}, &GaussNode::node);
  return rule;
}

}  // namespace norma
