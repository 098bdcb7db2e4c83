#include "norma/train/check.h"

#include <algorithm>
#include <deque>

#include "norma/backends/device.h"
#include "norma/data/source.h"
#include "norma/device/session.h"
#include "norma/models/gradients.h"
#include "norma/models/profile.h"
#include "norma/ops/embedding.h"
#include "norma/store/safetensors.h"
#include "norma/store/safetensors_writer.h"
#include "norma/train/data.h"
#include "norma/train/feeder.h"

namespace norma {
namespace {

// Token ids of either integer type.
std::vector<std::int32_t> read_ids(const SafetensorsFile& file, const std::string& name) {
  const TensorInfo& info = file.info(name);
  std::vector<std::int32_t> ids;
  if (info.type == ElementType::i32) {
    ids = file.copy<std::int32_t>(name);
  } else if (info.type == ElementType::i64) {
    for (const std::int64_t id : file.copy<std::int64_t>(name)) {
      if (id < -(1LL << 31) || id >= (1LL << 31)) fail("'{}': '{}' holds {}", file.path().string(), name, id);
      ids.push_back(static_cast<std::int32_t>(id));
    }
  } else {
    fail("'{}': '{}' is {}; expected I32 or I64", file.path().string(), name, info.str());
  }
  return ids;
}

// What members differ in is nothing that a check depends on, except for their seeds.
TrainConfig only_member(const RunConfig& config) {
  const std::vector<TrainConfig> members = member_configs(config);
  for (const TrainConfig& one : members) {
    if (one.seed != members[0].seed || one.data_seed != members[0].data_seed)
      fail(
          "{} members with seeds of their own were given, but norma check writes one model; expected one seed, such as "
          "--train.seed={}",
          members.size(), one.seed);
  }
  return members[0];
}

class Check {
 public:
  explicit Check(const CheckRequest& request)
      : request_(request), config_(request.config.model), train_(only_member(request.config)) {
    if (request.tokens) {
      file_.emplace(*request.tokens);
      shapes_from_file();
    } else {
      batch_from_data();
    }
    config_.dropout = config_.smoothing = config_.mixture = false;
  }

  CheckResult run() {
    Graph graph;
    const Model model = build_model(graph, config_, {.logits = true});
    Wires parameters;
    for (const ParameterSpec& spec : model.parameters) parameters.push_back(graph.find(spec.name));
    const Wires gradients = differentiate_model(config_, model.loss, parameters);
    graph.output("loss", model.loss);
    graph.output("logits", model.logits);
    for (std::size_t i = 0; i < parameters.size(); ++i)
      graph.output("gradient." + model.parameters[i].name, gradients[i]);
    const auto owned = make_session(compile(graph, device_backend(request_.config)),
                                    {.members = 1, .threads = static_cast<int>(request_.config.train.threads)});
    Session& session = *owned;
    load_weights(session, model.parameters);
    load_batch(session, model);
    if (!request_.weights) profile(session, model.parameters);
    session.run();
    return write(session, model.parameters);
  }

 private:
  // The sizes of the model's inputs are those of the file.
  void shapes_from_file() {
    for (const InputSpec& input : config_.family->inputs(config_)) {
      if (!file_->contains(input.name)) continue;
      const TensorInfo& info = file_->info(input.name);
      std::vector<std::string> names;
      for (const InputSpec::Size& size : input.sizes) names.push_back(size.name);
      if (info.shape.size() != input.sizes.size())
        fail("'{}': '{}' is {}; expected [{}]", file_->path().string(), input.name, info.str(), fmt::join(names, ", "));
      for (std::size_t i = 0; i < names.size(); ++i) take_size(input.name, names[i], info.shape[i]);
    }
    for (const InputSpec& input : config_.family->inputs(config_)) {
      if (input.content == InputSpec::Content::ids && input.below == 0)
        fail("model.vocabulary must be set when tokens come from a file");
      if (file_->contains(input.name)) read_tensor(input);
    }
  }

  void take_size(const std::string& input, const std::string& name, std::int64_t value) {
    const auto [entry, fresh] = sizes_.try_emplace(name, value);
    if (entry->second != value)
      fail("'{}': '{}' has {} {}; expected {}", file_->path().string(), input, name, value, entry->second);
    if (fresh) set_size(config_, name, value);
  }

  void read_tensor(const InputSpec& input) {
    const TensorInfo& info = file_->info(input.name);
    const Shape shape{std::span<const std::int64_t>(info.shape)};
    if (input.content == InputSpec::Content::numbers) {
      batch_.numbers(input.name, shape) = file_->to_f32(input.name);
    } else {
      batch_.ids(input.name, shape) = read_ids(*file_, input.name);
    }
  }

  void batch_from_data() {
    const auto source = open_data(request_.config);
    take_sizes(*source, config_);
    source->fill(0, static_cast<std::uint64_t>(train_.data_seed), batch_);
  }

  void load_batch(Session& session, const Model& model) {
    inputs_ = config_.family->inputs(config_);
    add_whole_lengths(inputs_, batch_);
    for (const InputSpec& input : inputs_) {
      if (!batch_.has(input.name))
        fail("{} has no '{}', which this model reads",
             file_ ? "'" + file_->path().string() + "'" : "data.task = \"" + request_.config.data.task + "\"",
             input.name);
      if (batch_.tensor(input.name).shape.elements() != input.shape().elements())
        fail("'{}' has {} {}; expected {}", input.name, batch_.tensor(input.name).shape.elements(),
             input.content == InputSpec::Content::numbers ? "numbers" : "ids", input.shape().str());
    }
    Feeder feeder(session, config_, model.schedules);
    feeder.write(batch_, 0);
    feeder.schedules(0, static_cast<double>(request_.config.train.steps));
    for (const InputSpec& input : inputs_) {
      if (input.content == InputSpec::Content::ids) check_tokens(batch_.ids(input.name), input.below);
      if (input.content == InputSpec::Content::targets) check_targets(input);
    }
    require_targets(batch_, inputs_, 0);
  }

  void check_targets(const InputSpec& input) const {
    const Batch::Ids& targets = batch_.ids(input.name);
    const std::int64_t known = input.below;
    const std::size_t width = targets.size() / static_cast<std::size_t>(input.sizes.front().value);
    for (std::size_t i = 0; i < targets.size(); ++i) {
      if (targets[i] == kIgnored || (targets[i] >= 0 && targets[i] < known)) continue;
      fail("target {} at row {}, position {} is outside the {} {} (0 to {}); only {} may be, which is not counted",
           targets[i], i / width, i % width, known, input.sizes.size() == 1 ? "classes" : "tokens of the vocabulary",
           known - 1, kIgnored);
    }
  }

  void load_weights(Session& session, const std::vector<ParameterSpec>& specs) {
    initialise(session, specs, static_cast<std::uint64_t>(train_.seed));
    if (!request_.weights) return;
    const SafetensorsFile file(*request_.weights);
    for (const ParameterSpec& spec : specs) {
      const Type& type = session.plan().slot(spec.name).type;
      const TensorInfo& info = file.info(spec.name);
      if (info.shape != dimensions_of(type.shape))
        fail("'{}': '{}' is {} but the model has {}", file.path().string(), spec.name, info.str(), type.str());
      if (type.dtype == DType::f64 && info.type == ElementType::f64) {
        session.write<double>(spec.name, file.copy<double>(spec.name));
      } else if (type.dtype == DType::f64) {
        const std::vector<float> values = file.to_f32(spec.name);
        session.write<double>(spec.name, std::vector<double>(values.begin(), values.end()));
      } else {
        session.write<float>(spec.name, file.to_f32(spec.name));
      }
    }
  }

  // Initial weights are those that a run would start from: what a scheme measures is measured, on this batch.
  void profile(Session& session, const std::vector<ParameterSpec>& specs) {
    Graph graph;
    const Model model = build_model(graph, config_, {.profile = true});
    if (graph.outputs().empty()) return;
    const auto profiled = make_session(compile(graph, device_backend(request_.config)),
                                       {.members = 1, .threads = static_cast<int>(request_.config.train.threads)});
    initialise(*profiled, model.parameters, static_cast<std::uint64_t>(train_.seed));
    load_batch(*profiled, model);
    profiled->run();
    apply_profile(*profiled, session, specs, 0);
  }

  CheckResult write(Session& session, const std::vector<ParameterSpec>& specs) {
    std::vector<TensorData> tensors;
    std::deque<std::vector<std::byte>> copies;
    const auto add = [&](const std::string& name, const std::string& as) {
      const Handle tensor = session.handle(name);
      std::vector<std::byte>& bytes = copies.emplace_back(tensor.bytes());
      session.read(tensor, 0, bytes);
      tensors.push_back({{as, element_type_of(tensor.type().dtype), dimensions_of(tensor.type().shape)}, bytes});
    };
    add("loss", "loss");
    add("logits", "logits");
    CheckResult result;
    for (const ParameterSpec& spec : specs) {
      add("gradient." + spec.name, "gradient." + spec.name);
      add(spec.name, "weight." + spec.name);
      result.parameters += session.plan().slot(spec.name).type.shape.elements();
    }
    std::ranges::sort(inputs_, {}, &InputSpec::name);
    for (const InputSpec& input : inputs_) add(input.name, input.name);
    RunConfig used = request_.config;
    used.model = config_;
    write_safetensors(request_.out, tensors, {{"norma.config", print_config(used)}});
    result.loss = session.number("loss", 0);
    for (const TensorData& tensor : tensors) result.tensors.push_back(tensor.entry.name);
    return result;
  }

  const CheckRequest& request_;
  ModelConfig config_;
  TrainConfig train_;  // of the member
  std::optional<SafetensorsFile> file_;
  std::map<std::string, std::int64_t> sizes_;  // that the file gave
  std::vector<InputSpec> inputs_;
  Batch batch_;
};

}  // namespace

CheckResult check_model(const CheckRequest& request) { return Check(request).run(); }

}  // namespace norma
