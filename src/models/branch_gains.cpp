#include "norma/models/branch_gains.h"

#include <algorithm>
#include <functional>
#include <utility>
#include <vector>

#include "models/branch_bench.h"
#include "models/norm_sites.h"
#include "models/options.h"
#include "norma/core/error.h"
#include "norma/core/machine.h"
#include "norma/core/side_by_side.h"
#include "norma/schemes/place.h"

namespace norma {
namespace {

constexpr std::int64_t kShortTime = 4;

using Jobs = std::vector<std::function<void()>>;

// Each job's sessions have one thread: a branch is too small to share.
void run_jobs(const Jobs& jobs) {
  side_by_side(jobs.size(), machine().cores, [&](std::size_t index) { jobs[index](); });
}

// Makes the branches of a scheme as a stack would, but with gains of 1.
class Branches {
 public:
  Branches(const Scheme& scheme, const BranchShape& shape)
      : scheme_(scheme), shape_(shape), numbers_(numbers_at(scheme, {.width = shape.width, .heads = shape.heads})) {
    if (shape.seeds < 1) fail("branches are measured with at least one seed, but {} were asked for", shape.seeds);
  }

  // What fills the tables. The jobs share nothing; the tables must outlive them.
  Jobs measure(BranchTables& tables) const {
    tables.time = shape_.time;
    Jobs jobs, normed;
    for (const LayerBranch& branch : shape_.branches) {
      if (branch.kind->reads == BranchKind::Reads::memory) continue;
      add(branch, false, tables.plain[branch.kind->key], jobs);
      if (carries_scores(branch)) jobs.push_back([&, this] { tables.apart = apart(branch); });
      if (!norm_on_branches(scheme_).empty()) add(branch, true, tables.normed[branch.kind->key], normed);
    }
    for (auto& job : normed) jobs.push_back(std::move(job));
    return jobs;
  }

  CrossTable measure_cross(std::int64_t memory_time, bool normed) const {
    const auto reads = [](const LayerBranch& one) { return one.kind->reads == BranchKind::Reads::memory; };
    const LayerBranch& branch = *std::ranges::find_if(shape_.branches, reads);
    const BranchBench::Build build = [&](Parameters& parameters, Wire x, Wire memory) {
      return then_norm(parameters, called(branch, parameters, x, memory), normed);
    };
    return BranchBench(build, *branch.kind, shape_, shape_.time, memory_time).measure_cross();
  }

 private:
  void add(const LayerBranch& branch, bool normed, BranchTable& table, Jobs& jobs) const {
    jobs.push_back([&, this, normed] {
      BranchShape shape = shape_;
      if (branch.kind->reads == BranchKind::Reads::position) {
        // It knows nothing of sequences: short ones give more directions for the same work.
        shape.time = std::min(shape_.time, kShortTime);
        shape.batch = shape_.batch * shape_.time / shape.time;
      }
      const BranchBench::Build build = [&](Parameters& parameters, Wire x, Wire) {
        return then_norm(parameters, called(branch, parameters, x, {}), normed);
      };
      table = BranchBench(build, *branch.kind, shape, shape_.time, 0).measure();
    });
  }

  bool carries_scores(const LayerBranch& branch) const {
    const auto options = scheme_.branch_options.find(branch.kind->key);
    return branch.apart && options != scheme_.branch_options.end() && options->second.contains("scores");
  }

  CrossTable apart(const LayerBranch& branch) const {
    const BranchBench::Build build = [&](Parameters& parameters, Wire x, Wire values) {
      return with_call(branch, parameters, x, {}, [&](const BranchCall& call) { return branch.apart(call, values); });
    };
    return BranchBench(build, *branch.kind, shape_, shape_.time, shape_.time).measure_split();
  }

  Wire called(const LayerBranch& branch, Parameters& parameters, Wire x, Wire memory) const {
    return with_call(branch, parameters, x, memory, branch.build);
  }

  template <typename Built>
  Wire with_call(const LayerBranch& branch, Parameters& parameters, Wire x, Wire memory, const Built& build) const {
    const StackConfig stack{.branches = {},
                            .width = shape_.width,
                            .heads = shape_.heads,
                            .hidden = shape_.hidden,
                            .activation = shape_.activation,
                            .norm = shape_.norm,
                            .memory = memory};
    const BranchChoice choice(scheme_, *branch.kind, {}, numbers_);
    const SchemeRules rules;
    Wire carried;
    return build({.parameters = parameters,
                  .in = x,
                  .stack = stack,
                  .options = choice,
                  .rules = rules,
                  .style = {},
                  .norm = [this, &parameters](std::string_view kind, std::string_view site,
                                              Wire in) { return apply_norm_to(parameters, kind, site, in); },
                  .carried = carried});
  }

  Wire apply_norm_to(Parameters& parameters, std::string_view kind, std::string_view site, Wire in) const {
    return NormSites(parameters, scheme_, shape_.norm).apply(kind, site, in, "norm", {});
  }

  Wire then_norm(Parameters& parameters, Wire y, bool normed) const {
    return normed ? apply_norm_to(parameters, norm_on_branches(scheme_), "output_norm", y) : y;
  }

  const Scheme& scheme_;
  const BranchShape& shape_;
  Variables numbers_;
};

}  // namespace

BranchTables measure_branches(const Scheme& given, const BranchShape& shape) {
  const Scheme scheme = with_options_in_tables(given);
  BranchTables tables;
  const Branches branches(scheme, shape);
  run_jobs(branches.measure(tables));
  return tables;
}

EncoderDecoderTables measure_encoder_decoder(const Scheme& given, const BranchShape& shape,
                                             const LayerBranches& encoder_branches) {
  const Scheme scheme = with_options_in_tables(given);
  BranchShape below = shape;
  below.branches = encoder_branches;
  below.time = shape.source_time == 0 ? shape.time : shape.source_time;
  const Branches encoder(scheme, below), decoder(scheme, shape);
  EncoderDecoderTables tables;
  // The longest first.
  Jobs jobs = {[&] { tables.cross = decoder.measure_cross(below.time, false); }};
  if (!norm_on_branches(scheme).empty())
    jobs.push_back([&] { tables.cross_normed = decoder.measure_cross(below.time, true); });
  for (auto& job : encoder.measure(tables.encoder)) jobs.push_back(std::move(job));
  for (auto& job : decoder.measure(tables.decoder)) jobs.push_back(std::move(job));
  run_jobs(jobs);
  return tables;
}

}  // namespace norma
