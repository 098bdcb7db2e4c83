#include "lab/study/meter.h"

#include <fmt/format.h>

namespace norma {

void SweepMeter::planned(std::int64_t runs, std::int64_t ended, int cohorts) {
  observer_.said(fmt::format("{}: {} runs in {} cohort{}{}", part_, runs, cohorts, cohorts == 1 ? "" : "s",
                             ended > 0 ? fmt::format(", {} of them done before", ended) : ""));
}

void SweepMeter::stepped(const SweepProgress& progress, const Cohort& cohort) {
  tokens_ += static_cast<double>(cohort.active_members()) * static_cast<double>(cohort.tokens_per_step());
  if (budget_.all > 0) observer_.spent((budget_.before + budget_.own * progress.share) / budget_.all);
  observer_.progressed(part_, progress.share, cohort.config().model.scheme.asked());
}

void SweepMeter::report() const {
  if (tokens_ == 0) return;
  observer_.said(fmt::format("{}: {:.4g} million {} in {:.1f} s, {:.3g} million a second, all overhead included", part_,
                             tokens_ * 1e-6, budget_.counted, seconds(), tokens_ * 1e-6 / seconds()));
}

}  // namespace norma
