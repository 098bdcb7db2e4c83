// How long the prediction of a very deep stack takes, its branches measured before.
#include "bench/theory.h"

#include "norma/theory/predict.h"

namespace norma::bench {

namespace {

void add(Report& report, const Options& options, const std::string& entry, const char* scheme, Family family) {
  if (!options.wants(entry)) return;
  ModelConfig model{.family = family, .width = 64, .heads = 4, .time = 16, .scheme = scheme};
  model.embedding_std = 1;
  const ModelTheory theory(model);
  const Timing timing = time_repeated([&] { theory.at(10000); }, options.seconds);
  report.add_value(entry, timing.best * 1e3, "ms");
}

}  // namespace

void bench_theory(Report& report, const Options& options) {
  // Plain ones, and the slowest: several streams, numbers of every layer, copies, DyT.
  for (const char* name : {"post", "pre", "deepnorm", "peri", "lns", "keel", "siamese", "admin", "realformer",
                           "residual", "attnres", "attnres_block", "dyt", "hc_static", "hc_dynamic", "mhc"})
    add(report, options, std::string("theory/10000 layers/") + name, name, "decoder");
  for (const char* name : {"post", "deepnorm", "pre", "admin", "mhc"})
    add(report, options, std::string("theory/two stacks of 10000 layers/") + name, name, "encoder_decoder");
}

}  // namespace norma::bench
