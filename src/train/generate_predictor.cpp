// The next token after many prefixes at once: an encoder that runs once, a decoder that runs for each token.
#include <algorithm>
#include <cmath>

#include "norma/backends/device.h"
#include "norma/core/error.h"
#include "norma/ops/embedding.h"
#include "norma/train/generate.h"
#include "train/generate_plan.h"

namespace norma {
namespace {

ModelConfig without_noise(ModelConfig config) {
  config.dropout = config.smoothing = config.mixture = false;
  return config;
}

void check_generates(const ModelConfig& config) {
  if (config.classes > 0) fail("this model is a classifier of {} classes; it says no tokens", config.classes);
  if (config.family->speech == Speech::none)
    fail("this model is of the family {}, which {}; it cannot say one token after another", config.family->name,
         config.family->habit);
}

}  // namespace

Predictor::Predictor(const TrainedModel& model, std::int64_t rows, std::int64_t rows_per_source)
    : config_(without_noise(model.config.model)),
      rows_(rows),
      rows_per_source_(rows_per_source),
      source_time_(config_.source_time > 0 ? config_.source_time : config_.time) {
  check_generates(config_);
  if (rows < 1 || rows_per_source < 1 || rows % rows_per_source != 0)
    fail("{} rows at once with {} for each source; expected a multiple", rows, rows_per_source);
  const int threads = static_cast<int>(model.config.train.threads);
  const auto open = [&](const ForwardPlan& forward) {
    auto session = make_session(forward.plan, {.members = 1, .threads = threads});
    load_model(model, forward.schedules, *session);
    return session;
  };
  config_.batch = rows;
  decoder_ = open(decoder_plan(config_, device_backend(model.config)));
  if (!has_source()) return;
  ModelConfig encoder = config_;
  encoder.batch = rows / rows_per_source;
  encoder_ = open(encoder_plan(encoder, device_backend(model.config)));
}

Predictor::~Predictor() = default;
Predictor::Predictor(Predictor&&) noexcept = default;

void Predictor::read_sources(std::span<const std::vector<std::int32_t>> sources) {
  NORMA_ASSERT(has_source());
  const auto most = static_cast<std::size_t>(rows_ / rows_per_source_);
  if (sources.size() > most) fail("{} sources at once; expected at most {}", sources.size(), most);
  const std::int64_t vocabulary = config_.source_vocabulary > 0 ? config_.source_vocabulary : config_.vocabulary;
  std::vector<std::int32_t> ids(most * static_cast<std::size_t>(source_time_), 0), lengths(most, 1);
  for (std::size_t i = 0; i < sources.size(); ++i) {
    const std::vector<std::int32_t>& source = sources[i];
    if (source.empty() || static_cast<std::int64_t>(source.size()) > source_time_)
      fail("a source of {} tokens; expected 1 to {}", source.size(), source_time_);
    check_tokens(source, vocabulary);
    std::copy(source.begin(), source.end(), ids.begin() + static_cast<std::ptrdiff_t>(i) * source_time_);
    lengths[i] = static_cast<std::int32_t>(source.size());
  }
  encoder_->write<std::int32_t>("source", ids);
  encoder_->write<std::int32_t>("source_lengths", lengths);
  encoder_->run();
  const Handle encoded = encoder_->handle("memory"), decoded = decoder_->handle("memory");
  std::vector<std::byte> memory(encoded.bytes()), copies(decoded.bytes());
  encoder_->read(encoded, 0, memory);
  std::vector<std::int32_t> copied_lengths(static_cast<std::size_t>(rows_));
  const std::size_t bytes = memory.size() / most;
  for (std::size_t row = 0; row < static_cast<std::size_t>(rows_); ++row) {
    const std::size_t source = row / static_cast<std::size_t>(rows_per_source_);
    std::copy_n(memory.begin() + static_cast<std::ptrdiff_t>(source * bytes), bytes,
                copies.begin() + static_cast<std::ptrdiff_t>(row * bytes));
    copied_lengths[row] = lengths[source];
  }
  decoder_->stage(decoded, 0, copies);
  decoder_->write<std::int32_t>("source_lengths", copied_lengths);
}

void Predictor::run(std::span<const std::vector<std::int32_t>> prefixes) {
  const std::int64_t time = config_.time;
  if (static_cast<std::int64_t>(prefixes.size()) > rows_)
    fail("{} prefixes at once; expected at most {}", prefixes.size(), rows_);
  // What follows a prefix is not seen by it.
  std::vector<std::int32_t> tokens(static_cast<std::size_t>(rows_ * time), 0),
      positions(static_cast<std::size_t>(rows_));
  for (std::int64_t row = 0; row < rows_; ++row) {
    std::int64_t last = 0;
    if (row < std::ssize(prefixes) && !prefixes[static_cast<std::size_t>(row)].empty()) {
      const std::vector<std::int32_t>& prefix = prefixes[static_cast<std::size_t>(row)];
      const std::int64_t count = std::min<std::int64_t>(std::ssize(prefix), time);
      check_tokens(std::span(prefix).last(static_cast<std::size_t>(count)), config_.vocabulary);
      std::copy(prefix.end() - count, prefix.end(), tokens.begin() + row * time);
      last = count - 1;
    }
    positions[static_cast<std::size_t>(row)] = static_cast<std::int32_t>(row * time + last);
  }
  decoder_->write<std::int32_t>("tokens", tokens);
  decoder_->write<std::int32_t>("positions", positions);
  decoder_->run();
  const auto read = [&](auto number) {
    using Number = decltype(number);
    const std::vector<Number> logits = decoder_->read<Number>("logits"),
                              probabilities = decoder_->read<Number>("probabilities");
    logits_.resize(logits.size());
    log_sums_.resize(static_cast<std::size_t>(rows_));
    for (std::int64_t row = 0; row < rows_; ++row) {
      const std::int64_t begin = row * config_.vocabulary;
      const auto first = logits.begin() + begin, end = first + config_.vocabulary;
      std::transform(first, end, logits_.begin() + begin, [](Number x) { return static_cast<float>(x); });
      // The most probable token tells the sum: its probability is far from underflow.
      const std::ptrdiff_t best = std::max_element(first, end) - logits.begin();
      log_sums_[static_cast<std::size_t>(row)] =
          static_cast<double>(logits[static_cast<std::size_t>(best)]) -
          std::log(static_cast<double>(probabilities[static_cast<std::size_t>(best)]));
    }
  };
  if (config_.dtype == DType::f32) {
    read(float{});
  } else {
    read(double{});
  }
}

std::span<const float> Predictor::logits(std::int64_t row) const {
  return std::span(logits_).subspan(static_cast<std::size_t>(row * config_.vocabulary),
                                    static_cast<std::size_t>(config_.vocabulary));
}

double Predictor::flops() const { return decoder_->plan().cost().flops; }

}  // namespace norma
