// What the iterations of Lanczos (1950) say about a symmetric matrix that is only known by its products: the largest
// eigenvalue, and how all of them are distributed.
#pragma once

#include <cstddef>
#include <functional>
#include <vector>

namespace norma {

using Vector = std::vector<double>;

double dot(const Vector& a, const Vector& b);
void scale(Vector& v, double factor);

// A symmetric tridiagonal matrix: diagonal a, and b beside it, one shorter.
struct Tridiagonal {
  std::vector<double> a, b;
};

// The products of one matrix per member with one vector each.
using Product = std::function<std::vector<Vector>(const std::vector<Vector>&)>;

// What the iterations do about rounding. Without the vectors before, copies of the largest eigenvalues return and take
// the steps that smaller ones would need: all the same for the largest, not for a distribution.
enum class Basis { forgotten, kept };

struct LanczosOptions {
  int steps = 20;          // at most
  double nothing = 1e-12;  // ends when a product has no more than this share of it outside the vectors before
  Basis basis = Basis::forgotten;
};

// From each member's start, which needs no unit length.
std::vector<Tridiagonal> lanczos(const Product& product, std::vector<Vector> starts, const LanczosOptions& options);

struct GaussNode {
  double node = 0, weight = 0;
};

// Eigenvalues of the matrix and squared first components of its eigenvectors, by nodes (Golub and Welsch 1969): the
// Gauss rule of the start's spectral measure. Nodes are NaN where the matrix is not finite.
std::vector<GaussNode> gauss_rule(const Tridiagonal& matrix);

}  // namespace norma
