#include "bench/prepare.h"

#include "norma/core/random.h"
#include "norma/train/optimiser.h"

namespace norma::bench {

void prepare(Session& session, const TrainingStep& step, const ModelConfig& config) {
  for (int member = 0; member < session.members(); ++member) {
    initialise(session, step.parameters, static_cast<std::uint64_t>(member + 1), member);
    for (const char* name : {"tokens", "targets"}) {
      const RandomStream stream(1, name);
      std::vector<std::int32_t> ids(session.handle(name).elements());
      for (std::size_t i = 0; i < ids.size(); ++i) {
        ids[i] = static_cast<std::int32_t>(stream.below(i, static_cast<std::uint64_t>(config.vocabulary)));
      }
      session.write<std::int32_t>(name, ids, member);
    }
    const ControlBlock control = control_block({.weight_decay = 0.01}, 1e-4, 1, 1);
    session.write<float>("control", std::vector<float>(control.begin(), control.end()), member);
  }
}

}  // namespace norma::bench
