// The attention probe against a softmax written out over the queries it looks at.
#include "norma/ops/attention_probe.h"

#include <cmath>
#include <limits>

#include "check.h"

namespace norma {
namespace {

struct Expected {
  double largest = -std::numeric_limits<double>::infinity(), entropy = 0;
};

Expected by_hand(std::span<const double> q, std::span<const double> k, std::int64_t queries, std::int64_t keys,
                 std::int64_t heads, std::int64_t kv_heads, std::int64_t width, bool causal, std::int64_t length) {
  Expected all;
  const std::int64_t looked = std::min<std::int64_t>(8, queries);
  for (std::int64_t head = 0; head < heads; ++head) {
    for (std::int64_t i = 0; i < looked; ++i) {
      const std::int64_t query = (i + 1) * queries / looked - 1;
      std::vector<double> scores;
      for (std::int64_t key = 0; key < std::min(length, causal ? query + 1 : keys); ++key) {
        double dot = 0;
        for (std::int64_t c = 0; c < width; ++c)
          dot += q[static_cast<std::size_t>((query * heads + head) * width + c)] *
                 k[static_cast<std::size_t>((key * kv_heads + head / (heads / kv_heads)) * width + c)];
        scores.push_back(dot / std::sqrt(static_cast<double>(width)));
        all.largest = std::max(all.largest, scores.back());
      }
      double sum = 0;
      for (const double s : scores) sum += std::exp(s);
      for (const double s : scores) all.entropy -= std::exp(s) / sum * (s - std::log(sum));
    }
  }
  all.entropy /= static_cast<double>(heads * looked);
  return all;
}

template <typename T>
AttentionSummary read_probe(CpuSession& session, std::int64_t heads) {
  const std::span<T> output = session.tensor<T>("probe");
  return read_attention_probe(static_cast<std::size_t>(heads), [&](std::size_t i) { return output[i]; });
}

TEST(AttentionProbe, LooksAtEvenlySpreadQueries) {
  for (const bool causal : {true, false}) {
    const std::int64_t time = 29, heads = 4, kv_heads = 2, width = 5;
    Graph g;
    const Wire q = g.input("q", {{2, time, heads * width}, DType::f64});
    const Wire k = g.input("k", {{2, time, kv_heads * width}, DType::f64});
    const Wire lengths = g.input("lengths", {{2}, DType::i32});
    const AttentionOptions options{
        .heads = heads, .kv_heads = kv_heads, .mask = causal ? Mask::causal : Mask::full, .scale = {}};
    const Wire in[] = {q, k, k, lengths};
    g.output("probe", attention_probe(Attention(QkvLayout::separate, options), in));
    CpuSession session(test::plain_plan(g));
    test::randomise<double>(session, "q", 1);
    test::randomise<double>(session, "k", 2);
    session.write<std::int32_t>("lengths", std::array{17, 3});
    session.run();
    const Expected expected = by_hand(session.tensor<double>("q"), session.tensor<double>("k"), time, time, heads,
                                      kv_heads, width, causal, 17);
    const AttentionSummary found = read_probe<double>(session, heads);
    EXPECT_NEAR(found.logit_max, expected.largest, 1e-12);
    EXPECT_NEAR(found.entropy, expected.entropy, 1e-12);
    session.tensor<double>("q")[static_cast<std::size_t>(time * heads * width - 1)] =
        std::numeric_limits<double>::quiet_NaN();
    session.run();
    EXPECT_TRUE(std::isnan(read_probe<double>(session, heads).logit_max)) << "a NaN is not hidden";
  }
}

TEST(AttentionProbe, ReadsAPackedProjection) {
  const std::int64_t time = 3, heads = 2, width = 4;
  Graph g;
  const Wire qkv = g.input("qkv", {{1, time, 3 * heads * width}, DType::f32});
  const Wire in[] = {qkv};
  g.output("probe", attention_probe(Attention(QkvLayout::packed, {.heads = heads, .scale = {}}), in));
  CpuSession session(test::plain_plan(g));
  for (float& x : session.tensor<float>("qkv")) x = 1;
  session.run();
  EXPECT_NEAR(read_probe<float>(session, heads).logit_max, 2, 1e-6);
  const double expected = (0 + std::log(2.0) + std::log(3.0)) / 3;
  EXPECT_NEAR(read_probe<float>(session, heads).entropy, expected, 1e-6);
}

TEST(AttentionProbe, SeveralAreThoseOfEach) {
  Graph g;
  const AttentionOptions options{.heads = 2, .scale = {}};
  const Attention watched(QkvLayout::separate, options);
  Wires in;
  for (const std::string layer : {"1", "2", "3"}) {
    for (const std::string part : {"q", "k", "v"}) in.push_back(g.input(part + layer, {{2, 9, 10}, DType::f64}));
    in.push_back(g.input("lengths" + layer, {{2}, DType::i32}));
  }
  const Wires together = attention_probes(watched, 3, in);
  ASSERT_EQ(together.size(), 3u);
  for (std::size_t i = 0; i < 3; ++i) {
    g.output("together" + std::to_string(i), together[i]);
    g.output("alone" + std::to_string(i), attention_probe(watched, std::span(in).subspan(4 * i, 4)));
  }
  CpuSession session(test::plain_plan(g));
  for (int i = 0; i < 12; ++i) {
    const std::string name = g.value(in[static_cast<std::size_t>(i)].id()).name;
    if (i % 4 < 3) test::randomise<double>(session, name, static_cast<std::uint64_t>(i + 1));
    if (i % 4 == 3) session.write<std::int32_t>(name, std::array{3 + i / 4, 9});
  }
  session.run();
  for (const std::string i : {"0", "1", "2"}) {
    const auto found = session.tensor<double>("together" + i), expected = session.tensor<double>("alone" + i);
    EXPECT_TRUE(std::equal(found.begin(), found.end(), expected.begin(), expected.end())) << i;
  }
  EXPECT_NE(session.tensor<double>("together0")[0], session.tensor<double>("together1")[0]);
  in[5] = g.input("other", {{2, 8, 10}, DType::f64});
  EXPECT_NE(test::error_of([&] { attention_probes(watched, 3, in); }).find("what is probed must be f64[2, 9, 10]"),
            std::string::npos);
}

}  // namespace
}  // namespace norma
