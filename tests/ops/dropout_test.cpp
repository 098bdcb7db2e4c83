// Dropout: the same words as RandomStream, exact identity at p = 0, the backward pass under the same mask.
#include "norma/ops/dropout.h"

#include <limits>

#include "check.h"

namespace norma {
namespace {

using test::check_gradients;
using test::error_of;

constexpr std::uint64_t kSeed = 0x123456789abcdef0, kStep = 0x1'0000'0007;

void write_key(CpuSession& session, std::uint64_t seed, std::uint64_t step, int member = 0) {
  const auto word = [](std::uint64_t value, int shift) { return static_cast<std::int32_t>(value >> shift); };
  session.write<std::int32_t>(
      "key", std::vector<std::int32_t>{word(seed, 0), word(seed, 32), word(step, 0), word(step, 32)}, member);
}

struct DropoutGraph {
  Graph g;
  Wire x, p, key;

  DropoutGraph(Shape shape, DType dtype)
      : x(g.input("x", {shape, dtype})), p(g.input("p", {{1}, dtype})), key(g.input("key", {{4}, DType::i32})) {}
};

template <typename T>
void expect_words_of_the_stream(std::int64_t count, T p) {
  DropoutGraph s({count}, dtype_of<T>());
  s.g.output("y", dropout(s.x, s.p, s.key, "layers.2.drop"));
  CpuSession session(test::plain_plan(s.g));
  test::randomise_all(session);
  session.tensor<T>("p")[0] = p;
  write_key(session, kSeed, kStep);
  const std::vector<T> x(session.tensor<T>("x").begin(), session.tensor<T>("x").end());
  session.run();
  const RandomStream stream(kSeed, "layers.2.drop", kStep);
  const auto threshold = static_cast<std::uint32_t>(static_cast<double>(p) * 0x1p32);
  for (std::size_t i = 0; i < x.size(); ++i) {
    const T expected = stream.bits(i) >= threshold ? x[i] * (T{1} / (T{1} - p)) : T{0};
    ASSERT_EQ(session.tensor<T>("y")[i], expected) << i << " of " << count;
  }
}

TEST(Dropout, UsesTheWordsOfTheNamedStream) {
  for (const std::int64_t count : {1, 63, 64, 333, 20000}) {
    expect_words_of_the_stream<float>(count, 0.3f);
    expect_words_of_the_stream<double>(count, 0.3);
  }
  expect_words_of_the_stream<float>(100, 0.0f);
}

TEST(Dropout, GradientsUseTheSameMask) {
  check_gradients(
      [](Graph& g) {
        const Wire x = g.input("x", {{9, 13}, DType::f64});
        const Wire y = dropout(x, g.input("p", {{1}, DType::f64}), g.input("key", {{4}, DType::i32}), "site");
        return sum_all(square(y) * g.input("weight", y.type()));
      },
      {"x"}, {.prepare = [](CpuSession& session) {
        session.tensor<double>("p")[0] = 0.4;
        write_key(session, 5, 9);
      }});
}

TEST(Dropout, MembersHaveTheirOwnMaskAndThreadsDoNotMatter) {
  const auto run = [](int members, int threads, std::uint64_t seed, int which) {
    DropoutGraph s({30000}, DType::f32);
    s.g.output("y", dropout(s.x, s.p, s.key, "site"));
    CpuSession session(test::plain_plan(s.g), {.members = members, .threads = threads});
    test::randomise_all(session);
    for (int m = 0; m < members; ++m) {
      session.tensor<float>("p", m)[0] = 0.5f;
      write_key(session, members == 1 ? seed : static_cast<std::uint64_t>(m), 3, m);
    }
    session.run();
    const auto y = session.tensor<float>("y", which);
    return std::vector<float>(y.begin(), y.end());
  };
  const auto alone = run(1, 1, 2, 0);
  EXPECT_EQ(alone, run(1, 2, 2, 0));
  EXPECT_EQ(alone, run(1, 3, 2, 0));
  EXPECT_EQ(alone, run(3, 2, 0, 2));
  EXPECT_NE(alone, run(3, 2, 0, 1));
}

TEST(Dropout, EdgesOfP) {
  DropoutGraph s({200}, DType::f32);
  s.g.output("y", dropout(s.x, s.p, s.key, "site"));
  CpuSession session(test::plain_plan(s.g));
  test::randomise_all(session);
  for (const float p : {1.0f, std::numeric_limits<float>::quiet_NaN()}) {
    session.tensor<float>("p")[0] = p;
    session.run();
    for (const float y : session.tensor<float>("y")) EXPECT_TRUE(p == 1 ? y == 0 : std::isnan(y));
  }
  EXPECT_NE(error_of([&] { dropout(s.x, s.x, s.key, "site"); }).find("p must be f32[1] but is f32[200]"),
            std::string::npos);
}

}  // namespace
}  // namespace norma
