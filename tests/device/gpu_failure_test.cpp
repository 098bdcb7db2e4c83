// Every error of a GPU says what was being done and what helps; no GPU is needed for that.
#include "device/gpu_failure.h"

#include <gtest/gtest.h>

#include <set>

namespace norma {
namespace {

TEST(GpuFailure, UsualOnesSayWhatHelps) {
  EXPECT_EQ(gpu_failure(35, "opening the GPU", "cudaErrorInsufficientDriver", "..."),
            "opening the GPU: the NVIDIA driver is older than this program needs; update it, or use --device=cpu");
  EXPECT_EQ(gpu_failure(100, "opening the GPU", "", ""),
            "opening the GPU: there is no NVIDIA GPU here; use --device=cpu");
  EXPECT_EQ(gpu_failure(2, "reserving 3 GiB", "", ""), "reserving 3 GiB: the GPU is out of memory");
  EXPECT_NE(gpu_failure(46, "opening the GPU", "", "").find("in use by another process"), std::string::npos);
  EXPECT_EQ(gpu_failure(1, "copying", "cudaErrorInvalidValue", "invalid argument"),
            "copying: CUDA reports cudaErrorInvalidValue (invalid argument)");
}

TEST(GpuFailure, ALostCardSaysThatTheRunGoesOn) {
  for (const int code : {214, 702, 719, 999}) {
    EXPECT_TRUE(is_lost_gpu(code));
    const std::string said = gpu_failure(code, "running a step", "cudaErrorSomething", "some words");
    EXPECT_EQ(said.find("running a step: the GPU stopped working (cudaErrorSomething: some words)"), 0u) << said;
    EXPECT_NE(said.find("the same command goes on from the last checkpoint"), std::string::npos) << said;
  }
  for (const int code : {0, 1, 2, 35, 46, 100, 700}) EXPECT_FALSE(is_lost_gpu(code)) << code;
}

}  // namespace
}  // namespace norma
