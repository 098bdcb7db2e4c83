#include "norma/lab/sharpness.h"

#include <cmath>

#include "lab/analyses/lanczos.h"
#include "norma/core/error.h"
#include "norma/core/random.h"
#include "norma/models/gradients.h"

namespace norma {
namespace {

// All parameters of a member as one vector; members 2m and 2m + 1 of the rig are the subject's member m, moved forth
// and back.
class Curvature {
 public:
  explicit Curvature(const Subject& subject)
      : subject_(subject),
        rig_(subject,
             [&subject](Graph& graph, const Model& model) {
               Wires parameters;
               for (const ParameterSpec& spec : model.parameters) parameters.push_back(graph.find(spec.name));
               const Wires gradients = differentiate_model(subject.model, model.loss, parameters);
               for (std::size_t i = 0; i < gradients.size(); ++i)
                 graph.output("d/" + model.parameters[i].name, gradients[i]);
             },
             {.backward = true, .wide = true, .copies = 2}) {
    for (int member = 0; member < members(); ++member) start_.push_back(gather("", 2 * member));
  }

  int members() const { return static_cast<int>(subject_.seeds.size()); }
  std::size_t size() const { return start_[0].size(); }

  // 1 for parameters that every batch reaches, 0 for rows of tables that a batch may not touch.
  Vector outside_tables() const {
    Vector all;
    for (const ParameterSpec& spec : rig_.parameters()) {
      const bool table = spec.role == "embedding" || spec.role == "position";
      const std::int64_t elements = rig_.plan().slot(spec.name).type.shape.elements();
      all.insert(all.end(), static_cast<std::size_t>(elements), table ? 0.0 : 1.0);
    }
    return all;
  }

  // Mean square of each gradient over batches, by member.
  std::vector<Vector> second_moment(int batches) {
    std::vector<Vector> sums(start_.size(), Vector(size(), 0));
    for (int batch = 0; batch < batches; ++batch) {
      rig_.load_batch(static_cast<std::uint64_t>(batch));
      rig_.run();
      for (int member = 0; member < members(); ++member) {
        const Vector gradient = gather("d/", 2 * member);
        Vector& sum = sums[static_cast<std::size_t>(member)];
        for (std::size_t i = 0; i < sum.size(); ++i) sum[i] += gradient[i] * gradient[i] / batches;
      }
    }
    return sums;
  }

  // H v on the first batch, for all members at once.
  std::vector<Vector> times_hessian(const std::vector<Vector>& directions) {
    constexpr double kMove = 1e-3;  // the length of the step in parameter space
    rig_.load_batch(0);
    std::vector<double> steps;
    for (int member = 0; member < members(); ++member) {
      const Vector& v = directions[static_cast<std::size_t>(member)];
      steps.push_back(kMove / std::sqrt(dot(v, v)));
      scatter(2 * member, v, steps.back());
      scatter(2 * member + 1, v, -steps.back());
    }
    rig_.run();
    std::vector<Vector> products;
    for (int member = 0; member < members(); ++member) {
      Vector forth = gather("d/", 2 * member);
      const Vector back = gather("d/", 2 * member + 1);
      const double half = 1 / (2 * steps[static_cast<std::size_t>(member)]);
      for (std::size_t i = 0; i < forth.size(); ++i) forth[i] = (forth[i] - back[i]) * half;
      products.push_back(std::move(forth));
    }
    return products;
  }

 private:
  Vector gather(const std::string& prefix, int member) {
    Vector all;
    for (const ParameterSpec& spec : rig_.parameters()) {
      const std::vector<double> part = rig_.session().read<double>(prefix + spec.name, member);
      all.insert(all.end(), part.begin(), part.end());
    }
    return all;
  }

  void scatter(int member, const Vector& v, double factor) {
    std::size_t at = 0;
    const Vector& start = start_[static_cast<std::size_t>(member / 2)];
    for (const ParameterSpec& spec : rig_.parameters()) {
      const Handle tensor = rig_.session().handle(spec.name);
      std::vector<double> moved(tensor.elements());
      for (double& x : moved) {
        x = start[at] + factor * v[at];
        ++at;
      }
      rig_.session().write<double>(tensor, moved, member);
    }
  }

  const Subject& subject_;
  Rig rig_;
  std::vector<Vector> start_;
};

Vector random_direction(std::size_t size, std::uint64_t seed) {
  const RandomStream stream(seed, "lab.sharpness");
  Vector v;
  stream.each_normal(size, [&](std::size_t, double normal) { v.push_back(normal); });
  return v;
}

// The largest eigenvalue of R H R, R = diag(roots), by member: Lanczos converges much sooner than the power method and
// does not mistake a large negative eigenvalue for it.
std::vector<double> largest_eigenvalues(Curvature& curvature, const std::vector<Vector>& roots,
                                        const std::vector<std::uint64_t>& seeds, int iterations) {
  const auto times_roots = [&](std::vector<Vector>& vectors) {
    for (std::size_t m = 0; m < vectors.size(); ++m) {
      for (std::size_t i = 0; i < vectors[m].size(); ++i) vectors[m][i] *= roots[m][i];
    }
  };
  const auto product = [&](std::vector<Vector> vectors) {
    times_roots(vectors);
    vectors = curvature.times_hessian(vectors);
    times_roots(vectors);
    return vectors;
  };
  std::vector<Vector> starts;
  for (const std::uint64_t seed : seeds) starts.push_back(random_direction(curvature.size(), seed));
  std::vector<double> values;
  for (const Tridiagonal& known : lanczos(product, std::move(starts), {.steps = iterations}))
    values.push_back(gauss_rule(known).back().node);
  return values;
}

}  // namespace

Sharpness measure_sharpness(const Subject& subject, const SharpnessOptions& options) {
  if (options.iterations < 1 || options.batches < 1) fail("sharpness needs at least one iteration and one batch");
  Curvature curvature(subject);
  std::vector<Vector> roots = curvature.second_moment(options.batches);
  const Vector counted = curvature.outside_tables();
  for (Vector& root : roots) {
    // A gradient that is no larger than eps, such as those behind ReZero's zero, would leave the rate to eps alone.
    for (std::size_t i = 0; i < root.size(); ++i) {
      const double size = std::sqrt(root[i]);
      root[i] = size > options.eps ? counted[i] / std::sqrt(size + options.eps) : 0;
    }
  }
  Sharpness found;
  const std::vector<Vector> ones(roots.size(), Vector(curvature.size(), 1));
  found.plain = largest_eigenvalues(curvature, ones, subject.seeds, options.iterations);
  found.preconditioned = largest_eigenvalues(curvature, roots, subject.seeds, options.iterations);
  const double bound = (2 + 2 * options.beta1) / (1 - options.beta1);
  for (std::size_t m = 0; m < roots.size(); ++m) {
    found.largest_sgd_lr.push_back(2 / found.plain[m]);
    found.largest_adam_lr.push_back(bound / found.preconditioned[m]);
  }
  return found;
}

}  // namespace norma
