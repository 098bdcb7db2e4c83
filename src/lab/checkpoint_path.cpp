#include "lab/checkpoint_path.h"

#include "norma/core/error.h"
#include "norma/store/run_directory.h"

namespace norma {

std::filesystem::path checkpoint_path(const std::filesystem::path& checkpoint_or_run) {
  std::error_code error;
  if (!std::filesystem::is_directory(checkpoint_or_run, error)) return checkpoint_or_run;
  const RunView run(checkpoint_or_run);
  const std::vector<std::int64_t> steps = run.checkpoint_steps();
  if (steps.empty()) fail("'{}' is a directory without checkpoints of a run", checkpoint_or_run.string());
  return run.checkpoint_path(steps.back());
}

}  // namespace norma
