// Sharpness against a Hessian that is small enough to be written down, and its growth with depth.
#include "norma/lab/sharpness.h"

#include <gtest/gtest.h>

#include "lab/lab_check.h"
#include "norma/graph/differentiate.h"
#include "norma/lab/singular_values.h"

namespace norma {
namespace {

// All of the Hessian by central differences of the gradient, one parameter at a time.
double largest_eigenvalue_by_hand(const Subject& subject) {
  Rig rig(subject,
          [](Graph& graph, const Model& model) {
            Wires parameters;
            for (const ParameterSpec& spec : model.parameters) parameters.push_back(graph.find(spec.name));
            const Wires gradients = differentiate(model.loss, parameters);
            for (std::size_t i = 0; i < gradients.size(); ++i)
              graph.output("d/" + model.parameters[i].name, gradients[i]);
          },
          {.backward = true, .wide = true});
  rig.load_batch(0);
  const auto gradient = [&] {
    rig.run();
    std::vector<double> all;
    for (const ParameterSpec& spec : rig.parameters()) {
      const std::vector<double> part = rig.values("d/" + spec.name);
      all.insert(all.end(), part.begin(), part.end());
    }
    return all;
  };
  std::vector<double> hessian;
  std::size_t n = 0;
  for (const ParameterSpec& spec : rig.parameters()) {
    std::vector<double> weights = rig.values(spec.name);
    for (double& w : weights) {
      const double start = w, step = 1e-5;
      const auto gradient_at = [&](double value) {
        w = value;
        rig.write(spec.name, weights, 0);
        return gradient();
      };
      std::vector<double> row = gradient_at(start + step);
      const std::vector<double> back = gradient_at(start - step);
      gradient_at(start);
      for (std::size_t i = 0; i < row.size(); ++i) hessian.push_back((row[i] - back[i]) / (2 * step));
      n = row.size();
    }
  }
  // Singular values of H + s, s larger than every |eigenvalue|, are its eigenvalues plus s.
  double bound = 0;
  for (std::size_t i = 0; i < n; ++i) {
    double sum = 0;
    for (std::size_t j = 0; j < n; ++j) sum += std::abs(hessian[i * n + j]);
    bound = std::max(bound, sum);
  }
  for (std::size_t i = 0; i < n; ++i) hessian[i * n + i] += bound;
  return singular_values(std::move(hessian), n)[0] - bound;
}

TEST(Sharpness, IsTheLargestEigenvalueOfTheHessian) {
  ModelConfig model = test::theory_model("pre", 1, 4, 3);
  model.heads = 2;
  model.activation = Activation::gelu;
  model.vocabulary = 8;
  const Subject subject = test::theory_subject(model, 1);
  const double expected = largest_eigenvalue_by_hand(subject);
  ASSERT_GT(expected, 0);
  const Sharpness found = measure_sharpness(subject, {.iterations = 60});
  EXPECT_NEAR(found.plain[0] / expected, 1, 0.02);
  EXPECT_DOUBLE_EQ(found.largest_sgd_lr[0], 2 / found.plain[0]);
  EXPECT_NEAR(found.largest_adam_lr[0] * found.preconditioned[0], 38, 1e-9);
}

// Behind ReZero's zero no gradient arrives: what Adam would do there is decided by its eps.
TEST(Sharpness, ARateOfAdamDoesNotRestOnItsEps) {
  const Subject subject = test::theory_subject(test::theory_model("rezero", 2, 16, 8), 1);
  const auto rate = [&](double eps) {
    return measure_sharpness(subject, {.iterations = 30, .eps = eps}).largest_adam_lr[0];
  };
  EXPECT_NEAR(rate(1e-8) / rate(1e-10), 1, 0.01);
}

TEST(Sharpness, OfPostLNGrowsFasterWithDepthThanThatOfPreLN) {
  const auto growth = [](const char* scheme) {
    const auto at = [&](std::int64_t layers) {
      ModelConfig model = test::theory_model(scheme, layers, 32, 16);
      model.activation = Activation::gelu;  // differences of gradients across kinks of relu are no curvature
      return estimate_of(measure_sharpness(test::theory_subject(model, 2)).plain).mean;
    };
    return at(16) / at(2);
  };
  EXPECT_GT(growth("post"), 2 * growth("pre"));
}

}  // namespace
}  // namespace norma
