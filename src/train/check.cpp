#include "norma/train/check.h"

#include <algorithm>
#include <deque>

#include "norma/backends/device.h"
#include "norma/data/source.h"
#include "norma/device/session.h"
#include "norma/graph/differentiate.h"
#include "norma/ops/embedding.h"
#include "norma/store/safetensors.h"
#include "norma/store/safetensors_writer.h"
#include "norma/train/data.h"

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

class Check {
 public:
  explicit Check(const CheckRequest& request) : request_(request), config_(request.config.model) {
    if (request.tokens) {
      tokens_.emplace(*request.tokens);
      shapes_from_tokens();
    } else {
      batch_from_data();
    }
    config_.dropout = config_.smoothing = false;
  }

  CheckResult run() {
    Graph graph;
    const Model model = build_model(graph, config_, {.logits = true});
    Wires parameters;
    for (const ParameterSpec& spec : model.parameters) parameters.push_back(graph.find(spec.name));
    const Wires gradients = differentiate(model.loss, parameters);
    graph.output("loss", model.loss);
    graph.output("logits", model.logits);
    for (std::size_t i = 0; i < parameters.size(); ++i)
      graph.output("gradient." + model.parameters[i].name, gradients[i]);
    const auto owned = make_session(compile(graph, device_backend(request_.config)),
                                    {.members = 1, .threads = static_cast<int>(request_.config.train.threads)});
    Session& session = *owned;
    load_weights(session, model.parameters);
    load_ids(session);
    for (const Schedule& schedule : model.schedules)
      session.stage_number(schedule.input, 0, schedule.at(0, static_cast<double>(request_.config.train.steps)));
    session.run();
    return write(session, model.parameters);
  }

 private:
  void shapes_from_tokens() {
    const TensorInfo& info = tokens_->info("tokens");
    if (info.shape.size() != 2)
      fail("'{}': 'tokens' is {}; expected [batch, time]", tokens_->path().string(), info.str());
    config_.batch = info.shape[0];
    config_.time = info.shape[1];
    if (config_.family == Family::encoder_decoder) {
      const TensorInfo& source = tokens_->info("source");
      if (source.shape.size() != 2 || source.shape[0] != config_.batch)
        fail("'{}': 'source' is {}; expected [{}, time]", tokens_->path().string(), source.str(), config_.batch);
      config_.source_time = source.shape[1];
    }
    if (config_.vocabulary == 0) fail("model.vocabulary must be set when tokens come from a file");
    for (const char* name : {"tokens", "targets", "source", "source_lengths", "lengths"}) {
      if (!tokens_->contains(name)) continue;
      ids_[name] = read_ids(*tokens_, name);
    }
  }

  void batch_from_data() {
    const auto source = open_data(request_.config);
    if (config_.vocabulary == 0) config_.vocabulary = source->vocabulary();
    check_vocabulary(*source, config_.vocabulary);
    if (config_.classes == 0) config_.classes = source->classes();
    Batch batch;
    source->fill(0, static_cast<std::uint64_t>(request_.config.train.data_seed), batch);
    ids_ = {{"tokens", batch.tokens}, {"targets", batch.targets}};
    if (!batch.source.empty()) ids_["source"] = batch.source;
    if (!batch.source_lengths.empty()) ids_["source_lengths"] = batch.source_lengths;
    if (!batch.lengths.empty()) ids_["lengths"] = batch.lengths;
  }

  void load_ids(Session& session) {
    const auto length = [&](std::int64_t time) {
      return std::vector<std::int32_t>(static_cast<std::size_t>(config_.batch), static_cast<std::int32_t>(time));
    };
    // Without lengths nothing is padding.
    ids_.try_emplace("lengths", length(config_.time));
    ids_.try_emplace("source_lengths", length(config_.source_time > 0 ? config_.source_time : config_.time));
    for (const char* name : {"tokens", "targets", "source", "source_lengths", "lengths"}) {
      if (!session.plan().has_slot(name)) {
        ids_.erase(name);
        continue;
      }
      const auto found = ids_.find(name);
      if (found == ids_.end())
        fail("{} has no '{}', which this model reads",
             tokens_ ? "'" + tokens_->path().string() + "'" : "data.task = \"" + request_.config.data.task + "\"",
             name);
      const Type& type = session.plan().slot(name).type;
      if (static_cast<std::int64_t>(found->second.size()) != type.shape.elements())
        fail("'{}' has {} ids; expected {}", name, found->second.size(), type.shape.str());
      session.write<std::int32_t>(name, found->second);
    }
    check_tokens(ids_.at("tokens"), config_.vocabulary);
    check_targets();
    if (ids_.contains("source"))
      check_tokens(ids_.at("source"), config_.source_vocabulary > 0 ? config_.source_vocabulary : config_.vocabulary);
  }

  void check_targets() const {
    const std::vector<std::int32_t>& targets = ids_.at("targets");
    const bool classifies = config_.classes > 0;
    const std::int64_t known = classifies ? config_.classes : config_.vocabulary;
    const std::size_t width = targets.size() / static_cast<std::size_t>(config_.batch);
    for (std::size_t i = 0; i < targets.size(); ++i) {
      if (targets[i] == kIgnored || (targets[i] >= 0 && targets[i] < known)) continue;
      fail("target {} at row {}, position {} is outside the {} {} (0 to {}); only {} may be, which is not counted",
           targets[i], i / width, i % width, known, classifies ? "classes" : "tokens of the vocabulary", known - 1,
           kIgnored);
    }
  }

  void load_weights(Session& session, const std::vector<ParameterSpec>& specs) {
    initialise(session, specs, static_cast<std::uint64_t>(request_.config.train.seed));
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
    for (const auto& [name, ids] : ids_) add(name, name);
    RunConfig used = request_.config;
    used.model = config_;
    write_safetensors(request_.out, tensors, {{"norma.config", print_config(used)}});
    result.loss = session.number("loss", 0);
    for (const TensorData& tensor : tensors) result.tensors.push_back(tensor.entry.name);
    return result;
  }

  const CheckRequest& request_;
  ModelConfig config_;
  std::optional<SafetensorsFile> tokens_;
  std::map<std::string, std::vector<std::int32_t>> ids_;
};

}  // namespace

CheckResult check_model(const CheckRequest& request) { return Check(request).run(); }

}  // namespace norma
