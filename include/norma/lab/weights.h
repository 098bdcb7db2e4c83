// Where the weights of a model under analysis come from: initial values by seed, a session, or a checkpoint.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "norma/data/source.h"
#include "norma/models/model.h"
#include "norma/train/config.h"

namespace norma {

class Weights {
 public:
  virtual ~Weights() = default;
  virtual int members() const = 0;
  // Writes the parameters of every member; the session may hold another dtype, or fewer layers.
  virtual void load(Session& session, const std::vector<ParameterSpec>& specs) const = 0;
};

// As training would start: by (seed, name), and for schemes that measure on data, profiled on the first batch.
std::shared_ptr<const Weights> initial_weights(const ModelConfig& model, const Source& source,
                                               const std::vector<std::uint64_t>& seeds, int threads = 0);

// A copy of the parameters that a session holds.
std::shared_ptr<const Weights> weights_of(Session& session, const std::vector<ParameterSpec>& specs);

// A trained model on disk: a checkpoint that training wrote, or the newest one of a run's directory.
struct StoredModel {
  RunConfig config;
  std::shared_ptr<const Weights> weights;
  std::int64_t step = 0;
};
// Throws Error for a file that is damaged or holds no configuration, and for tensors that do not fit it.
StoredModel open_stored_model(const std::filesystem::path& checkpoint_or_run, const SchemeLibrary& others = {});

}  // namespace norma
