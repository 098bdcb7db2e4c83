#include "norma/models/branch_gains.h"

#include <cmath>
#include <functional>
#include <utility>
#include <vector>

#include "models/branch_bench.h"
#include "models/norm_sites.h"
#include "models/options.h"
#include "norma/core/machine.h"
#include "norma/core/side_by_side.h"
#include "norma/models/branches.h"
#include "norma/ops/attention.h"
#include "norma/ops/linear.h"
#include "norma/ops/views.h"
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
    Jobs jobs = {[&] { tables.attention = attention_table(false); }, [&] { tables.ffn = ffn_table(false); }};
    if (carries_scores()) jobs.push_back([&] { tables.attention_split = split_table(); });
    if (norm_on_branches(scheme_).empty()) return jobs;
    jobs.push_back([&] { tables.attention_normed = attention_table(true); });
    jobs.push_back([&] { tables.ffn_normed = ffn_table(true); });
    return jobs;
  }

  CrossTable measure_cross(std::int64_t memory_time, bool normed) const {
    const BranchBench::CrossBuild build = [&](Parameters& parameters, Wire x, Wire memory) {
      return then_norm(parameters, attention(parameters, x, memory), normed);
    };
    return BranchBench(build, shape_, shape_.time, memory_time).measure_cross();
  }

 private:
  BranchTable attention_table(bool normed) const {
    const BranchBench::Build build = [&](Parameters& parameters, Wire x) {
      return then_norm(parameters, attention(parameters, x, {}), normed);
    };
    return BranchBench(build, shape_, shape_.time).measure();
  }

  bool carries_scores() const {
    const auto options = scheme_.branch_options.find("attention");
    return options != scheme_.branch_options.end() && options->second.contains("scores");
  }

  CrossTable split_table() const {
    const BranchBench::CrossBuild build = [&](Parameters& parameters, Wire x, Wire values) {
      const Wire weight = square_weights(parameters, "qkv", 3);
      const Wire packed = linear(x, weight, {}, Activation::none), other = linear(values, weight, {}, Activation::none);
      const std::int64_t d = shape_.width;
      const Wire context =
          norma::attention(slice_last(packed, 0, d), slice_last(packed, d, d), slice_last(other, 2 * d, d),
                           {.heads = shape_.heads, .kv_heads = shape_.heads, .mask = shape_.mask});
      return linear(context, square_weights(parameters, "out", 1), {}, Activation::none);
    };
    return BranchBench(build, shape_, shape_.time, shape_.time).measure_split();
  }

  // Xavier matrices side by side.
  Wire square_weights(Parameters& parameters, const char* name, std::int64_t count) const {
    const auto scope = parameters.graph().scope(name);
    const double deviation = std::sqrt(1 / static_cast<double>(shape_.width));
    ParameterSpec spec{.name = "weight", .init = Init::normal(1), .role = "weight"};
    for (std::int64_t i = 0; i < count; ++i) spec.blocks.push_back({shape_.width, deviation});
    return parameters.share({shape_.width, count * shape_.width}, spec);
  }

  // A feed-forward branch knows nothing of sequences: short ones give more directions for the same work.
  BranchTable ffn_table(bool normed) const {
    BranchShape short_sequences = shape_;
    short_sequences.time = std::min(shape_.time, kShortTime);
    short_sequences.batch = shape_.batch * shape_.time / short_sequences.time;
    const BranchBench::Build build = [&](Parameters& parameters, Wire x) {
      return then_norm(parameters, feed_forward(parameters, x), normed);
    };
    return BranchBench(build, short_sequences, shape_.time).measure();
  }

  Wire apply_norm_to(Parameters& parameters, std::string_view kind, std::string_view site, Wire in) const {
    return NormSites(parameters, scheme_, shape_.norm).apply(kind, site, in, "norm", {});
  }

  Wire then_norm(Parameters& parameters, Wire y, bool normed) const {
    return normed ? apply_norm_to(parameters, norm_on_branches(scheme_), "output_norm", y) : y;
  }

  NormMaker norm_maker(Parameters& parameters) const {
    return [this, &parameters](std::string_view kind, std::string_view site, Wire in) {
      return apply_norm_to(parameters, kind, site, in);
    };
  }

  Wire attention(Parameters& parameters, Wire x, Wire memory) const {
    Wire carried;
    const bool cross = static_cast<bool>(memory);
    const AttentionExtras extras =
        BranchChoice(scheme_, cross ? "cross" : "attention", {}, numbers_).attention("", carried);
    return attention_branch(parameters, x,
                            {.heads = shape_.heads,
                             .mask = cross ? Mask::full : shape_.mask,
                             .extras = extras,
                             .norm = norm_maker(parameters),
                             .memory = memory});
  }

  Wire feed_forward(Parameters& parameters, Wire x) const {
    const BranchChoice choice(scheme_, "ffn", {}, numbers_);
    return feed_forward_branch(parameters, x,
                               {.hidden = shape_.hidden == 0 ? 4 * shape_.width : shape_.hidden,
                                .activation = shape_.activation,
                                .inner_norm = choice.text("inner"),
                                .norm = norm_maker(parameters),
                                .gain = choice.gain("gain", "gain_stored")});
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

EncoderDecoderTables measure_encoder_decoder(const Scheme& given, const BranchShape& shape) {
  const Scheme scheme = with_options_in_tables(given);
  BranchShape below = shape;
  below.mask = Mask::full;
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
