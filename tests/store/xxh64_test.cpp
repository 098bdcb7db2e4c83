// The published values of XXH64, and the same digest however the bytes are cut.
#include "store/xxh64.h"

#include <gtest/gtest.h>

#include <string>
#include <string_view>
#include <vector>

namespace norma {
namespace {

std::uint64_t hash_of(std::string_view text, std::uint64_t seed = 0) {
  Xxh64 hash(seed);
  hash.update(std::as_bytes(std::span(text)));
  return hash.digest();
}

TEST(Xxh64, PublishedValues) {
  EXPECT_EQ(hash_of(""), 0xEF46DB3751D8E999ull);
  EXPECT_EQ(hash_of("a"), 0xD24EC4F1A98C6E5Bull);
  EXPECT_EQ(hash_of("abc"), 0x44BC2CF5AD770999ull);
}

TEST(Xxh64, PiecesGiveTheSameAsTheWhole) {
  std::string text(333, ' ');
  for (std::size_t i = 0; i < text.size(); ++i) text[i] = static_cast<char>(i * 131 + 7);
  for (std::size_t piece = 1; piece < 80; ++piece) {
    Xxh64 hash(5);
    for (std::size_t at = 0; at < text.size(); at += piece)
      hash.update(std::as_bytes(std::span(std::string_view(text).substr(at, piece))));
    ASSERT_EQ(hash.digest(), hash_of(text, 5)) << piece;
  }
}

}  // namespace
}  // namespace norma
