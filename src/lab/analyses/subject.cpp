#include "norma/lab/subject.h"

#include <algorithm>
#include <cmath>
#include <set>

#include "norma/backends/device.h"
#include "norma/core/error.h"
#include "norma/core/random.h"
#include "norma/train/data.h"

namespace norma {
namespace {

// A random graph of as many edges as there is room for, in both directions and sorted, each node with itself; of
// several graphs their nodes follow one another in equal numbers. What graph families read (docs/families.md).
void draw_graph(const RandomStream& stream, Batch& batch) {
  Batch::Ids& edges = batch.ids("edges");
  const auto room = std::ssize(edges) / 2, nodes = batch.tensor("degrees").shape[0];
  const std::int64_t graphs = batch.has("graph_of") ? batch.tensor("targets").shape[0] : 1;
  const auto graph_of = [&](std::int64_t node) { return node * graphs / nodes; };
  std::set<std::pair<std::int32_t, std::int32_t>> pairs;
  for (std::int32_t node = 0; node < nodes && std::ssize(pairs) < room; ++node) pairs.emplace(node, node);
  for (std::uint64_t i = 0; i < 8 * static_cast<std::uint64_t>(room) && std::ssize(pairs) + 2 <= room; i += 2) {
    const auto a = static_cast<std::int32_t>(stream.below(i, static_cast<std::uint64_t>(nodes))),
               b = static_cast<std::int32_t>(stream.below(i + 1, static_cast<std::uint64_t>(nodes)));
    if (graph_of(a) == graph_of(b)) pairs.insert({{a, b}, {b, a}});
  }
  std::ranges::fill(edges, static_cast<std::int32_t>(nodes));
  Batch::Numbers& degrees = batch.numbers("degrees", {nodes});
  std::ranges::fill(degrees, 0.0f);
  std::size_t at = 0;
  for (const auto& [node, other] : pairs) {
    edges[static_cast<std::size_t>(room) + at] = other;
    edges[at++] = node;
    ++degrees[static_cast<std::size_t>(node)];
  }
  for (float& degree : degrees) degree = std::max(degree, 1.0f);
  if (!batch.has("graph_of")) return;
  Batch::Ids& of = batch.ids("graph_of");
  for (std::size_t node = 0; node < of.size(); ++node)
    of[node] = static_cast<std::int32_t>(graph_of(static_cast<std::int64_t>(node)));
}

// Independent draws for every input of a family: ids and targets out of those that there are, normal numbers, whole
// rows. Of a graph its edges belong together.
class RandomData final : public Source {
 public:
  explicit RandomData(const ModelConfig& model) : inputs_(model.family->inputs(model)), vocabulary_(0) {
    for (const InputSpec& input : inputs_) {
      if (input.content == InputSpec::Content::ids) vocabulary_ = model.vocabulary;
      const bool drawn = input.content == InputSpec::Content::ids || input.content == InputSpec::Content::targets;
      if (drawn && input.below < 2) fail("random {} need a vocabulary of at least 2, not {}", input.name, input.below);
      if (input.content == InputSpec::Content::targets) answers_ = input.below;
    }
  }

  void fill(std::uint64_t index, std::uint64_t seed, Batch& batch) const override {
    for (const InputSpec& input : inputs_) {
      const RandomStream stream(seed, "lab.random." + input.name, index);
      if (input.content == InputSpec::Content::numbers) {
        Batch::Numbers& numbers = batch.numbers(input.name, input.shape());
        for (std::size_t i = 0; i < numbers.size(); ++i) numbers[i] = static_cast<float>(stream.normal(i));
      } else if (input.content != InputSpec::Content::lengths) {
        Batch::Ids& ids = batch.ids(input.name, input.shape());
        for (std::size_t i = 0; i < ids.size(); ++i)
          ids[i] = static_cast<std::int32_t>(stream.below(i, static_cast<std::uint64_t>(input.below)));
      }
    }
    if (batch.has("edges")) draw_graph(RandomStream(seed, "lab.random.graph", index), batch);
  }
  std::int64_t evaluation_batches() const override { return 8; }
  void fill_evaluation(std::int64_t index, Batch& batch) const override {
    fill(static_cast<std::uint64_t>(index), ~std::uint64_t{0}, batch);
  }
  std::int64_t vocabulary() const override { return vocabulary_; }
  // Who is asked for numbers has none that is exact: those that were drawn scatter about a variance of 1.
  std::optional<double> optimum() const override {
    return answers_ > 0 ? std::optional(std::log(static_cast<double>(answers_))) : std::nullopt;
  }
  std::string describe() const override {
    if (answers_ == 0) return "random: every input drawn by itself, and what is asked for with variance 1";
    return fmt::format("random: every input drawn by itself, targets out of {}", answers_);
  }

 private:
  std::vector<InputSpec> inputs_;
  std::int64_t vocabulary_, answers_ = 0;  // answers: 0 where numbers are asked for
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

StackSites last_stack(const ModelConfig& model) { return model.family->sites(model).back(); }

std::vector<StackSites> last_stacks(const ModelConfig& model) {
  std::vector<StackSites> all = model.family->sites(model);
  all.erase(all.begin(), all.begin() + static_cast<std::ptrdiff_t>(first_of_last_stream(all)));
  return all;
}

std::vector<std::string> layers_of_last_stacks(const ModelConfig& model) {
  std::vector<std::string> names;
  for (const StackSites& stack : last_stacks(model)) {
    for (std::int64_t layer = 0; layer < stack.layers; ++layer)
      names.push_back(fmt::format("{}layers.{}", stack.prefix(), layer));
  }
  return names;
}

std::string stack_prefix(const ModelConfig& model) { return last_stack(model).prefix(); }

std::int64_t sublayers(const ModelConfig& model) {
  std::int64_t count = 0;
  for (const StackSites& stack : model.family->sites(model)) count += stack.sublayers();
  return count;
}

std::shared_ptr<const Source> random_data(const ModelConfig& model) { return std::make_shared<RandomData>(model); }

Subject initial_subject(ModelConfig model, std::shared_ptr<const Source> source, std::vector<std::uint64_t> seeds,
                        int threads, Device device) {
  if (seeds.empty()) fail("an analysis needs at least one seed");
  take_sizes(*source, model);
  check_reads(model, *source);
  model.dropout = model.smoothing = model.mixture = false;
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
  session_ =
      make_session(std::move(plan), {.members = static_cast<int>(seeds_.size()), .threads = subject.threads_now()});
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

void Rig::run() {
  if (subject_.share) session_->use_threads(subject_.share());
  session_->run();
}

void Rig::write(std::string_view name, std::span<const double> values, int member) {
  session_->stage_numbers(session_->handle(name), member, values);
}

}  // namespace norma
