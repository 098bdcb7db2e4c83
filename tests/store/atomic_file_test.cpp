// Files are whole or untouched, and what went wrong is said with the path.
#include "norma/store/atomic_file.h"

#include <unistd.h>

#include "store/store_check.h"

namespace norma {
namespace {

using test::error_of;
using test::files_in;
using test::read_file;
using test::TemporaryFolder;

TEST(AtomicFile, ReplacesAFileOnlyAtCommit) {
  const TemporaryFolder directory;
  write_atomically(directory / "a.txt", "old");
  AtomicFile file(directory / "a.txt");
  file.write("ne");
  file.write("w!");
  file.rewrite(1, "E");
  EXPECT_EQ(read_file(directory / "a.txt"), "old");
  file.commit();
  EXPECT_EQ(read_file(directory / "a.txt"), "nEw!");
  EXPECT_EQ(files_in(directory.path()), 1);
}

TEST(AtomicFile, WithoutCommitNothingHappened) {
  const TemporaryFolder directory;
  {
    AtomicFile file(directory / "a.txt");
    file.write("half");
    EXPECT_EQ(files_in(directory.path()), 1);
    const AtomicFile moved(std::move(file));
  }
  EXPECT_EQ(files_in(directory.path()), 0);
}

TEST(AtomicFile, AnEmptyFileAndALargeOne) {
  const TemporaryFolder directory;
  write_atomically(directory / "empty", "");
  EXPECT_EQ(read_file(directory / "empty"), "");
  const std::string large(5'000'001, 'x');
  write_atomically(directory / "large", large);
  EXPECT_EQ(read_file(directory / "large"), large);
}

TEST(AtomicFile, AMissingDirectoryIsNamed) {
  const TemporaryFolder directory;
  const std::string message = error_of([&] { write_atomically(directory / "none/a.txt", "x"); });
  EXPECT_NE(message.find((directory / "none/a.txt")), std::string::npos) << message;
  EXPECT_NE(message.find("No such file or directory"), std::string::npos) << message;
}

TEST(AtomicFile, AnUnwritableDirectoryIsNamed) {
  // Root may write anywhere but in /proc.
  const std::string message = error_of([] { write_atomically("/proc/self/a.txt", "x"); });
  EXPECT_NE(message.find("/proc/self/a.txt"), std::string::npos) << message;
  if (::geteuid() == 0) return;
  const TemporaryFolder directory;
  test::fs::permissions(directory.path(), test::fs::perms::owner_read | test::fs::perms::owner_exec);
  EXPECT_NE(error_of([&] { write_atomically(directory / "a.txt", "x"); }).find("Permission denied"), std::string::npos);
  test::fs::permissions(directory.path(), test::fs::perms::owner_all);
}

TEST(AtomicFile, ADirectoryIsNotReplaced) {
  const TemporaryFolder directory;
  test::fs::create_directory(directory / "a");
  const std::string message = error_of([&] { write_atomically(directory / "a", "x"); });
  EXPECT_NE(message.find("cannot replace"), std::string::npos) << message;
  EXPECT_EQ(files_in(directory.path()), 1) << "the temporary must be gone";
  EXPECT_NE(error_of([&] { write_atomically(directory / "", "x"); }), "");
}

TEST(AtomicFile, AWriteThatFailsKeepsTheOldFile) {
  const TemporaryFolder directory;
  write_atomically(directory / "a.txt", "old");
  std::string message;
  {
    const test::FileSizeLimit limit(1 << 16);
    message = error_of([&] { write_atomically(directory / "a.txt", std::string(1 << 20, 'x')); });
  }
  EXPECT_NE(message.find("cannot write"), std::string::npos) << message;
  EXPECT_NE(message.find("after 65536 bytes: File too large"), std::string::npos) << message;
  EXPECT_EQ(read_file(directory / "a.txt"), "old");
  EXPECT_EQ(files_in(directory.path()), 1);
}

TEST(AtomicFile, AFullDiskKeepsTheOldFile) {
  const TemporaryFolder directory;
  const test::SmallDisk disk(directory);
  if (!disk.mounted()) GTEST_SKIP() << "a small file system cannot be mounted here";
  write_atomically(directory / "a.txt", "old");
  const std::string message = error_of([&] { write_atomically(directory / "a.txt", std::string(3 << 20, 'x')); });
  EXPECT_NE(message.find("No space left on device"), std::string::npos) << message;
  EXPECT_EQ(read_file(directory / "a.txt"), "old");
  EXPECT_EQ(files_in(directory.path()), 1);
  write_atomically(directory / "a.txt", "there is room again");
}

TEST(AtomicFile, LeftoversAreKnownByTheirNamesAndRemoved) {
  const TemporaryFolder directory;
  AtomicFile living(directory / "a.txt");
  const std::string name = test::fs::directory_iterator(directory.path())->path().filename().string();
  EXPECT_TRUE(is_stale_temporary(name)) << name;
  EXPECT_FALSE(is_stale_temporary("a.txt"));
  EXPECT_FALSE(is_stale_temporary("step-00000001.safetensors"));
  test::write_file(directory / "kept", "");
  EXPECT_EQ(remove_stale_temporaries(Folder(directory.path())), 1);
  EXPECT_EQ(files_in(directory.path()), 1);
}

}  // namespace
}  // namespace norma
