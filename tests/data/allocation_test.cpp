// Filling a batch that has its size touches no allocator. This file counts the test program's allocations, except under
// a sanitizer, which brings an allocator of its own.
#include <gtest/gtest.h>

#include <atomic>
#include <cstdlib>
#include <new>

#include "files.h"
#include "norma/data/source.h"

#ifdef NORMA_SANITIZED
#define NORMA_COUNTS_ALLOCATIONS 0
#else
#define NORMA_COUNTS_ALLOCATIONS 1
#endif

namespace {

std::atomic<long> allocations{0};

}  // namespace

#if NORMA_COUNTS_ALLOCATIONS
namespace {

void* counted(std::size_t size) {
  ++allocations;
  if (void* const memory = std::malloc(size == 0 ? 1 : size)) return memory;
  throw std::bad_alloc();
}

}  // namespace

void* operator new(std::size_t size) { return counted(size); }
void* operator new[](std::size_t size) { return counted(size); }
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete[](void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }
void operator delete[](void* memory, std::size_t) noexcept { std::free(memory); }
#endif

namespace norma {
namespace {

TEST(Allocation, NoTaskAllocatesInItsSteps) {
  if (!NORMA_COUNTS_ALLOCATIONS) GTEST_SKIP() << "a sanitizer allocates";
  const TemporaryFolder folder;
  std::string lines;
  for (int i = 0; i < 200; ++i) lines += fmt::format("{}\tword{} text\n", i % 3, i);
  const std::string path = folder.write("t", lines);
  std::vector<std::pair<std::string, std::int64_t>> forms;
  for (const std::string& task : task_names()) forms.emplace_back(task, 33);
  for (const char* task : {"copy", "reverse", "sort"}) forms.emplace_back(task, 0);
  for (const auto& [task, source_time] : forms) {
    DataConfig config{.task = task, .path = path, .validation_path = path};
    if (task == "images") {
      config.path = config.validation_path =
          folder.write("images", std::string("\0\0\x8\3\0\0\0\6\0\0\0\2\0\0\0\2", 16) + "abcdefghijklmnopqrstuvwx");
      config.target_path = config.validation_target_path =
          folder.write("labels", std::string("\0\0\x8\1\0\0\0\6\0\1\0\1\0\1", 14));
      config.settings = {{"crop", 1}, {"flip", 1}};
    } else if (task == "tu") {
      std::string edges, graphs, labels;
      for (int graph = 1; graph <= 20; ++graph) {
        edges += fmt::format("{}, {}\n", 2 * graph - 1, 2 * graph);
        graphs += fmt::format("{0}\n{0}\n", graph);
        labels += fmt::format("{}\n", graph % 2);
      }
      folder.write("DS_A.txt", edges);
      folder.write("DS_graph_indicator.txt", graphs);
      folder.write("DS_graph_labels.txt", labels);
      config.path = folder / "DS";
      config.validation_path.clear();
    } else if (task == "planetoid" || task == "edge_list") {
      config.path = folder.write("nodes", "node\n0\t0\ttrain\t0\n1\t1\ttrain\t1\n2\t0\tval\t1\n3\t1\ttest\t1\n");
      config.target_path = folder.write("edges", "0\t1\n");
    }
    const auto source = open_source(config, {5, 33, source_time});
    Batch batch;
    const long first = allocations.load();
    source->fill(0, 0, batch);
    const long before = allocations.load();
    EXPECT_GT(before, first) << "the counter counts";
    for (std::uint64_t index = 1; index < 50; ++index) source->fill(index, index, batch);
    source->fill_evaluation(0, batch);
    EXPECT_EQ(allocations.load(), before) << task;
  }
}

}  // namespace
}  // namespace norma
