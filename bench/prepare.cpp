#include "bench/prepare.h"

#include "norma/core/random.h"
#include "norma/train/optimiser.h"

namespace norma::bench {
namespace {

void fill(Session& session, const InputSpec& input, int member) {
  const RandomStream stream(1, input.name);
  const std::size_t count = session.handle(input.name).elements();
  if (input.content == InputSpec::Content::numbers) {
    std::vector<float> numbers(count);
    for (std::size_t i = 0; i < count; ++i) numbers[i] = static_cast<float>(stream.normal(i));
    session.write<float>(input.name, numbers, member);
    return;
  }
  std::vector<std::int32_t> ids(count);
  for (std::size_t i = 0; i < count; ++i)
    ids[i] = static_cast<std::int32_t>(stream.below(i, static_cast<std::uint64_t>(input.below)));
  session.write<std::int32_t>(input.name, ids, member);
}

}  // namespace

void prepare(Session& session, const TrainingStep& step, const ModelConfig& config) {
  for (int member = 0; member < session.members(); ++member) {
    initialise(session, step.parameters, static_cast<std::uint64_t>(member + 1), member);
    initialise(session, step.kept, 1, member);
    for (const InputSpec& input : config.family->inputs(config)) fill(session, input, member);
    const ControlBlock control = control_block({.weight_decay = 0.01}, 1e-4, 1, 1);
    session.write<float>("control", std::vector<float>(control.begin(), control.end()), member);
  }
}

}  // namespace norma::bench
