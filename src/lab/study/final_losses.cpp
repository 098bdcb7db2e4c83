#include "lab/study/final_losses.h"

#include <algorithm>

#include "norma/core/side_by_side.h"
#include "norma/lab/subject.h"
#include "norma/lab/weights.h"

namespace norma {

LossTable losses_by_batch(const std::vector<FinalRun>& runs, const std::shared_ptr<const Source>& source, int threads,
                          const std::function<bool()>& stopping) {
  LossTable losses(runs.size());
  side_by_side(runs.size(), threads, [&](std::size_t index) {
    if (stopping()) return;
    const StoredModel stored = open_stored_model(runs[index].directory);
    Subject subject{.model = stored.config.model, .source = source, .weights = stored.weights};
    subject.seeds = {static_cast<std::uint64_t>(stored.config.train.data_seed)};
    subject.model.dropout = subject.model.smoothing = subject.model.mixture = false;
    subject.step = runs[index].step;
    subject.steps = runs[index].steps;
    subject.threads = 1;
    subject.device = stored.config.train.device;
    Rig rig(subject, [](Graph& graph, const Model& model) { graph.output("loss", model.loss); });
    std::vector<double> row;
    for (std::int64_t batch = 0; batch < source->evaluation_batches(); ++batch) {
      rig.load_evaluation_batch(batch);
      if (rig.counted_targets() == 0) continue;
      rig.run();
      row.push_back(rig.number("loss", 0));
    }
    losses[index] = std::move(row);
  });
  return losses;
}

}  // namespace norma
