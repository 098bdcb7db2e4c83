// Sums, means and largest of segments: by hand, gradients, kernel against reference, threads, errors.
#include "norma/ops/segments.h"

#include "ops/graph_check.h"

namespace norma {
namespace {

using test::check_gradients;
using test::error_of;

const Segmented kKinds[] = {Segmented::sum, Segmented::mean, Segmented::max};
// Of four segments the second has no rows; the last two rows belong to none.
const std::vector<std::int32_t> kIds = {0, 0, 0, 2, 3, 4, 4};

TEST(Segments, ByHand) {
  Graph g;
  const Wire x = g.input("x", {{7, 1}, DType::f32}), ids = g.input("ids", {{7}, DType::i32});
  g.output("sum", segment_reduce(Segmented::sum, x, ids, 4));
  g.output("mean", segment_reduce(Segmented::mean, x, ids, 4));
  g.output("max", segment_reduce(Segmented::max, x, ids, 4));
  g.output("spread", segment_spread(segment_reduce(Segmented::sum, x, ids, 4), ids));
  CpuSession session(test::plain_plan(g), {.threads = 1});
  session.write<std::int32_t>("ids", kIds, 0);
  session.write<float>("x", std::vector<float>{-1, -2, -6, 4, -5, 100, 100}, 0);
  session.run();
  const auto is = [&](const char* name) {
    const auto t = session.tensor<float>(name);
    return std::vector<float>(t.begin(), t.end());
  };
  EXPECT_EQ(is("sum"), (std::vector<float>{-9, 0, 4, -5}));
  EXPECT_EQ(is("mean"), (std::vector<float>{-3, 0, 4, -5}));
  EXPECT_EQ(is("max"), (std::vector<float>{-1, 0, 4, -5}));
  EXPECT_EQ(is("spread"), (std::vector<float>{-9, -9, -9, 4, -5, 0, 0}));
}

TEST(Segments, Gradients) {
  for (const Segmented kind : kKinds) {
    const auto value = [&](Graph& g) {
      return segment_reduce(kind, g.input("x", {{7, 1, 3}, DType::f64}), g.input("ids", {{7}, DType::i32}), 4);
    };
    const auto prepare = [](CpuSession& session) { session.write<std::int32_t>("ids", kIds, 0); };
    check_gradients([&](Graph& g) { return sum_all(square(value(g))); }, {"x"}, {.prepare = prepare});
    check_gradients(
        [&](Graph& g) {
          const Wire loss = sum_all(square(square(value(g))));
          return sum_all(square(differentiate(loss, Wires{g.find("x")})[0]));
        },
        {"x"}, {.tolerance = 1e-5, .prepare = prepare});
  }
}

TEST(Segments, KernelsEqualReferencesOnAnyNumberOfThreads) {
  for (const Segmented kind : kKinds) {
    for (const std::int64_t width : {1, 33}) {
      for (const std::int64_t segments : {1, 5, 70}) {
        constexpr std::int64_t kRows = 211;
        std::vector<std::int32_t> ids;
        const RandomStream stream(1, "ids");
        for (std::uint64_t i = 0; i < kRows; ++i)
          ids.push_back(static_cast<std::int32_t>(stream.below(i, static_cast<std::uint32_t>(segments + 1))));
        std::sort(ids.begin(), ids.end());
        Graph g;
        const Wire x = g.input("x", {{kRows, width}, DType::f32}), i = g.input("ids", {{kRows}, DType::i32});
        const Wire y = segment_reduce(kind, x, i, segments);
        const Wire reference = SegmentReduce(kind, segments).reference(Wires{x, i})[0];
        const Wire dout[] = {g.input("dy", y.type())}, wrt[] = {x}, out[] = {y}, expected[] = {reference};
        g.output("y", y);
        g.output("reference", reference);
        g.output("dx", pull_back(out, dout, wrt)[0]);
        g.output("expected", pull_back(expected, dout, wrt)[0]);
        for (const auto& [name, other] : {std::pair{"y", "reference"}, {"dx", "expected"}}) {
          const std::vector<float> ours = test::run_with_ids(g, "ids", ids, name, 1);
          EXPECT_EQ(ours, test::run_with_ids(g, "ids", ids, name, 3));
          const std::vector<float> theirs = test::run_with_ids(g, "ids", ids, other, 1);
          for (std::size_t k = 0; k < ours.size(); ++k) ASSERT_NEAR(ours[k], theirs[k], 1e-4) << name << " " << k;
        }
      }
    }
  }
}

TEST(Segments, RefuseIdsThatDoNotSuit) {
  Graph g;
  const Wire x = g.input("x", {{5, 2}, DType::f32}), ids = g.input("ids", {{4}, DType::i32});
  EXPECT_NE(
      error_of([&] { segment_reduce(Segmented::sum, x, ids, 2); }).find("ids of segments must be i32[5] but is i32[4]"),
      std::string::npos);
}

}  // namespace
}  // namespace norma
