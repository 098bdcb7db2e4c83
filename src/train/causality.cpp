#include "norma/train/causality.h"

#include <algorithm>
#include <cmath>

#include "norma/backends/cpu.h"
#include "norma/backends/device.h"
#include "norma/core/error.h"
#include "norma/core/random.h"
#include "norma/norms/channel.h"
#include "norma/train/feeder.h"

namespace norma {
namespace {

constexpr std::int64_t kMostLayers = 48, kHeads = 4, kWidth = 32, kMostTokens = 8, kMostWords = 16;
constexpr double kMoved = 0.3;        // how far weights move from their start, as a share of their size
constexpr double kRounding = 1e-9;    // of the size of the logits: far above rounding in double, far below any leak
constexpr std::uint64_t kSeed = 711;  // of weights and tokens; any will do

// The same wiring, as small as it can be.
ModelConfig small_copy(ModelConfig model) {
  const bool shared_keys = model.kv_heads > 0 && model.kv_heads < model.heads;
  model.layers = std::min(model.layers, kMostLayers);
  model.encoder_layers = std::min(model.encoder_layers, kMostLayers);
  model.heads = kHeads;
  model.kv_heads = shared_keys ? 1 : 0;
  model.width = kWidth;
  model.hidden = 0;
  model.batch = 2;
  model.time = std::min(model.time, kMostTokens);
  model.source_time = std::min(model.source_time, kMostTokens);
  model.vocabulary = kMostWords;
  model.source_vocabulary = std::min(model.source_vocabulary, kMostWords);
  model.dropout = model.smoothing = model.mixture = false;
  model.dtype = DType::f64;
  return model;
}

class LeakProbe {
 public:
  LeakProbe(const ModelConfig& model, double steps) : config_(model), steps_(steps) {
    Graph graph;
    const Model built = build_model(graph, config_, {.logits = true});
    graph.output("logits", built.logits);
    for (const Node& node : graph.nodes()) {
      if (over_positions_.empty() && dynamic_cast<const ChannelNorm*>(node.op.get()) != nullptr)
        over_positions_ =
            fmt::format("'{}' is a {}, which takes its statistics over positions", node.scope.str(), node.op->name());
    }
    schedules_ = built.schedules;
    parameters_ = built.parameters;
    session_ = make_session(compile(graph, cpu_backend()), {.members = 1, .threads = 1});
    initialise(*session_, parameters_, kSeed);
    fill_batch();
  }

  bool leaks() {
    const std::vector<double> times =
        schedules_.empty() ? std::vector<double>{0} : std::vector<double>{0, steps_ / 2, steps_};
    move_weights();
    if (!std::ranges::all_of(logits(0, false), [](double value) { return std::isfinite(value); }))
      initialise(*session_, parameters_, kSeed);  // a formula that does not bear it: as it starts, then
    return std::ranges::any_of(times, [&](double time) { return differs(logits(time, false), logits(time, true)); });
  }

  std::string words() const {
    return fmt::format(
        "a later token changes an earlier logit: {}",
        over_positions_.empty() ? "some value of its formulas is a number of all positions at once" : over_positions_);
  }

 private:
  std::int64_t cut() const { return config_.time / 2; }

  void fill_batch() {
    for (const InputSpec& input : config_.family->inputs(config_)) {
      const RandomStream random(kSeed, input.name);
      if (input.content == InputSpec::Content::numbers) {
        std::vector<float>& values = batch_.numbers(input.name, input.shape());
        for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(random.normal(i));
        continue;
      }
      Batch::Ids& ids = batch_.ids(input.name, input.shape());
      const bool whole = input.content == InputSpec::Content::lengths;
      for (std::size_t i = 0; i < ids.size(); ++i)
        ids[i] = static_cast<std::int32_t>(
            whole ? input.below : static_cast<std::int64_t>(random.below(i, static_cast<std::uint64_t>(input.below))));
    }
  }

  // What starts at zero would hide what stands behind it.
  void move_weights() {
    for (const ParameterSpec& spec : parameters_) {
      const Handle tensor = session_->handle(spec.name);
      std::vector<double> values = session_->numbers(tensor);
      double square = 0;
      for (const double value : values) square += value * value / static_cast<double>(values.size());
      const double size = square > 0 ? std::sqrt(square) : 1;
      const RandomStream random(kSeed, "moved." + spec.name);
      random.each_normal(values.size(), [&](std::uint64_t i, double normal) { values[i] += kMoved * size * normal; });
      session_->stage_numbers(tensor, 0, values);
    }
  }

  std::vector<double> logits(double time, bool others) {
    Batch batch = batch_;
    if (others) {
      Batch::Ids& tokens = batch.ids("tokens");
      for (std::size_t i = 0; i < tokens.size(); ++i) {
        if (static_cast<std::int64_t>(i) % config_.time >= cut())
          tokens[i] = static_cast<std::int32_t>((tokens[i] + 1) % kMostWords);
      }
    }
    Feeder feeder(*session_, config_, schedules_);
    feeder.write(batch, 0);
    feeder.schedules(time, steps_);
    session_->run();
    return session_->numbers("logits");
  }

  bool differs(const std::vector<double>& a, const std::vector<double>& b) const {
    double largest = 0, square = 0;
    const std::int64_t words = std::ssize(a) / (config_.batch * config_.time);
    for (std::size_t i = 0; i < a.size(); ++i) {
      if (static_cast<std::int64_t>(i) / words % config_.time >= cut()) continue;
      largest = std::max(largest, std::abs(a[i] - b[i]));
      square = std::max(square, std::abs(a[i]));
    }
    return largest > kRounding * square;
  }

  ModelConfig config_;
  double steps_;
  std::string over_positions_;
  std::vector<Schedule> schedules_;
  std::vector<ParameterSpec> parameters_;
  std::unique_ptr<Session> session_;
  Batch batch_;
};

}  // namespace

std::optional<std::string> leak_of(const ModelConfig& model, double steps) {
  if (model.family->speech == Speech::none || model.time < 2) return std::nullopt;
  LeakProbe probe(small_copy(model), steps);
  return probe.leaks() ? std::optional(probe.words()) : std::nullopt;
}

void require_causal(const ModelConfig& model, double steps) {
  const auto leak = leak_of(model, steps);
  if (!leak) return;
  fail(
      "the scheme '{}' lets the model see what it is to predict: {}. Its loss would say nothing. Use a norm over "
      "channels, such as layer or rms, or train it all the same with train.leaks=\"allow\"",
      model.scheme.asked(), *leak);
}

}  // namespace norma
