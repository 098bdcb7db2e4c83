// Limits of control groups, version 1 and 2, in folders that look like theirs.
#include "core/memory_limit.h"

#include <gtest/gtest.h>

#include <fstream>
#include <string>

#include "temporary_folder.h"

namespace norma {
namespace {

class Root {
 public:
  void write(const std::string& path, const std::string& text) const {
    const std::filesystem::path file = folder_ / path;
    std::filesystem::create_directories(file.parent_path());
    std::ofstream(file) << text;
  }
  std::int64_t left() const { return cgroup_memory(std::filesystem::path(folder_ / ".")); }

 private:
  test::TemporaryFolder folder_;
};

TEST(MemoryLimit, OfAMachineWithoutGroupsIsNone) { EXPECT_EQ(Root().left(), kNoMemoryLimit); }

TEST(MemoryLimit, OfVersion2) {
  const Root root;
  root.write("sys/fs/cgroup/memory.max", "max\n");
  EXPECT_EQ(root.left(), kNoMemoryLimit);
  root.write("sys/fs/cgroup/memory.max", "1000\n");
  root.write("sys/fs/cgroup/memory.current", "700\n");
  EXPECT_EQ(root.left(), 300);
  root.write("sys/fs/cgroup/memory.stat",
             "anon 500\nactive_file 100\ninactive_file 40\nslab_reclaimable 10\nshmem 5\n");
  EXPECT_EQ(root.left(), 450);
  root.write("sys/fs/cgroup/memory.current", "2000\n");
  EXPECT_EQ(root.left(), 0);
}

TEST(MemoryLimit, OfVersion1) {
  const Root root;
  root.write("sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n");
  EXPECT_GT(root.left(), std::int64_t{1} << 60);
  root.write("sys/fs/cgroup/memory/memory.limit_in_bytes", "1000\n");
  root.write("sys/fs/cgroup/memory/memory.usage_in_bytes", "700\n");
  root.write("sys/fs/cgroup/memory/memory.stat", "active_file 1\ntotal_active_file 100\ntotal_inactive_file 40\n");
  EXPECT_EQ(root.left(), 440);
}

TEST(MemoryLimit, IsTheLeastOfTheGroupAndThoseAbove) {
  const Root root;
  root.write("proc/self/cgroup", "9:cpu:/\n4:memory:/jobs/mine\n0::/slice/mine\n");
  root.write("sys/fs/cgroup/memory/memory.limit_in_bytes", "9000\n");
  root.write("sys/fs/cgroup/memory/jobs/memory.limit_in_bytes", "500\n");
  root.write("sys/fs/cgroup/memory/jobs/mine/memory.limit_in_bytes", "800\n");
  EXPECT_EQ(root.left(), 500);
  root.write("sys/fs/cgroup/slice/mine/memory.max", "400\n");
  EXPECT_EQ(root.left(), 400);
  root.write("sys/fs/cgroup/unified/slice/memory.max", "300\n");
  EXPECT_EQ(root.left(), 300);
}

TEST(MemoryLimit, OfAHostThatIsNotToBeSeenIsThatOfTheMount) {
  const Root root;
  root.write("proc/self/cgroup", "4:memory,cpu:/docker/0123\n0::/../../x\n");
  root.write("sys/fs/cgroup/memory/memory.limit_in_bytes", "700\n");
  EXPECT_EQ(root.left(), 700);
}

}  // namespace
}  // namespace norma
