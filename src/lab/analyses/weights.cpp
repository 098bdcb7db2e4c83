#include "norma/lab/weights.h"

#include <algorithm>
#include "norma/backends/cpu.h"
#include "norma/backends/device.h"
#include "norma/core/error.h"
#include "norma/core/side_by_side.h"
#include "norma/lab/subject.h"
#include "norma/models/profile.h"
#include "norma/train/cohort.h"
#include "norma/train/feeder.h"
#include "norma/train/trained_run.h"

namespace norma {
namespace {

class InitialWeights final : public Weights {
 public:
  InitialWeights(const ModelConfig& model, const Source& source, std::vector<std::uint64_t> seeds, int threads)
      : seeds_(std::move(seeds)) {
    Graph graph;
    const Model built = build_model(graph, model, {.profile = true});
    if (graph.outputs().empty()) return;
    const auto owned = make_session(compile(graph, cpu_backend()), {.members = members(), .threads = threads});
    Session& session = *owned;
    initialise_all(session, built.parameters);
    Feeder feeder(session, model, built.schedules);
    feeder.batch(source, 0, seeds_);
    feeder.schedules(0, 1);
    session.run();
    for (const ParameterSpec& spec : built.parameters) {
      const Handle output = session.find("profile." + spec.name);
      if (!output) continue;
      for (int member = 0; member < members(); ++member) profile_[spec.name].push_back(session.number(output, member));
    }
  }

  int members() const override { return static_cast<int>(seeds_.size()); }

  void load(Session& session, const std::vector<ParameterSpec>& specs) const override {
    initialise_all(session, specs);
    const int copies = session.members() / members();
    for (const ParameterSpec& spec : specs) {
      const auto found = profile_.find(spec.name);
      if (found == profile_.end()) continue;
      for (int member = 0; member < session.members(); ++member) {
        const double value = found->second[static_cast<std::size_t>(member / copies)];
        session.stage_number(spec.name, member, value);
      }
    }
  }

 private:
  void initialise_all(Session& session, const std::vector<ParameterSpec>& specs) const {
    const int copies = session.members() / members();
    side_by_side(static_cast<std::size_t>(session.members()), session.threads(), [&](std::size_t member) {
      initialise(session, specs, seeds_[member / static_cast<std::size_t>(copies)], static_cast<int>(member));
    });
  }

  std::vector<std::uint64_t> seeds_;
  std::map<std::string, std::vector<double>> profile_;  // by parameter, then by member
};

class StoredWeights final : public Weights {
 public:
  using Tensors = std::map<std::string, std::vector<float>>;

  explicit StoredWeights(std::vector<Tensors> members) : members_(std::move(members)) {}

  int members() const override { return static_cast<int>(members_.size()); }

  void load(Session& session, const std::vector<ParameterSpec>& specs) const override {
    const int copies = session.members() / members();
    for (const ParameterSpec& spec : specs) {
      for (int member = 0; member < session.members(); ++member) {
        const Tensors& tensors = members_[static_cast<std::size_t>(member / copies)];
        const auto found = tensors.find(spec.name);
        if (found == tensors.end()) fail("the stored weights have no tensor '{}'", spec.name);
        const auto elements = static_cast<std::size_t>(session.plan().slot(spec.name).type.shape.elements());
        if (found->second.size() != elements)
          fail("the stored '{}' has {} elements but the model's has {}", spec.name, found->second.size(), elements);
        if (session.plan().slot(spec.name).type.dtype == DType::f32) {
          session.write<float>(spec.name, found->second, member);
        } else {
          session.write<double>(spec.name, std::vector<double>(found->second.begin(), found->second.end()), member);
        }
      }
    }
  }

 private:
  std::vector<Tensors> members_;
};

}  // namespace

std::shared_ptr<const Weights> initial_weights(const ModelConfig& model, const Source& source,
                                               const std::vector<std::uint64_t>& seeds, int threads) {
  return std::make_shared<InitialWeights>(model, source, seeds, threads);
}

std::shared_ptr<const Weights> weights_of(Session& session, const std::vector<ParameterSpec>& specs) {
  std::vector<StoredWeights::Tensors> members(static_cast<std::size_t>(session.members()));
  for (int member = 0; member < session.members(); ++member) {
    for (const ParameterSpec& spec : specs) {
      std::vector<float>& copy = members[static_cast<std::size_t>(member)][spec.name];
      if (session.plan().slot(spec.name).type.dtype == DType::f32) {
        copy = session.read<float>(spec.name, member);
      } else {
        for (const double v : session.read<double>(spec.name, member)) copy.push_back(static_cast<float>(v));
      }
    }
  }
  return std::make_shared<StoredWeights>(std::move(members));
}

StoredModel open_stored_model(const std::filesystem::path& checkpoint_or_run, const SchemeLibrary& others) {
  const TrainedRun run(checkpoint_or_run, others);
  StoredModel stored{.config = run.config(), .weights = nullptr, .step = run.step(), .warnings = run.warnings()};
  stored.config.model.dropout = false;
  stored.config.model.smoothing = stored.config.model.mixture = false;
  Graph graph;
  const Model model = build_model(graph, stored.config.model);
  std::vector<StoredWeights::Tensors> all(static_cast<std::size_t>(run.members()));
  for (int member = 0; member < run.members(); ++member) {
    for (const ParameterSpec& spec : model.parameters)
      all[static_cast<std::size_t>(member)][spec.name] = run.to_f32(spec.name, member);
  }
  stored.weights = std::make_shared<StoredWeights>(std::move(all));
  return stored;
}

}  // namespace norma
