// How long the prediction of a very deep stack takes, its branches measured before.
#include "bench/theory.h"

#include "norma/models/branch_gains.h"
#include "norma/schemes/library.h"
#include "norma/schemes/theory.h"

namespace norma::bench {

namespace {

template <typename Tables>
void add(Report& report, const Options& options, const std::string& entry, const Scheme& scheme, const Tables& tables,
         const BranchShape& shape) {
  const TheoryConfig config{.layers = 10000, .width = shape.width, .heads = shape.heads};
  const Timing timing = time_repeated([&] { predict(scheme, tables, config); }, options.seconds);
  report.add_value(entry, timing.best * 1e3, "ms");
}

}  // namespace

void bench_theory(Report& report, const Options& options) {
  const BranchShape shape{.width = 64, .heads = 4, .time = 16};
  // Plain ones, and the slowest: several streams, numbers of every layer, copies, DyT.
  for (const char* name : {"post", "pre", "deepnorm", "peri", "lns", "keel", "siamese", "admin", "realformer",
                           "residual", "attnres", "attnres_block", "dyt", "hc_static", "hc_dynamic", "mhc"}) {
    const std::string entry = std::string("theory/10000 layers/") + name;
    if (!options.wants(entry)) continue;
    const SchemeChoice scheme = name;
    add(report, options, entry, *scheme, measure_branches(*scheme, shape), shape);
  }
  for (const char* name : {"post", "deepnorm", "pre", "admin", "mhc"}) {
    const std::string entry = std::string("theory/two stacks of 10000 layers/") + name;
    if (!options.wants(entry)) continue;
    const SchemeChoice scheme = name;
    add(report, options, entry, *scheme, measure_encoder_decoder(*scheme, shape), shape);
  }
}

}  // namespace norma::bench
