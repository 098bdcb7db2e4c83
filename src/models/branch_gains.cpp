#include "norma/models/branch_gains.h"

#include <cmath>
#include <functional>
#include <map>
#include <span>

#include "models/norm_sites.h"
#include "models/options.h"
#include "norma/core/random.h"
#include "norma/graph/differentiate.h"
#include "norma/models/branches.h"
#include "norma/models/fusions.h"
#include "norma/ops/attention.h"
#include "norma/ops/elementwise.h"
#include "norma/ops/linear.h"
#include "norma/ops/reduce.h"
#include "norma/ops/views.h"
#include "norma/schemes/place.h"

namespace norma {
namespace {

constexpr int kFirstScale = -4, kScales = 9, kCorrelations = 7;
constexpr int kFirstCrossScale = -2, kCrossScales = 5, kCrossCorrelations = 4;
constexpr std::int64_t kShortTime = 4;
constexpr double kStep = 3e-3;  // of a change, as a share of what it changes; far above rounding, still linear

// Sums of squares over tokens, and of products of different tokens.
class MomentSum {
 public:
  // Sequences of tokens [batch, time, width].
  void add(std::span<const float> values, std::int64_t width, std::int64_t time) {
    const std::size_t sequence = static_cast<std::size_t>(width * time);
    for (std::size_t begin = 0; begin < values.size(); begin += sequence) add(values.subspan(begin, sequence), width);
  }

  void add(std::span<const float> values, std::int64_t width) {
    const std::size_t tokens = values.size() / static_cast<std::size_t>(width);
    double all = 0, own = 0;
    for (std::size_t c = 0; c < static_cast<std::size_t>(width); ++c) {
      double sum = 0;
      for (std::size_t t = 0; t < tokens; ++t) {
        const double value = values[t * static_cast<std::size_t>(width) + c];
        sum += value;
        own += value * value;
      }
      all += sum * sum;
    }
    own_ += own / static_cast<double>(values.size());
    const double pairs = static_cast<double>(values.size()) * static_cast<double>(tokens - 1);
    shared_ += tokens > 1 ? (all - own) / pairs : 0;
    ++count_;
  }

  Moments mean(double scale = 1) const { return {scale * own_ / count_, scale * shared_ / count_}; }

 private:
  double own_ = 0, shared_ = 0;
  int count_ = 0;
};

using Build = std::function<Wire(Parameters&, Wire)>;
using CrossBuild = std::function<Wire(Parameters&, Wire, Wire memory)>;

// One branch as two plans: forward alone, and forward with the derivatives by input, memory and last matrix.
class Bench {
 public:
  // Gradients by weights are for sequences of `time` tokens.
  Bench(const Build& build, const BranchShape& shape, std::int64_t time)
      : Bench([&](Parameters& parameters, Wire x, Wire) { return build(parameters, x); }, shape, time, 0) {}

  // With a memory of `memory_time` tokens, unless that is 0.
  Bench(const CrossBuild& build, const BranchShape& shape, std::int64_t time, std::int64_t memory_time)
      : shape_(shape),
        memory_time_(memory_time),
        time_(static_cast<double>(time)),
        width_(shape.width),
        backward_(plan(build, true), {.members = shape.seeds}),
        forward_(plan(build, false), {.members = shape.seeds}) {
    for (int m = 0; m < shape.seeds; ++m) {
      for (Session* session : {&backward_, &forward_}) {
        initialise(*session, specs_, seed(m), m);
        for (const ParameterSpec& spec : specs_) {
          if (spec.name.ends_with("weight")) straighten(*session, spec, m);
        }
      }
    }
  }

  BranchTable measure() {
    std::vector<BranchResponse> points;
    for (int scale = 0; scale < kScales; ++scale) {
      for (int c = 0; c < kCorrelations; ++c)
        points.push_back(point(std::exp2(kFirstScale + scale), static_cast<double>(c) / (kCorrelations - 1), 0).query);
    }
    return {kFirstScale, kScales, kCorrelations, std::move(points)};
  }

  // The memory is what x is, token by token.
  CrossTable measure_split() {
    std::vector<CrossResponse> points;
    for (int scale = 0; scale < kScales; ++scale) {
      for (int c = 0; c < kCorrelations; ++c) {
        const double correlation = static_cast<double>(c) / (kCorrelations - 1);
        points.push_back(point(std::exp2(kFirstScale + scale), correlation, correlation, "x"));
      }
    }
    return {kFirstScale, kScales, kCorrelations, 1, std::move(points)};
  }

  CrossTable measure_cross() {
    std::vector<CrossResponse> points;
    for (int scale = 0; scale < kCrossScales; ++scale) {
      for (int c = 0; c < kCrossCorrelations; ++c) {
        for (int m = 0; m < kCorrelations; ++m)
          points.push_back(point(std::exp2(kFirstCrossScale + scale), static_cast<double>(c) / (kCrossCorrelations - 1),
                                 static_cast<double>(m) / (kCorrelations - 1)));
      }
    }
    return {kFirstCrossScale, kCrossScales, kCrossCorrelations, kCorrelations, std::move(points)};
  }

 private:
  std::uint64_t seed(int member) const { return shape_.seed + static_cast<std::uint64_t>(member); }

  // Replaces a random matrix by an orthogonal one of the same expected gain: what is measured is a mean over random
  // matrices, and this leaves out most of their scatter, which hundreds of layers would multiply.
  void straighten(Session& session, const ParameterSpec& spec, int member) const {
    const std::size_t columns = static_cast<std::size_t>(session.plan().slot(spec.name).type.shape.channels());
    const std::span<float> weight = session.tensor<float>(spec.name, member);
    const std::size_t rows = weight.size() / columns;
    std::vector<ColumnBlock> blocks = spec.blocks;
    if (blocks.empty()) blocks.push_back({.columns = static_cast<std::int64_t>(columns)});
    std::size_t first = 0;
    for (const ColumnBlock& packed : blocks) {
      const double deviation = spec.init.value * packed.gain;
      const std::size_t block = static_cast<std::size_t>(packed.columns);
      const auto at = [&, first](std::size_t vector, std::size_t element) -> float& {
        return rows <= block ? weight[vector * columns + first + element] : weight[element * columns + first + vector];
      };
      const std::size_t vectors = std::min(rows, block), elements = std::max(rows, block);
      orthogonalise(vectors, elements, deviation * std::sqrt(static_cast<double>(elements)), at);
      first += block;
    }
  }

  template <typename At>
  static void orthogonalise(std::size_t vectors, std::size_t elements, double length, At at) {
    for (std::size_t i = 0; i < vectors; ++i) {
      for (std::size_t j = 0; j < i; ++j) {
        double dot = 0;
        for (std::size_t e = 0; e < elements; ++e) dot += static_cast<double>(at(i, e)) * at(j, e);
        const float share = static_cast<float>(dot / (length * length));
        for (std::size_t e = 0; e < elements; ++e) at(i, e) -= share * at(j, e);
      }
      double square = 0;
      for (std::size_t e = 0; e < elements; ++e) square += static_cast<double>(at(i, e)) * at(i, e);
      const float factor = static_cast<float>(length / std::sqrt(square));
      for (std::size_t e = 0; e < elements; ++e) at(i, e) *= factor;
    }
  }

  std::shared_ptr<const Plan> plan(const CrossBuild& build, bool derivatives) {
    Graph graph;
    Parameters parameters(graph, DType::f32);
    const Shape rows{shape_.batch, shape_.time, width_};
    const Wire x = graph.input("x", {rows, DType::f32});
    const Wire memory =
        memory_time_ == 0 ? Wire() : graph.input("memory", {{shape_.batch, memory_time_, width_}, DType::f32});
    const Wire y = build(parameters, x, memory);
    graph.output("y", y);
    if (derivatives) {
      const Wire weighted = sum_all(y * graph.input("g", {rows, DType::f32}));
      Wires wrt = {x, graph.find("out.weight")};
      if (memory) wrt.push_back(memory);
      const Wires gradients = differentiate(weighted, wrt);
      graph.output("dx", gradients[0]);
      graph.output("dw", gradients[1]);
      if (memory) graph.output("dmemory", gradients[2]);
    }
    specs_ = parameters.specs();
    return compile(graph, {.rewrites = all_fusions()});
  }

  // Random numbers that many grid points use.
  const std::vector<float>& normals(const std::string& name, int member, std::size_t count) {
    std::vector<float>& numbers = normals_[name + "#" + std::to_string(member)];
    if (numbers.empty()) {
      const RandomStream stream(seed(member), name);
      for (std::size_t i = 0; i < count; ++i) numbers.push_back(static_cast<float>(stream.normal(i)));
      // Each row with rms 1, so that little scatter is left.
      const std::size_t width = static_cast<std::size_t>(width_);
      for (std::size_t begin = 0; begin < count; begin += width) {
        double square = 0;
        for (std::size_t i = begin; i < begin + width; ++i) square += static_cast<double>(numbers[i]) * numbers[i];
        const auto factor = static_cast<float>(std::sqrt(static_cast<double>(width) / square));
        for (std::size_t i = begin; i < begin + width; ++i) numbers[i] *= factor;
      }
    }
    return numbers;
  }

  // Rows of variance scale^2, of which a share is the same for every token of a sequence.
  void fill(std::span<float> target, double scale, double shared, const char* name, int member,
            std::span<const float> onto = {}) {
    const std::size_t width = static_cast<std::size_t>(width_);
    const std::size_t sequence = target.size() / static_cast<std::size_t>(shape_.batch);
    const std::vector<float>& own = normals(std::string(name) + ".own", member, target.size());
    const std::vector<float>& common =
        normals(std::string(name) + ".shared", member, width * static_cast<std::size_t>(shape_.batch));
    const auto a = static_cast<float>(scale * std::sqrt(1 - shared)), b = static_cast<float>(scale * std::sqrt(shared));
    for (std::size_t i = 0; i < target.size(); ++i)
      target[i] = a * own[i] + b * common[i / sequence * width + i % width] + (onto.empty() ? 0.0f : onto[i]);
  }

  // `memory`: the name of the random numbers that it is made of.
  CrossResponse point(double scale, double correlation, double memory_correlation, const char* memory = "memory") {
    const double square = scale * scale;
    CrossResponse all;
    BranchResponse& response = all.query;
    for (int m = 0; m < shape_.seeds; ++m) {
      fill(backward_.tensor<float>("x", m), scale, correlation, "x", m);
      if (memory_time_ > 0) fill(backward_.tensor<float>("memory", m), scale, memory_correlation, memory, m);
    }
    put_back("x");
    if (memory_time_ > 0) put_back("memory");
    for (const bool shared : {false, true}) {
      for (int m = 0; m < shape_.seeds; ++m) fill(backward_.tensor<float>("g", m), 1, shared ? 1 : 0, "g", m);
      backward_.run();
      MomentSum output, gradient, memory_gradient;
      double weight = 0;
      for (int m = 0; m < shape_.seeds; ++m) {
        output.add(backward_.tensor<float>("y", m), width_, shape_.time);
        gradient.add(backward_.tensor<float>("dx", m), width_, shape_.time);
        if (memory_time_ > 0) memory_gradient.add(backward_.tensor<float>("dmemory", m), width_, memory_time_);
        for (const float w : backward_.tensor<float>("dw", m)) weight += static_cast<double>(w) * w;
      }
      response.output = output.mean(1 / square);
      (shared ? response.gradient_shared : response.gradient_own) = gradient.mean();
      if (memory_time_ > 0) (shared ? all.gradient_shared : all.gradient_own) = memory_gradient.mean();
      (shared ? response.weight_shared : response.weight_own) =
          weight / static_cast<double>(shape_.seeds * shape_.batch) / square;
    }
    lengthen(response);
    keep_outputs();
    for (const bool shared : {false, true}) {
      (shared ? response.change_shared : response.change_own) = changed_by("x", kStep * scale, shared);
      if (memory_time_ > 0) (shared ? all.change_shared : all.change_own) = changed_by("memory", kStep * scale, shared);
    }
    measure_noise(response, square);
    return all;
  }

  // The forward plan reads what the other one does.
  void put_back(const char* input) {
    for (int m = 0; m < shape_.seeds; ++m)
      forward_.write<float>(input, std::span<const float>(backward_.tensor<float>(input, m)), m);
  }

  Moments changed_by(const char* input, double step, bool shared) {
    // Of x the numbers have always been called so.
    const std::string name = std::string_view(input) == "x" ? "change" : "memory.change";
    for (int m = 0; m < shape_.seeds; ++m)
      fill(forward_.tensor<float>(input, m), step, shared ? 1 : 0, name.c_str(), m, backward_.tensor<float>(input, m));
    const Moments moved = changed(1 / (step * step));
    put_back(input);
    return moved;
  }

  // A gradient by a weight sums over tokens: T terms of one token with itself, T (T - 1) of two that share a part.
  void lengthen(BranchResponse& response) const {
    const double measured = static_cast<double>(shape_.time);
    const double token = response.weight_own / measured;
    const double pair = measured > 1 ? (response.weight_shared - response.weight_own) / (measured * (measured - 1)) : 0;
    response.weight_own = time_ * token;
    response.weight_shared = time_ * token + time_ * (time_ - 1) * pair;
  }

  void keep_outputs() {
    before_.clear();
    for (int m = 0; m < shape_.seeds; ++m) {
      const std::span<const float> y = backward_.tensor<float>("y", m);
      before_.emplace_back(y.begin(), y.end());
    }
  }

  // Moments of what the forward plan's output moved by.
  Moments changed(double scale) {
    forward_.run();
    MomentSum sum;
    for (int m = 0; m < shape_.seeds; ++m) {
      std::vector<float> moved = before_[static_cast<std::size_t>(m)];
      const std::span<const float> y = forward_.tensor<float>("y", m);
      for (std::size_t i = 0; i < moved.size(); ++i) moved[i] = y[i] - moved[i];
      sum.add(moved, width_, shape_.time);
    }
    return sum.mean(scale);
  }

  void measure_noise(BranchResponse& response, double square) {
    const bool attention = forward_.plan().has_slot("qkv.weight");
    response.noise_last = noise("out.weight", 0, 1, square);
    if (attention) {
      response.noise_first = noise("qkv.weight", 2, 3, square);
      const Moments q = noise("qkv.weight", 0, 1, square), k = noise("qkv.weight", 1, 2, square);
      response.noise_scores = {q.own + k.own, q.shared + k.shared};
    } else if (memory_time_ > 0) {
      response.noise_first = noise("kv.weight", 1, 2, square);
      const Moments q = noise("q.weight", 0, 1, square), k = noise("kv.weight", 0, 1, square);
      response.noise_scores = {q.own + k.own, q.shared + k.shared};
    } else {
      response.noise_first = noise("in.weight", 0, 1, square);
    }
  }

  // Changes a block of columns of a weight (queries, keys and values are packed), looks, and puts it back.
  Moments noise(const std::string& name, std::size_t first_block, std::size_t end_block, double square) {
    const std::size_t columns = static_cast<std::size_t>(forward_.plan().slot(name).type.shape.channels());
    const std::size_t blocks = name == "qkv.weight" ? 3 : name == "kv.weight" ? 2 : 1, block = columns / blocks;
    const double step = kStep / std::sqrt(static_cast<double>(width_));
    std::vector<std::vector<float>> kept;
    for (int m = 0; m < shape_.seeds; ++m) {
      const std::span<float> weight = forward_.tensor<float>(name, m);
      kept.emplace_back(weight.begin(), weight.end());
      const std::vector<float>& normal = normals(name + ".noise", m, weight.size());
      for (std::size_t i = 0; i < weight.size(); ++i) {
        const std::size_t column = i % columns;
        if (column < first_block * block || column >= end_block * block) continue;
        weight[i] += static_cast<float>(step) * normal[i];
      }
    }
    const Moments moved = changed(1 / (step * step * square));
    for (int m = 0; m < shape_.seeds; ++m)
      forward_.write<float>(name, std::span<const float>(kept[static_cast<std::size_t>(m)]), m);
    return moved;
  }

  BranchShape shape_;
  std::int64_t memory_time_;
  double time_;
  std::int64_t width_;
  std::vector<ParameterSpec> specs_;
  Session backward_, forward_;
  std::vector<std::vector<float>> before_;
  std::map<std::string, std::vector<float>> normals_;
};

// Makes the branches of a scheme as a stack would, but with gains of 1.
class Branches {
 public:
  Branches(const Scheme& scheme, const BranchShape& shape)
      : scheme_(scheme), shape_(shape), numbers_(numbers_at(scheme, {.width = shape.width, .heads = shape.heads})) {
    if (shape.seeds < 1) fail("branches are measured with at least one seed, but {} were asked for", shape.seeds);
  }

  BranchTables measure() const {
    BranchTables tables{.attention = attention_table(false), .ffn = ffn_table(false)};
    tables.time = shape_.time;
    if (carries_scores()) tables.attention_split = split_table();
    if (norm_on_branches(scheme_).empty()) return tables;
    tables.attention_normed = attention_table(true);
    tables.ffn_normed = ffn_table(true);
    return tables;
  }

  CrossTable measure_cross(std::int64_t memory_time, bool normed) const {
    const CrossBuild build = [&](Parameters& parameters, Wire x, Wire memory) {
      return then_norm(parameters, attention(parameters, x, memory), normed);
    };
    return Bench(build, shape_, shape_.time, memory_time).measure_cross();
  }

 private:
  BranchTable attention_table(bool normed) const {
    const Build build = [&](Parameters& parameters, Wire x) {
      return then_norm(parameters, attention(parameters, x, {}), normed);
    };
    return Bench(build, shape_, shape_.time).measure();
  }

  bool carries_scores() const {
    const auto options = scheme_.branch_options.find("attention");
    return options != scheme_.branch_options.end() && options->second.contains("scores");
  }

  CrossTable split_table() const {
    const CrossBuild build = [&](Parameters& parameters, Wire x, Wire values) {
      const Wire weight = square_weights(parameters, "qkv", 3);
      const Wire packed = linear(x, weight, {}, Activation::none), other = linear(values, weight, {}, Activation::none);
      const std::int64_t d = shape_.width;
      const Wire context =
          norma::attention(slice_last(packed, 0, d), slice_last(packed, d, d), slice_last(other, 2 * d, d),
                           {.heads = shape_.heads, .kv_heads = shape_.heads, .mask = shape_.mask});
      return linear(context, square_weights(parameters, "out", 1), {}, Activation::none);
    };
    return Bench(build, shape_, shape_.time, shape_.time).measure_split();
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
    const Build build = [&](Parameters& parameters, Wire x) {
      return then_norm(parameters, feed_forward(parameters, x), normed);
    };
    return Bench(build, short_sequences, shape_.time).measure();
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

BranchTables measure_branches(const Scheme& scheme, const BranchShape& shape) {
  return Branches(scheme, shape).measure();
}

EncoderDecoderTables measure_encoder_decoder(const Scheme& scheme, const BranchShape& shape) {
  BranchShape below = shape;
  below.mask = Mask::full;
  below.time = shape.source_time == 0 ? shape.time : shape.source_time;
  const Branches decoder(scheme, shape);
  EncoderDecoderTables tables{.encoder = Branches(scheme, below).measure(), .decoder = decoder.measure()};
  tables.cross = decoder.measure_cross(below.time, false);
  if (!norm_on_branches(scheme).empty()) tables.cross_normed = decoder.measure_cross(below.time, true);
  return tables;
}

}  // namespace norma
