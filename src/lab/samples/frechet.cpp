#include <algorithm>
#include <cmath>

#include "norma/backends/device.h"
#include "norma/core/error.h"
#include "norma/core/random.h"
#include "norma/lab/sample_quality.h"
#include "norma/ops/elementwise.h"
#include "norma/train/data.h"
#include "norma/train/feeder.h"

namespace norma {
namespace {

constexpr int kFrechetRepetitions = 80;

struct FeatureMoments {
  std::vector<double> mean, covariance;
};

// Rows as often as their weights say.
FeatureMoments moments_of(std::span<const double> rows, std::size_t n, const std::vector<double>& weights) {
  FeatureMoments found{std::vector<double>(n, 0), std::vector<double>(n * n, 0)};
  double total = 0;
  for (std::size_t i = 0; i < weights.size(); ++i) {
    total += weights[i];
    for (std::size_t j = 0; j < n; ++j) found.mean[j] += weights[i] * rows[i * n + j];
  }
  for (double& mean : found.mean) mean /= total;
  for (std::size_t i = 0; i < weights.size(); ++i) {
    if (weights[i] == 0) continue;
    for (std::size_t j = 0; j < n; ++j) {
      const double off = weights[i] * (rows[i * n + j] - found.mean[j]);
      for (std::size_t k = 0; k <= j; ++k) found.covariance[j * n + k] += off * (rows[i * n + k] - found.mean[k]);
    }
  }
  for (std::size_t j = 0; j < n; ++j) {
    for (std::size_t k = 0; k <= j; ++k)
      found.covariance[k * n + j] = found.covariance[j * n + k] /= std::max(1.0, total - 1);
  }
  return found;
}

// Eigenvalues of a symmetric matrix by Jacobi's rotations; its columns of eigenvectors in `vectors` where wanted.
std::vector<double> eigenvalues(std::vector<double> a, std::size_t n, std::vector<double>* vectors) {
  if (vectors != nullptr) {
    vectors->assign(n * n, 0);
    for (std::size_t i = 0; i < n; ++i) (*vectors)[i * n + i] = 1;
  }
  const auto turn = [n](std::vector<double>& m, std::size_t p, std::size_t q, double c, double s) {  // columns
    for (std::size_t i = 0; i < n; ++i) {
      const double x = m[i * n + p], y = m[i * n + q];
      m[i * n + p] = c * x - s * y;
      m[i * n + q] = s * x + c * y;
    }
  };
  for (int sweep = 0; sweep < 60; ++sweep) {
    double off = 0, all = 0;
    for (std::size_t i = 0; i < n * n; ++i) (i / n == i % n ? all : off) += a[i] * a[i];
    if (off <= 1e-22 * (all + off)) break;
    for (std::size_t p = 0; p < n; ++p) {
      for (std::size_t q = p + 1; q < n; ++q) {
        if (a[p * n + q] == 0) continue;
        const double theta = (a[q * n + q] - a[p * n + p]) / (2 * a[p * n + q]);
        const double t = (theta >= 0 ? 1 : -1) / (std::abs(theta) + std::sqrt(theta * theta + 1));
        const double c = 1 / std::sqrt(t * t + 1), s = t * c;
        turn(a, p, q, c, s);
        for (std::size_t i = 0; i < n; ++i) {  // and rows
          const double x = a[p * n + i], y = a[q * n + i];
          a[p * n + i] = c * x - s * y;
          a[q * n + i] = s * x + c * y;
        }
        if (vectors != nullptr) turn(*vectors, p, q, c, s);
      }
    }
  }
  std::vector<double> values(n);
  for (std::size_t i = 0; i < n; ++i) values[i] = a[i * n + i];
  return values;
}

std::vector<double> product(const std::vector<double>& a, const std::vector<double>& b, std::size_t n) {
  std::vector<double> c(n * n, 0);
  for (std::size_t i = 0; i < n; ++i) {
    for (std::size_t k = 0; k < n; ++k) {
      for (std::size_t j = 0; j < n; ++j) c[i * n + j] += a[i * n + k] * b[k * n + j];
    }
  }
  return c;
}

std::vector<double> square_root(const std::vector<double>& a, std::size_t n) {
  std::vector<double> vectors;
  const std::vector<double> values = eigenvalues(a, n, &vectors);
  std::vector<double> root(n * n, 0);
  for (std::size_t k = 0; k < n; ++k) {
    const double s = std::sqrt(values[k] < 0 ? 0 : values[k]);
    for (std::size_t i = 0; i < n; ++i) {
      for (std::size_t j = 0; j < n; ++j) root[i * n + j] += s * vectors[i * n + k] * vectors[j * n + k];
    }
  }
  return root;
}

double frechet(const FeatureMoments& a, const FeatureMoments& b, const std::vector<double>& root_of_b) {
  const std::size_t n = a.mean.size();
  double distance = 0;
  for (std::size_t i = 0; i < n; ++i) {
    distance += (a.mean[i] - b.mean[i]) * (a.mean[i] - b.mean[i]);
    distance += a.covariance[i * n + i] + b.covariance[i * n + i];
  }
  const std::vector<double> inside = product(product(root_of_b, a.covariance, n), root_of_b, n);
  // Rounding leaves values just below zero.
  for (const double value : eigenvalues(inside, n, nullptr)) distance -= 2 * std::sqrt(value < 0 ? 0 : value);
  return distance < 0 ? 0 : distance;
}

// How often each of `count` rows is drawn by one repetition of the bootstrap.
std::vector<double> drawn_anew(std::uint64_t seed, const char* name, int repetition, std::size_t count) {
  const RandomStream stream(seed, name, static_cast<std::uint64_t>(repetition));
  std::vector<double> weights(count, 0);
  for (std::size_t i = 0; i < count; ++i) ++weights[stream.below(i, count)];
  return weights;
}

// What the head of a classifier reads, and what it says, image by image.
class Eyes {
 public:
  explicit Eyes(const TrainedModel& model) : config_(model.config.model) {
    config_.dropout = config_.smoothing = false;
    Graph graph;
    const Model built = build_model(graph, config_, {.logits = true, .purpose = Purpose::evaluate});
    graph.output("hidden", built.hidden * 1.0);
    graph.output("logits", built.logits);
    width_ = built.hidden.shape().channels();
    session_ = make_session(compile(graph, device_backend(model.config)),
                            {.members = 1, .threads = static_cast<int>(model.config.train.threads)});
    load_model(model, built.schedules, *session_);
    image_ = session_->handle("image");
  }

  std::int64_t width() const { return width_; }
  std::int64_t rows() const { return config_.batch; }
  std::int64_t elements() const { return image_.type().shape.elements() / config_.batch; }

  // Of the first `count` images; appends features and classes.
  void look(std::span<const float> images, std::int64_t count, std::vector<double>& features,
            std::vector<std::int64_t>& classes) {
    std::vector<double> staged(images.begin(), images.end());
    staged.resize(static_cast<std::size_t>(rows() * elements()), 0);
    session_->stage_numbers(image_, 0, staged);
    session_->run();
    const std::vector<double> hidden = session_->numbers("hidden", 0), logits = session_->numbers("logits", 0);
    features.insert(features.end(), hidden.begin(), hidden.begin() + count * width_);
    const std::int64_t said = std::ssize(logits) / rows();
    for (std::int64_t row = 0; row < count; ++row) {
      const auto first = logits.begin() + row * said;
      classes.push_back(std::max_element(first, first + said) - first);
    }
  }

 private:
  ModelConfig config_;
  std::int64_t width_ = 0;
  std::unique_ptr<Session> session_;
  Handle image_;
};

std::vector<double> held_out_features(Eyes& eyes, const Source& source) {
  std::vector<double> features;
  std::vector<std::int64_t> ignored;
  Batch batch;
  for (std::int64_t index = 0; index < source.evaluation_batches(); ++index) {
    source.fill_evaluation(index, batch);
    const Batch::Ids& targets = batch.ids("targets");
    const std::int64_t there = std::ranges::find(targets, kIgnored) - targets.begin();
    eyes.look(batch.numbers("image"), there, features, ignored);
  }
  return features;
}

}  // namespace

double frechet_distance(std::span<const double> a, std::span<const double> b, std::int64_t width) {
  const auto n = static_cast<std::size_t>(width);
  const FeatureMoments first = moments_of(a, n, std::vector<double>(a.size() / n, 1)),
                       second = moments_of(b, n, std::vector<double>(b.size() / n, 1));
  return frechet(first, second, square_root(second.covariance, n));
}

FrechetEstimate estimate_frechet(std::span<const double> a, std::span<const double> b, std::int64_t width,
                                 std::uint64_t seed) {
  const auto n = static_cast<std::size_t>(width);
  const std::size_t rows = a.size() / n, others = b.size() / n;
  if (rows < 2 || others < 2)
    fail("a Frechet distance between {} and {} rows; expected at least 2 of both", rows, others);
  if (!std::ranges::all_of(a, [](double x) { return std::isfinite(x); }) ||
      !std::ranges::all_of(b, [](double x) { return std::isfinite(x); }))
    fail("features that are not finite have no Frechet distance");
  FrechetEstimate found{.distance = {}, .plain = frechet_distance(a, b, width)};
  std::vector<double> repeated;
  double mean = 0;
  for (int repetition = 0; repetition < kFrechetRepetitions; ++repetition) {
    const FeatureMoments first = moments_of(a, n, drawn_anew(seed, "samples.bootstrap", repetition, rows)),
                         second = moments_of(b, n, drawn_anew(seed, "held_out.bootstrap", repetition, others));
    repeated.push_back(frechet(first, second, square_root(second.covariance, n)));
    mean += repeated.back() / kFrechetRepetitions;
  }
  std::sort(repeated.begin(), repeated.end());
  constexpr std::size_t kEdge = kFrechetRepetitions / 40;
  found.distance = {2 * found.plain - mean, 2 * found.plain - repeated[kFrechetRepetitions - 1 - kEdge],
                    2 * found.plain - repeated[kEdge]};
  return found;
}

FrechetQuality frechet_quality(const DenoisedSamples& samples, const TrainedModel& classifier, std::uint64_t seed) {
  const ModelConfig& model = classifier.config.model;
  if (model.family->data != "images")
    fail("a {} is not a classifier of images, through whose eyes samples could be compared", model.family->name);
  TrainedModel wide = classifier;
  wide.config.data.evaluation_batches = reads_files(wide.config.data.task) ? 0 : 32;  // of files all there are
  const std::shared_ptr<const Source> source = open_data(wide);
  Eyes eyes(classifier);
  if (eyes.elements() != samples.elements() || size_of(model, "image_width") != samples.width)
    fail("the classifier reads images of {} x {} x {}, but samples are {} x {} x {}", size_of(model, "image_height"),
         size_of(model, "image_width"), size_of(model, "image_channels"), samples.height, samples.width,
         samples.channels);
  const auto n = static_cast<std::size_t>(eyes.width());
  if (samples.count() < 2) fail("{} sample is too few for a Frechet distance; expected at least 2", samples.count());
  const std::vector<double> held_out = held_out_features(eyes, *source);
  std::vector<double> features;
  std::vector<std::int64_t> said;
  const std::span<const float> values = samples.values;
  for (std::int64_t first = 0; first < samples.count(); first += eyes.rows()) {
    const std::int64_t count = std::min(eyes.rows(), samples.count() - first);
    eyes.look(values.subspan(static_cast<std::size_t>(first * samples.elements()),
                             static_cast<std::size_t>(count * samples.elements())),
              count, features, said);
  }
  FrechetQuality found;
  found.samples = samples.count();
  found.held_out = std::ssize(held_out) / eyes.width();
  found.features = eyes.width();
  const FrechetEstimate estimate = estimate_frechet(features, held_out, eyes.width(), seed);
  found.distance = estimate.distance;
  found.plain = estimate.plain;
  const std::size_t half = held_out.size() / n / 2 * n;
  found.floor = frechet_distance(std::span(held_out).first(half), std::span(held_out).subspan(half), eyes.width());
  if (!samples.classes.empty()) {
    std::int64_t right = 0;
    for (std::size_t i = 0; i < said.size(); ++i) right += said[i] == samples.classes[i];
    found.agreement = static_cast<double>(right) / static_cast<double>(said.size());
  }
  return found;
}

}  // namespace norma
