// A fingerprint tells content, not time.
#include "norma/store/file_fingerprint.h"

#include <unistd.h>

#include "store/store_check.h"

namespace norma {
namespace {

using test::TemporaryFolder;

TEST(FileFingerprint, IsOfTheContent) {
  const TemporaryFolder folder;
  const std::string text = std::string(3'000'000, 'a') + "end";
  const std::string one = folder.write("one", text), other = folder.write("other", text);
  test::fs::last_write_time(other, test::fs::last_write_time(one) - std::chrono::hours(1));
  const FileFingerprint a = fingerprint_file(one), b = fingerprint_file(other);
  EXPECT_TRUE(a.same_content(b));
  EXPECT_NE(a.modified, b.modified);
  EXPECT_EQ(a.hash, hash_text(text));
  EXPECT_FALSE(a.is_sampled());
  for (const std::size_t at : {std::size_t{0}, std::size_t{1'500'000}, text.size() - 1}) {
    std::string changed = text;
    changed[at] = 'b';
    folder.write("other", changed);
    EXPECT_FALSE(fingerprint_file(other).same_content(a)) << at;
  }
  folder.write("other", text + "x");
  EXPECT_FALSE(fingerprint_file(other).same_content(a));
  EXPECT_EQ(fingerprint_file(folder.write("empty", "")).bytes, 0u);
  EXPECT_NE(test::error_of([&] { fingerprint_file(folder / "none"); }).find("No such file"), std::string::npos);
  EXPECT_NE(test::error_of([&] { fingerprint_file(folder.path()); }), "");
}

// Holes cost nothing, so the file can be larger than the disk.
TEST(FileFingerprint, OfAHugeFileTakesSamples) {
  const TemporaryFolder folder;
  const std::string path = folder.write("huge", "begin");
  constexpr std::uint64_t kBytes = kSampledBlocks * kSampledBytes * 4;
  ASSERT_EQ(::truncate(path.c_str(), static_cast<off_t>(kBytes)), 0);
  const auto print = [&] { return fingerprint_file(path, 0); };
  const FileFingerprint before = print();
  EXPECT_TRUE(before.is_sampled());
  EXPECT_EQ(before.bytes, kBytes);
  const auto put = [&](std::uint64_t at, char byte) {
    std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
    file.seekp(static_cast<std::streamoff>(at));
    file.put(byte);
  };
  const std::uint64_t stride = (kBytes - kSampledBytes) / (kSampledBlocks - 1);
  for (const std::uint64_t at : {std::uint64_t{0}, 17 * stride, kBytes - 1}) {
    put(at, 'x');
    EXPECT_FALSE(print().same_content(before)) << at;
    put(at, at == 0 ? 'b' : '\0');
    EXPECT_TRUE(print().same_content(before)) << at;
  }
}

}  // namespace
}  // namespace norma
