// Philox against the published answers of Random123, and the properties that streams promise.
#include "norma/core/random.h"

#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <cstdint>
#include <limits>
#include <set>
#include <string>
#include <vector>

namespace norma {
namespace {

using Counter = Philox::Counter;
using Key = Philox::Key;

// kat_vectors of Random123, philox4x32 with 10 rounds.
TEST(Philox, KnownAnswers) {
  EXPECT_EQ(Philox::block({0, 0, 0, 0}, {0, 0}), (Counter{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}));
  constexpr std::uint32_t ones = 0xffffffff;
  EXPECT_EQ(Philox::block({ones, ones, ones, ones}, {ones, ones}),
            (Counter{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}));
  EXPECT_EQ(Philox::block({0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}, {0xa4093822, 0x299f31d0}),
            (Counter{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}));
}

TEST(RandomStream, WordsAreTheBlocksInOrder) {
  const RandomStream stream(7, "weights", 3);
  for (std::uint64_t index : {0ull, 1ull, 5ull, 1ull << 40}) {
    const std::uint64_t block = index / 4;
    const Counter expected =
        Philox::block({static_cast<std::uint32_t>(block), static_cast<std::uint32_t>(block >> 32), 3, 0}, stream.key());
    EXPECT_EQ(stream.bits(index), expected[index % 4]);
  }
}

TEST(RandomStream, NumbersDoNotDependOnWhatWasDrawnBefore) {
  const RandomStream stream(1, "layer.3.attn.out");
  std::vector<double> forwards, backwards(50);
  for (std::uint64_t i = 0; i < 50; ++i) forwards.push_back(stream.normal(i));
  for (std::uint64_t i = 50; i-- > 0;) backwards[i] = RandomStream(1, "layer.3.attn.out").normal(i);
  EXPECT_EQ(forwards, backwards);
}

TEST(RandomStream, ManyAtOnceAreThoseOneByOne) {
  const RandomStream stream(3, "weights", 5);
  for (const std::uint64_t count : {0u, 1u, 2u, 7u, 64u}) {
    std::uint64_t next = 0;
    stream.each_normal(count, [&](std::uint64_t i, double normal) {
      EXPECT_EQ(i, next++);
      EXPECT_EQ(normal, stream.normal(i));
    });
    EXPECT_EQ(next, count);
  }
}

// Values of the first version, which runs and checkpoints rely on.
TEST(RandomStream, ValuesAreKept) {
  const RandomStream stream(3, "weights", 5);
  EXPECT_NEAR(stream.normal(0), 0x1.233041fc7ac6dp+1, 1e-14);  // to the last digits of the C library's logarithm
  EXPECT_NEAR(stream.normal(7), -0x1.c310e5bad2ea3p+0, 1e-14);
  EXPECT_EQ(stream.uniform(5), 0x1.69a4734c67f37p-1);
  EXPECT_EQ(stream.below(9, 1000), 267u);
  EXPECT_EQ(stream.bits(13), 0x7e2ce01u);
}

TEST(RandomStream, SeedNameAndStepEachGiveAnotherStream) {
  std::set<std::uint64_t> firsts;
  const auto first = [&](std::uint64_t seed, const std::string& name, std::uint64_t step) {
    const RandomStream stream(seed, name, step);
    firsts.insert((std::uint64_t{stream.bits(0)} << 32) | stream.bits(1));
  };
  for (std::uint64_t seed = 0; seed < 50; ++seed) {
    for (std::uint64_t step = 0; step < 10; ++step) {
      for (const char* name : {"a", "b", "layers.1.w", "layers.11.w"}) first(seed, name, step);
    }
  }
  EXPECT_EQ(firsts.size(), 50u * 10u * 4u);
}

TEST(RandomStream, NeighbouringSeedsAreUncorrelated) {
  const RandomStream a(1, "w"), b(2, "w");
  constexpr int n = 20000;
  double product = 0;
  for (std::uint64_t i = 0; i < n; ++i) product += a.normal(i) * b.normal(i);
  EXPECT_LT(std::abs(product / n), 5 / std::sqrt(n));  // five standard deviations
}

TEST(RandomStream, UniformStaysInsideTheOpenInterval) {
  EXPECT_GT(unit_interval(0), 0);
  EXPECT_LT(unit_interval(std::numeric_limits<std::uint64_t>::max()), 1);
}

TEST(RandomStream, UniformMoments) {
  const RandomStream stream(11, "uniform");
  constexpr int n = 100000;
  double mean = 0, square = 0;
  std::array<int, 16> bins{};
  for (std::uint64_t i = 0; i < n; ++i) {
    const double u = stream.uniform(i);
    mean += u / n;
    square += u * u / n;
    ++bins[static_cast<std::size_t>(u * 16)];
  }
  EXPECT_NEAR(mean, 0.5, 5 * std::sqrt(1.0 / 12 / n));
  EXPECT_NEAR(square, 1.0 / 3, 5 * std::sqrt(4.0 / 45 / n));
  double chi_square = 0;
  for (const int count : bins) chi_square += std::pow(count - n / 16.0, 2) / (n / 16.0);
  EXPECT_LT(chi_square, 15 + 5 * std::sqrt(30.0));  // 15 degrees of freedom
}

TEST(RandomStream, NormalMoments) {
  const RandomStream stream(11, "normal");
  constexpr int n = 100000;
  std::array<double, 5> moment{};
  for (std::uint64_t i = 0; i < n; ++i) {
    const double x = stream.normal(i);
    for (int p = 1; p <= 4; ++p) moment[static_cast<std::size_t>(p)] += std::pow(x, p) / n;
  }
  EXPECT_NEAR(moment[1], 0, 5 * std::sqrt(1.0 / n));
  EXPECT_NEAR(moment[2], 1, 5 * std::sqrt(2.0 / n));
  EXPECT_NEAR(moment[3], 0, 5 * std::sqrt(15.0 / n));
  EXPECT_NEAR(moment[4], 3, 5 * std::sqrt(96.0 / n));
}

TEST(RandomStream, BelowCoversItsRangeEvenly) {
  const RandomStream stream(5, "tokens");
  std::array<int, 7> count{};
  constexpr int n = 70000;
  for (std::uint64_t i = 0; i < n; ++i) ++count.at(stream.below(i, 7));
  for (const int c : count) EXPECT_NEAR(c, n / 7.0, 5 * std::sqrt(n / 7.0));
  EXPECT_EQ(stream.below(0, 1), 0u);
}

// The names of streams reach checkpoints: the hash must never change.
TEST(HashName, IsFnv1a) {
  EXPECT_EQ(hash_name(""), 0xcbf29ce484222325ull);
  EXPECT_EQ(hash_name("a"), 0xaf63dc4c8601ec8cull);
  EXPECT_EQ(hash_name("foobar"), 0x85944171f73967e8ull);
}

}  // namespace
}  // namespace norma
