// What a card can do, and what each kernel of a plan makes of it.
#include <cuda_runtime_api.h>

#include <fmt/format.h>

#include <functional>
#include <map>
#include <string>

#include "device/cuda/copy.h"
#include "device/cuda/cuda_session.h"
#include "norma/core/error.h"
#include "norma/device/cuda/session.h"

namespace norma {
namespace {

cuda::OwnedEvent timing_event() {
  cudaEvent_t event = nullptr;
  cuda::check(cudaEventCreate(&event), "making an event");
  return cuda::OwnedEvent(event);
}

// Of one call, from many recorded ones in a row: without the time that the host takes to start them.
double seconds_of_call(cudaStream_t stream, int repeats, const std::function<void()>& call) {
  cuda::check(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal), "recording");
  for (int i = 0; i < repeats; ++i) call();
  cudaGraph_t graph = nullptr;
  cuda::check(cudaStreamEndCapture(stream, &graph), "recording");
  const cuda::OwnedGraph recorded(graph);
  cudaGraphExec_t made = nullptr;
  cuda::check(cudaGraphInstantiate(&made, recorded.get(), 0), "preparing a recording");
  const cuda::OwnedExecutable replay(made);
  const cuda::OwnedEvent begin = timing_event(), end = timing_event();
  double best = 0;
  for (int round = 0; round < 3; ++round) {
    cuda::check(cudaEventRecord(begin.get(), stream), "timing");
    cuda::check(cudaGraphLaunch(replay.get(), stream), "timing");
    cuda::check(cudaEventRecord(end.get(), stream), "timing");
    cuda::check(cudaEventSynchronize(end.get()), "timing");
    float milliseconds = 0;
    cuda::check(cudaEventElapsedTime(&milliseconds, begin.get(), end.get()), "timing");
    const double seconds = milliseconds * 1e-3 / repeats;
    if (round == 0 || seconds < best) best = seconds;
  }
  return best;
}

}  // namespace

double CudaSession::seconds_of(std::size_t step, int repeats) {
  launch(step, members_memory_, stream_.get(), Watching::no);  // loads what it needs
  return seconds_of_call(stream_.get(), repeats, [&] { launch(step, members_memory_, stream_.get(), Watching::no); });
}

std::vector<double> seconds_by_step(Session& session, int repeats) {
  auto* const gpu = dynamic_cast<CudaSession*>(&session);
  if (gpu == nullptr) throw InternalError("internal error: not a session on a GPU");
  // Layers are alike: of many steps that are, the first few speak for the others.
  struct Alike {
    double seconds = 0;
    int measured = 0;
  };
  constexpr int kMeasured = 24;
  std::map<std::string, Alike> by_kind;
  std::vector<double> seconds;
  const Plan& plan = gpu->plan();
  for (std::size_t step = 0; step < plan.steps().size(); ++step) {
    const Node& node = plan.nodes()[static_cast<std::size_t>(plan.steps()[step].node)];
    std::string kind = fmt::format("{} {}", node.op->name(), node.op->attributes());
    for (const auto* ids : {&node.inputs, &node.outputs}) {
      for (const int id : *ids) kind += plan.values()[static_cast<std::size_t>(id)].type.str();
    }
    Alike& alike = by_kind[kind];
    if (alike.measured == kMeasured) {
      seconds.push_back(alike.seconds / kMeasured);
      continue;
    }
    seconds.push_back(gpu->seconds_of(step, repeats));
    alike.seconds += seconds.back();
    ++alike.measured;
  }
  return seconds;
}

double card_copy_rate(std::int64_t bytes) {
  const auto size = static_cast<std::size_t>(bytes);
  const cuda::DeviceBytes from(size), to(size);
  const cuda::OwnedStream stream = cuda::make_stream();
  cuda::check(cudaMemsetAsync(from.data(), 1, size, stream.get()), "measuring a copy");
  return 2 * static_cast<double>(bytes) / seconds_of_call(stream.get(), 10, [&] {
           cuda::check(cuda::copy(to.data(), from.data(), bytes, stream.get()), "measuring a copy");
         });
}

double card_product_rate(std::int64_t size, DType dtype, bool tf32) {
  const std::int64_t bytes = size * size * static_cast<std::int64_t>(size_of(dtype));
  const cuda::DeviceBytes memory(static_cast<std::size_t>(3 * bytes));
  std::vector<float> noise(static_cast<std::size_t>(bytes / 2));  // of both factors, as whatever type
  std::uint32_t state = 1;
  for (float& value : noise) {
    state = state * 1664525u + 1013904223u;
    value = static_cast<float>(state >> 8) * 0x1p-24f - 0.5f;
  }
  const cuda::OwnedStream stream = cuda::make_stream();
  cuda::copy_to_device(memory, std::as_bytes(std::span(noise)), stream.get());
  cuda::Products products;
  const cuda::Product product{.m = size,
                              .n = size,
                              .k = size,
                              .a = dtype,
                              .b = dtype,
                              .c = dtype,
                              .math = tf32 ? cuda::Math::tf32 : cuda::Math::f32};
  const auto run = [&] {
    cuda::check(products.run(product, {.base = memory.data(), .stride = 3 * bytes},
                             {.a = 0, .b = bytes, .c = 2 * bytes}, stream.get()),
                "measuring a product");
  };
  run();
  const double cube = static_cast<double>(size) * static_cast<double>(size) * static_cast<double>(size);
  return 2 * cube / seconds_of_call(stream.get(), 5, run);
}

}  // namespace norma
