// Fused attention against its reference composition, finite differences, and itself on other threads and members.
#include "norma/ops/attention.h"

#include <limits>
#include <numeric>

#include "check.h"
#include "norma/ops/views.h"

namespace norma {
namespace {

using test::check_gradients;
using test::error_of;

struct Case {
  std::int64_t batch, queries, keys, width;
  AttentionOptions options;
  bool with_lengths = false;

  std::string str() const {
    return fmt::format("batch {} queries {} keys {} width {} heads {}/{} {} lengths {}", batch, queries, keys, width,
                       options.heads, options.kv_heads, name_of(options.mask), with_lengths);
  }
  std::int64_t kv_heads() const { return options.kv_heads == 0 ? options.heads : options.kv_heads; }
};

std::vector<Case> cases() {
  std::vector<Case> list;
  for (const Mask mask : {Mask::full, Mask::causal}) {
    for (const std::int64_t time : {1, 5, 16, 33, 70}) {
      for (const std::int64_t width : {1, 7, 8, 16, 24, 32}) {
        list.push_back({2, time, time, width, {.heads = 2, .mask = mask}});
      }
    }
    list.push_back({3, 37, 37, 8, {.heads = 6, .kv_heads = 2, .mask = mask, .scale = 0.7}});
    list.push_back({3, 37, 37, 40, {.heads = 2, .kv_heads = 1, .mask = mask, .scale = -1.3}, true});
    list.push_back({9, 130, 130, 12, {.heads = 2, .mask = mask, .scale = std::sqrt(12.0)}, true});
  }
  list.push_back({2, 5, 33, 7, {.heads = 3, .mask = Mask::full}});
  list.push_back({2, 70, 3, 16, {.heads = 2, .mask = Mask::full}, true});
  return list;
}

struct Inputs {
  Wire q, k, v, lengths;
};

Inputs make_inputs(Graph& g, const Case& c, DType dtype) {
  return {g.input("q", {{c.batch, c.queries, c.options.heads * c.width}, dtype}),
          g.input("k", {{c.batch, c.keys, c.kv_heads() * c.width}, dtype}),
          g.input("v", {{c.batch, c.keys, c.kv_heads() * c.width}, dtype}),
          c.with_lengths ? g.input("lengths", {{c.batch}, DType::i32}) : Wire()};
}

void write_lengths(CpuSession& session, const Case& c) {
  if (!c.with_lengths) return;
  const auto lengths = session.tensor<std::int32_t>("lengths");
  // The last sample sees nothing, the one before all; the others something between.
  for (std::int64_t b = 0; b < c.batch; ++b) {
    const std::int64_t length = b + 1 == c.batch ? 0 : c.keys - 5 * (c.batch - 2 - b);
    lengths[static_cast<std::size_t>(b)] =
        static_cast<std::int32_t>(std::max<std::int64_t>(1, length)) - (b + 1 == c.batch);
  }
}

Wire fused(const Inputs& in, const AttentionOptions& options) {
  return attention(in.q, in.k, in.v, options, in.lengths);
}

Wire composed(const Inputs& in, const AttentionOptions& options) {
  Wires wires = {in.q, in.k, in.v};
  if (in.lengths) wires.push_back(in.lengths);
  return Attention(QkvLayout::separate, options).reference(wires)[0];
}

// Context and gradients of sum(context * weight).
template <typename T, typename Build>
std::map<std::string, std::vector<double>> run_case(const Case& c, const Build& build, int threads = 1) {
  Graph g;
  const Inputs in = make_inputs(g, c, dtype_of<T>());
  const Wire context = build(in, c.options);
  const Wire wrt[] = {in.q, in.k, in.v};
  const Wires gradients = differentiate(sum_all(context * g.input("weight", context.type())), wrt);
  g.output("context", context);
  const char* names[] = {"dq", "dk", "dv"};
  for (std::size_t i = 0; i < 3; ++i) g.output(names[i], gradients[i]);
  CpuSession session(test::plain_plan(g), {.members = 1, .threads = threads});
  test::randomise_all(session);
  write_lengths(session, c);
  session.run();
  std::map<std::string, std::vector<double>> result;
  for (const char* name : {"context", "dq", "dk", "dv"}) {
    const auto values = session.tensor<T>(name);
    result[name].assign(values.begin(), values.end());
  }
  return result;
}

void expect_close(const std::vector<double>& a, const std::vector<double>& b, double tolerance,
                  const std::string& what) {
  ASSERT_EQ(a.size(), b.size());
  double largest = 0, difference = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    largest = std::max(largest, std::abs(b[i]));
    difference = std::max(difference, std::abs(a[i] - b[i]));
    ASSERT_TRUE(std::isfinite(a[i])) << what << " at " << i;
  }
  EXPECT_LE(difference, tolerance * (1 + largest)) << what;
}

TEST(Attention, EqualsItsReference) {
  for (const Case& c : cases()) {
    const auto kernel = run_case<double>(c, fused), reference = run_case<double>(c, composed);
    for (const auto& [name, values] : kernel) expect_close(values, reference.at(name), 1e-13, name + ": " + c.str());
  }
}

TEST(Attention, SinglePrecisionFollowsDouble) {
  for (const Case& c : cases()) {
    const auto kernel = run_case<float>(c, fused), reference = run_case<double>(c, composed);
    // Random scores of variance width * scale^2: an error of some units in the last place of the largest score.
    const double scale = std::abs(c.options.scale.value_or(1 / std::sqrt(static_cast<double>(c.width))));
    const double largest_score = 1 + 6 * scale * std::sqrt(static_cast<double>(c.width));
    for (const auto& [name, values] : kernel) {
      expect_close(values, reference.at(name), 8 * epsilon_of(DType::f32) * largest_score, name + ": " + c.str());
    }
  }
}

TEST(Attention, Gradients) {
  for (const Case& c : std::vector<Case>{{2, 5, 5, 3, {.heads = 2}},
                                         {1, 9, 9, 4, {.heads = 4, .kv_heads = 2, .scale = 1.5}},
                                         {2, 3, 7, 5, {.heads = 2, .mask = Mask::full}, true}}) {
    check_gradients(
        [&](Graph& g) {
          const Wire context = fused(make_inputs(g, c, DType::f64), c.options);
          return sum_all(context * g.input("weight", context.type()));
        },
        {"q", "k", "v"}, {.prepare = [&](CpuSession& session) { write_lengths(session, c); }});
  }
}

TEST(Attention, SecondDerivatives) {
  check_gradients(
      [&](Graph& g) {
        const Inputs in = make_inputs(g, {1, 4, 4, 3, {}}, DType::f64);
        const Wire wrt[] = {in.q};
        const Wire first = differentiate(sum_all(square(fused(in, {.heads = 1}))), wrt)[0];
        return sum_all(square(first));
      },
      {"q", "k", "v"}, {.tolerance = 1e-6});
}

TEST(Attention, OneWireAsQueriesKeysAndValues) {
  check_gradients(
      [](Graph& g) {
        const Wire x = g.input("x", {{2, 5, 6}, DType::f64});
        const Wire context = attention(x, x, x, {.heads = 2});
        const Wire wrt[] = {x};
        const Wire first = differentiate(sum_all(context * g.input("weight", x.type())), wrt)[0];
        return sum_all(square(first)) + sum_all(square(context));
      },
      {"x"}, {.tolerance = 1e-6});
}

TEST(Attention, PackedHasTheBitsOfSeparate) {
  for (const std::int64_t kv_heads : {4, 2}) {
    const AttentionOptions options{.heads = 4, .kv_heads = kv_heads};
    const std::int64_t width = 11, time = 21, parts = 4 + 2 * kv_heads;
    const auto run = [&](bool packed) {
      Graph g;
      const Wire qkv = g.input("qkv", {{2, time, parts * width}, DType::f32});
      const Wire context = packed
                               ? attention_packed(qkv, options)
                               : attention(slice_last(qkv, 0, 4 * width), slice_last(qkv, 4 * width, kv_heads * width),
                                           slice_last(qkv, (4 + kv_heads) * width, kv_heads * width), options);
      g.output("context", context);
      const Wire wrt[] = {qkv};
      g.output("dqkv", differentiate(sum_all(square(context)), wrt)[0]);
      CpuSession session(test::plain_plan(g));
      test::randomise_all(session);
      session.run();
      const auto y = session.tensor<float>("context"), dy = session.tensor<float>("dqkv");
      std::vector<float> all(y.begin(), y.end());
      all.insert(all.end(), dy.begin(), dy.end());
      return all;
    };
    EXPECT_EQ(run(true), run(false));
  }
}

TEST(Attention, SameBitsOnAnyNumberOfThreads) {
  for (const Case& c : {Case{2, 150, 150, 16, {.heads = 2}}, Case{9, 33, 33, 8, {.heads = 4, .kv_heads = 2}}}) {
    const auto one = run_case<float>(c, fused, 1);
    EXPECT_EQ(one, run_case<float>(c, fused, 2));
    EXPECT_EQ(one, run_case<float>(c, fused, 3));
  }
}

TEST(Attention, AMemberAloneHasTheBitsOfTheSameMemberInACohort) {
  const auto run = [](int members, int which) {
    Graph g;
    const Wire qkv = g.input("qkv", {{2, 20, 3 * 24}, DType::f32});
    const Wire context = attention_packed(qkv, {.heads = 2});
    const Wire wrt[] = {qkv};
    g.output("d", differentiate(sum_all(square(context)), wrt)[0]);
    CpuSession session(test::plain_plan(g), {.members = members, .threads = 2});
    for (int m = 0; m < members; ++m) {
      const RandomStream stream(static_cast<std::uint64_t>(members == 1 ? which : m), "qkv");
      const auto x = session.tensor<float>("qkv", m);
      for (std::size_t i = 0; i < x.size(); ++i) x[i] = static_cast<float>(stream.normal(i));
    }
    session.run();
    const auto d = session.tensor<float>("d", members == 1 ? 0 : which);
    return std::vector<float>(d.begin(), d.end());
  };
  for (int which = 0; which < 3; ++which) EXPECT_EQ(run(1, which), run(3, which));
}

// Which rows [batch, time] of a tensor hold a NaN.
std::vector<bool> nan_rows(std::span<const float> x, std::size_t width) {
  std::vector<bool> rows(x.size() / width);
  for (std::size_t i = 0; i < x.size(); ++i) rows[i / width] = rows[i / width] || std::isnan(x[i]);
  return rows;
}

// One head over 40 causal steps where one number of the input `source` is replaced: the rows that become NaN.
struct Spread {
  static constexpr std::size_t kTime = 40, kBad = 18;
  std::vector<bool> context, dq, dk, dv;

  Spread(const std::string& source, float value, std::size_t width) {
    const Case c{1, kTime, kTime, static_cast<std::int64_t>(width), {.heads = 1}};
    Graph g;
    const Inputs in = make_inputs(g, c, DType::f32);
    const Wire y = fused(in, c.options);
    const Wire wrt[] = {in.q, in.k, in.v};
    const Wires d = differentiate(sum_all(y * g.input("weight", y.type())), wrt);
    g.output("context", y);
    g.output("dq", d[0]);
    g.output("dk", d[1]);
    g.output("dv", d[2]);
    CpuSession session(test::plain_plan(g));
    test::randomise_all(session);
    session.tensor<float>(source)[kBad * width + 3] = value;
    session.run();
    context = nan_rows(session.tensor<float>("context"), width);
    dq = nan_rows(session.tensor<float>("dq"), width);
    dk = nan_rows(session.tensor<float>("dk"), width);
    dv = nan_rows(session.tensor<float>("dv"), width);
  }
};

TEST(Attention, NaNReachesWhatDependsOnItAndNothingElse) {
  for (const std::size_t width : {8, 16, 20, 32}) {
    for (const std::string source : {"q", "k", "v", "weight"}) {
      const Spread spread(source, std::numeric_limits<float>::quiet_NaN(), width);
      for (std::size_t i = 0; i < Spread::kTime; ++i) {
        const bool query_sees = i >= Spread::kBad;  // for a bad key or value
        SCOPED_TRACE(fmt::format("NaN in {} of width {}, row {}", source, width, i));
        if (source == "q" || source == "weight") {
          EXPECT_EQ(spread.context[i], source == "q" && i == Spread::kBad);
          EXPECT_EQ(spread.dq[i], i == Spread::kBad);
          EXPECT_EQ(spread.dk[i], i <= Spread::kBad);
          EXPECT_EQ(spread.dv[i], i <= Spread::kBad);
        } else {
          EXPECT_EQ(spread.context[i], query_sees);
          EXPECT_EQ(spread.dq[i], query_sees);
          EXPECT_TRUE(spread.dk[i]);  // row i is seen by the last query, which saw the NaN
          EXPECT_EQ(spread.dv[i], source == "k");
        }
      }
    }
  }
}

// All numbers are finite, but a query's gradient by its probabilities is not.
TEST(Attention, AnOverflowDoesNotReachHiddenKeys) {
  for (const std::size_t width : {8, 20}) {
    const Spread spread("weight", std::numeric_limits<float>::max(), width);
    for (std::size_t i = 0; i < Spread::kTime; ++i) {
      SCOPED_TRACE(fmt::format("width {}, row {}", width, i));
      EXPECT_FALSE(spread.context[i]);
      EXPECT_EQ(spread.dq[i], i == Spread::kBad);
      EXPECT_FALSE(i > Spread::kBad && spread.dk[i]);
      EXPECT_FALSE(spread.dv[i]);
    }
  }
}

TEST(Attention, HiddenKeysHaveNoInfluence) {
  const Case c{2, 9, 9, 6, {.heads = 2, .mask = Mask::full}, true};
  Graph g;
  const Inputs in = make_inputs(g, c, DType::f32);
  const Wire context = fused(in, c.options);
  const Wire wrt[] = {in.q, in.k, in.v};
  const Wires d = differentiate(sum_all(square(context)), wrt);
  g.output("context", context);
  g.output("dq", d[0]);
  g.output("dk", d[1]);
  g.output("dv", d[2]);
  CpuSession session(test::plain_plan(g));
  test::randomise_all(session);
  session.write<std::int32_t>("lengths", std::vector<std::int32_t>{4, 0});
  for (const char* name : {"k", "v"}) {
    const auto x = session.tensor<float>(name);
    std::fill(x.begin() + 4 * 12, x.end(), std::numeric_limits<float>::quiet_NaN());
  }
  session.run();
  for (const char* name : {"context", "dq", "dk", "dv"}) {
    const auto x = session.tensor<float>(name);
    for (const float value : x) EXPECT_TRUE(std::isfinite(value)) << name;
    for (std::size_t i = 9 * 12; i < x.size(); ++i) EXPECT_EQ(x[i], 0) << name << " of the sample that sees nothing";
  }
  for (std::size_t i = 4 * 12; i < 9 * 12; ++i) EXPECT_EQ(session.tensor<float>("dk")[i], 0);
}

TEST(Attention, ScoresThatContinueThoseBelow) {
  const Case c{2, 6, 6, 4, {.heads = 2}};
  // Without previous scores it is plain attention.
  const auto scored = [](const Inputs& in, const AttentionOptions& options) {
    return attention_with_scores(in.q, in.k, in.v, options, {}, in.lengths).context;
  };
  const auto plain = run_case<double>(c, fused), alone = run_case<double>(c, scored);
  for (const auto& [name, values] : alone) expect_close(values, plain.at(name), 1e-13, name);
  // Two layers: gradients of the second reach the first through the scores, masked entries too.
  check_gradients(
      [&](Graph& g) {
        const Inputs in = make_inputs(g, c, DType::f64);
        const ScoredAttention first = attention_with_scores(in.q, in.k, in.v, c.options);
        const Wire q2 = g.input("q2", in.q.type());
        const ScoredAttention second = attention_with_scores(q2, in.v, in.v, c.options, first.scores);
        return sum_all(second.context * g.input("weight", in.q.type())) + sum_all(square(first.scores)) * 0.01;
      },
      {"q", "k", "v", "q2"});
  Graph g;
  const Inputs in = make_inputs(g, c, DType::f64);
  EXPECT_NE(error_of([&] {
              attention_with_scores(in.q, in.k, in.v, c.options, in.q);
            }).find("previous scores must be f64[2, 2, 6, 6] but is f64[2, 6, 8]"),
            std::string::npos);
}

TEST(Attention, CostCountsOnlyPairsThatAreComputed) {
  const std::vector<Type> in(3, {{2, 64, 128}, DType::f32});
  const Attention causal(QkvLayout::separate, {.heads = 4}),
      full(QkvLayout::separate, {.heads = 4, .mask = Mask::full});
  EXPECT_EQ(full.cost(in, full.infer(in)).flops, 2.0 * 4 * 64 * 64 * 4 * 32);
  EXPECT_EQ(causal.cost(in, causal.infer(in)).flops, 2.0 * 4 * (64 * 65 / 2) * 4 * 32);
}

TEST(Attention, ErrorsSayWhatWasGiven) {
  Graph g;
  const Wire x = g.input("x", {{2, 10, 768}, DType::f32}), y = g.input("y", {{2, 12, 768}, DType::f32});
  const Wire tokens = g.input("tokens", {{2, 10, 768}, DType::i32}), lengths = g.input("lengths", {{3}, DType::i32});
  const auto message = [&](const std::function<void()>& action, const std::string& part) {
    const std::string text = error_of(action);
    EXPECT_NE(text.find(part), std::string::npos) << text;
  };
  message([&] { attention(x, x, x, {.heads = 7}); }, "width 768 is not divisible by 7 heads");
  message([&] { attention(x, x, x, {.heads = 8, .kv_heads = 3}); }, "8 query heads are not divisible by 3 key-value");
  message([&] { attention(x, x, x, {.heads = 8, .kv_heads = 4}); }, "keys must be [2, time, 384]");
  message([&] { attention(x, y, y, {.heads = 8}); }, "12 keys and 10 queries");
  message([&] { attention(x, x, y, {.heads = 8}); }, "values must be f32[2, 10, 768] but is f32[2, 12, 768]");
  message([&] { attention(tokens, tokens, tokens, {.heads = 8}); }, "f32 or f64");
  message([&] { attention(x, x, x, {.heads = 8}, lengths); }, "lengths must be i32[2] but is i32[3]");
  message([&] { attention_packed(x, {.heads = 5}); }, "width 768 is not divisible by 15 heads");
}

}  // namespace
}  // namespace norma
