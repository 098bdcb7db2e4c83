// statistics: probes of several tensors in one op, for devices that pay for launches.
#include "norma/ops/fusions.h"
#include "norma/ops/statistics.h"
#include "ops/gather.h"

namespace norma {
namespace {

bool takes_statistics(const Rewriter& rewriter, int index) {
  return rewriter.as<StatisticsOp>(index) != nullptr || rewriter.as<StatisticsOfSeveral>(index) != nullptr;
}

// What is probed lives until its op, in steps that do not watch too.
bool gather_statistics(Rewriter& rewriter, int index) {
  constexpr GatherLimits kLimits{.farthest = 8,  // probes follow each other
                                 .most = kMostStatistics,
                                 .most_bytes = std::int64_t{32} << 20};
  return gather(rewriter, index, takes_statistics, std::make_shared<StatisticsOfSeveral>(), kLimits);
}

}  // namespace

std::vector<Rewrite> probe_fusions() { return {{"statistics", gather_statistics}}; }

}  // namespace norma
