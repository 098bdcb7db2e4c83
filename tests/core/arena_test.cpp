// The arena: zeroed, aligned, movable, and honest about memory that is not there.
#include "norma/core/arena.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <utility>

#include "check.h"

namespace norma {
namespace {

TEST(Arena, IsZeroedAlignedAndRoundedUp) {
  Arena arena(1000);
  EXPECT_EQ(arena.bytes(), 1024);
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(arena.data()) % kArenaAlignment, 0u);
  EXPECT_TRUE(std::all_of(arena.data(), arena.data() + arena.bytes(), [](std::byte b) { return b == std::byte{0}; }));
}

TEST(Arena, MayBeEmpty) {
  EXPECT_EQ(Arena(0).bytes(), 0);
  EXPECT_EQ(Arena().data(), nullptr);
}

TEST(Arena, MovesItsMemory) {
  Arena first(64);
  std::byte* const data = first.data();
  Arena second(std::move(first));
  EXPECT_EQ(second.data(), data);
  Arena third;
  third = std::move(second);
  EXPECT_EQ(third.data(), data);
  EXPECT_EQ(third.bytes(), 64);
}

TEST(Arena, RefusesMoreThanTheMachineHas) {
  const std::string message = test::error_of([] { Arena arena(std::int64_t{1} << 55); });
  EXPECT_NE(message.find("the plan needs 32.0 PiB but this machine has "), std::string::npos) << message;
}

TEST(Arena, MemoryThatIsNotThereIsSaidBeforeItIsTaken) {
  EXPECT_EQ(test::error_of([] { require_memory(1, "this"); }), "");
  const std::string message = test::error_of([] { require_memory(std::int64_t{1} << 55, "that"); });
  EXPECT_TRUE(message.starts_with("out of memory: that needs 32.0 PiB, but ")) << message;
}

TEST(Arena, SomeMemoryIsAvailable) { EXPECT_GT(available_memory(), std::int64_t{1} << 20); }

TEST(DescribeBytes, UsesBinaryUnits) {
  EXPECT_EQ(describe_bytes(0), "0 bytes");
  EXPECT_EQ(describe_bytes(1023), "1023 bytes");
  EXPECT_EQ(describe_bytes(1536), "1.5 KiB");
  EXPECT_EQ(describe_bytes(std::int64_t{3} << 30), "3.0 GiB");
}

}  // namespace
}  // namespace norma
