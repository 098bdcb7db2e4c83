// Event files as an independent reader sees them, and as TensorBoard itself does where it is installed.
#include "norma/store/tensorboard.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "store/crc32c.h"
#include "store/store_check.h"

namespace norma {
namespace {

using test::TemporaryFolder;

std::vector<EventScalar> loss_scalar(float value) { return {{"loss", value}}; }

// A run that wrote up to step 4, was killed, and went on from step 2, twice within one second.
void write_resumed_run(const test::fs::path& directory) {
  {
    EventWriter writer(directory);
    for (int step = 0; step <= 4; ++step) {
      const std::vector<EventScalar> scalars = {{"loss", 10.0f - static_cast<float>(step)}, {"lr", 0.5f}};
      writer.add_scalars(step, scalars, 1000.25 + step);
    }
  }
  {
    EventWriter writer(directory, 3);
    writer.add_scalars(3, loss_scalar(-1), 2000);
  }
  EventWriter writer(directory, 3);
  writer.add_scalars(3, loss_scalar(std::numeric_limits<float>::quiet_NaN()), 3000);
  writer.add_scalars(1'000'000'000'000, loss_scalar(-std::numeric_limits<float>::infinity()), 3001);
  const std::vector<float> values = {-2, 0.5f, 0.5f, 3};
  writer.add_histogram(5, "weights", Histogram(values), 3002);
}

// After what TensorBoard does at a restart: steps 3 and 4 of the first file and step 3 of the second are gone.
const char* const kAccumulated =
    "loss 0 10.0\n"
    "loss 1 9.0\n"
    "loss 2 8.0\n"
    "loss 3 nan\n"
    "loss 1000000000000 -inf\n"
    "lr 0 0.5\n"
    "lr 1 0.5\n"
    "lr 2 0.5\n"
    "weights 5 min=-2.0 max=3.0 num=4.0 sum=2.0 sum_squares=13.5 filled=[1.0, 2.0, 1.0]\n";

TEST(TensorBoard, Crc32cHasThePublishedValues) {
  EXPECT_EQ(crc32c("123456789"), 0xE3069283u);
  EXPECT_EQ(crc32c(std::string(32, '\0')), 0x8A9136AAu);
  EXPECT_EQ(crc32c(""), 0u);
}

TEST(TensorBoard, AnIndependentReaderSeesTheSame) {
  const TemporaryFolder directory;
  write_resumed_run(directory.path());
  const test::ScriptResult result = test::run_script("read_events.py", directory.path());
  if (result.exit_status == test::kSkipped) GTEST_SKIP() << result.output;
  EXPECT_EQ(result.exit_status, 0);
  EXPECT_EQ(result.output, std::string("file 0: version 1 start 0 wall 1000.25..1004.25\n"
                                       "file 1: version 1 start 1 wall 2000.0..2000.0\n"
                                       "file 2: version 1 start 1 wall 3000.0..3002.0\n") +
                               kAccumulated);
}

TEST(TensorBoard, TensorBoardSeesTheSame) {
  const TemporaryFolder directory;
  write_resumed_run(directory.path());
  const test::ScriptResult result = test::run_script("read_events_with_tensorboard.py", directory.path());
  if (result.exit_status == test::kSkipped) GTEST_SKIP() << result.output;
  EXPECT_EQ(result.exit_status, 0);
  EXPECT_EQ(result.output, kAccumulated);
}

TEST(TensorBoard, FilesSortInTheOrderOfTheirWriters) {
  const TemporaryFolder directory;
  test::write_file(directory / "events.out.tfevents.9000000000.other", "");  // the clock went back
  std::vector<std::string> names;
  for (int i = 0; i < 12; ++i) names.push_back(EventWriter(directory.path()).path().filename().string());
  EXPECT_TRUE(std::is_sorted(names.begin(), names.end()));
  EXPECT_GT(names[0], "events.out.tfevents.9000000000");
  EXPECT_EQ(test::files_in(directory.path()), 13);
  EXPECT_NE(test::error_of([&] { EventWriter(directory / "none"); }).find("No such file"), std::string::npos);
}

TEST(TensorBoard, HistogramsCountEveryFiniteValueOnce) {
  const std::vector<float> values = {0, -0.0f, 1e-20f, -1e-20f, 1, 1, -5e5f, 3e38f, -3e38f, NAN, INFINITY};
  const Histogram histogram(values);
  EXPECT_EQ(histogram.not_finite, 2);
  EXPECT_EQ(histogram.count, 9);
  EXPECT_EQ(std::accumulate(histogram.bucket_counts.begin(), histogram.bucket_counts.end(), 0.0), 9);
  ASSERT_EQ(histogram.bucket_ends.size(), histogram.bucket_counts.size());
  EXPECT_TRUE(std::is_sorted(histogram.bucket_ends.begin(), histogram.bucket_ends.end()));
  EXPECT_GE(histogram.bucket_ends.back(), histogram.max);
  for (std::size_t i = 1; i < histogram.bucket_ends.size(); ++i) {
    const double inside = static_cast<double>(std::count_if(values.begin(), values.end(), [&](float v) {
      return v > histogram.bucket_ends[i - 1] && v <= histogram.bucket_ends[i];
    }));
    ASSERT_EQ(histogram.bucket_counts[i], inside) << histogram.bucket_ends[i];
  }
  EXPECT_EQ(Histogram({}).count, 0);
}

}  // namespace
}  // namespace norma
