#include "norma/lab/subject.h"

#include <algorithm>
#include <cmath>

#include "norma/backends/device.h"
#include "norma/core/error.h"
#include "norma/core/random.h"

namespace norma {
namespace {

class RandomTokens final : public Source {
 public:
  RandomTokens(const BatchShape& shape, std::int64_t vocabulary) : shape_(shape), vocabulary_(vocabulary) {
    if (vocabulary < 2) fail("random tokens need a vocabulary of at least 2, not {}", vocabulary);
  }

  void fill(std::uint64_t index, std::uint64_t seed, Batch& batch) const override {
    draw(batch.tokens, shape_.time, "lab.random.tokens", index, seed);
    draw(batch.targets, shape_.time, "lab.random.targets", index, seed);
    const std::int64_t source_time = shape_.source_time > 0 ? shape_.source_time : shape_.time;
    draw(batch.source, source_time, "lab.random.source", index, seed);
    batch.source_lengths.assign(static_cast<std::size_t>(shape_.batch), static_cast<std::int32_t>(source_time));
  }
  std::int64_t evaluation_batches() const override { return 8; }
  void fill_evaluation(std::int64_t index, Batch& batch) const override {
    fill(static_cast<std::uint64_t>(index), ~std::uint64_t{0}, batch);
  }
  std::int64_t vocabulary() const override { return vocabulary_; }
  std::optional<double> optimum() const override { return std::log(static_cast<double>(vocabulary_)); }
  std::string describe() const override {
    return fmt::format("random: independent tokens and targets out of {}", vocabulary_);
  }

 private:
  void draw(std::vector<std::int32_t>& ids, std::int64_t time, const char* name, std::uint64_t index,
            std::uint64_t seed) const {
    const RandomStream stream(seed, name, index);
    ids.resize(static_cast<std::size_t>(shape_.batch * time));
    for (std::size_t i = 0; i < ids.size(); ++i)
      ids[i] = static_cast<std::int32_t>(stream.below(i, static_cast<std::uint64_t>(vocabulary_)));
  }

  BatchShape shape_;
  std::int64_t vocabulary_;
};

// Segments whose inside is computed again: the least memory is at the square root of the depth. Shallow models keep
// all.
int recomputed_layers(const ModelConfig& model) {
  return model.layers < 32 ? 0 : static_cast<int>(std::lround(std::sqrt(static_cast<double>(model.layers))));
}

}  // namespace

void transform(Session& session, std::string_view name, int member,
               const std::function<double(std::size_t, double)>& change) {
  const Handle tensor = session.handle(name);
  std::vector<double> values = session.numbers(tensor, member);
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = change(i, values[i]);
  session.stage_numbers(tensor, member, values);
}

std::string stack_prefix(const ModelConfig& model) { return model.family == Family::encoder_decoder ? "decoder." : ""; }

std::int64_t sublayers(const ModelConfig& model) {
  if (model.family != Family::encoder_decoder) return 2 * model.layers;
  return 3 * model.layers + 2 * (model.encoder_layers == 0 ? model.layers : model.encoder_layers);
}

std::shared_ptr<const Source> random_tokens(const BatchShape& shape, std::int64_t vocabulary) {
  return std::make_shared<RandomTokens>(shape, vocabulary);
}

Subject initial_subject(ModelConfig model, std::shared_ptr<const Source> source, std::vector<std::uint64_t> seeds,
                        int threads, Device device) {
  if (seeds.empty()) fail("an analysis needs at least one seed");
  if (model.vocabulary == 0) model.vocabulary = source->vocabulary();
  check_vocabulary(*source, model.vocabulary);
  if (source->classes() > 0) {
    if (model.family != Family::encoder) fail("classification needs an encoder");
    if (model.classes == 0) model.classes = source->classes();
  }
  if (model.family == Family::encoder_decoder) {
    Batch batch;
    source->fill(0, seeds[0], batch);
    if (batch.source.empty()) fail("this data has nothing for an encoder to read: {}", source->describe());
  }
  model.dropout = model.smoothing = false;
  Subject subject{
      .model = std::move(model), .source = std::move(source), .seeds = std::move(seeds), .weights = nullptr};
  subject.threads = threads;
  subject.device = device;
  subject.weights = initial_weights(subject.model, *subject.source, subject.seeds, threads);
  return subject;
}

Rig::Rig(const Subject& subject, const Trace& trace, const Options& options) : subject_(subject) {
  ModelConfig config = subject.model;
  if (options.wide) config.dtype = DType::f64;
  Graph graph;
  const Model model = build_model(graph, config, options.model);
  trace(graph, model);
  parameters_ = model.parameters;
  auto plan = compile(graph, backend(subject.device, config.dtype),
                      {.recompute_every = options.backward ? recomputed_layers(config) : 0});
  for (const std::uint64_t seed : subject.seeds)
    seeds_.insert(seeds_.end(), static_cast<std::size_t>(options.copies), seed);
  session_ = make_session(std::move(plan), {.members = static_cast<int>(seeds_.size()), .threads = subject.threads});
  feeder_.emplace(*session_, subject.model, model.schedules);
  subject.weights->load(*session_, parameters_);
}

void Rig::load_batch(std::uint64_t index) {
  feeder_->batch(*subject_.source, index, seeds_);
  feeder_->schedules(subject_.step, subject_.steps);
}

void Rig::load_evaluation_batch(std::int64_t index) {
  feeder_->evaluation_batch(*subject_.source, index);
  feeder_->schedules(subject_.step, subject_.steps);
}

void Rig::write(std::string_view name, std::span<const double> values, int member) {
  session_->stage_numbers(session_->handle(name), member, values);
}

}  // namespace norma
