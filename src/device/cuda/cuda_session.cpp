#include "device/cuda/cuda_session.h"

#include <algorithm>
#include <cstring>
#include <mutex>

#include "device/cuda/finite.h"
#include "device/cuda/one_at_a_time.h"
#include "device/memory_check.h"
#include "norma/core/error.h"
#include "norma/core/machine.h"
#include "norma/device/cuda/device.h"
#include "norma/device/cuda/session.h"

namespace norma {
namespace {

constexpr std::int64_t kAlignment = 256;

std::int64_t aligned(std::int64_t bytes) { return (bytes + kAlignment - 1) / kAlignment * kAlignment; }

const cuda::Program& program_of(const Step& step) {
  const auto* program = dynamic_cast<const CudaProgram*>(step.kernel.get());
  if (program == nullptr) throw InternalError("internal error: the plan was made for another device than a GPU");
  return program->program;
}

// A recording costs as much as several runs: a step of training is recorded at once, a forward pass that may be run
// only over a few batches not before it has shown that it is run often.
constexpr int kRunsWorthRecording = 12;
bool trains(const Plan& plan) { return !plan.slot_names(Role::state).empty(); }

cuda::OwnedStream checked_stream() {
  if (const cuda::Presence& gpu = cuda::presence(); !gpu.usable)
    fail("no GPU can be used: {}; use --device=cpu", gpu.why_not);
  return cuda::make_stream();
}

cuda::DeviceBytes checked_arena(const Plan& plan, int members, std::int64_t stride) {
  check_memory(plan, members, stride, cuda::memory().free_bytes, "the GPU has");
  return cuda::DeviceBytes(static_cast<std::size_t>(stride * members));
}

}  // namespace

CudaSession::CudaSession(std::shared_ptr<const Plan> plan, Options options)
    : Session(std::move(plan), options.members),
      threads_(options.threads == 0 ? machine().cores : options.threads),
      math_(options.tf32 ? cuda::Math::tf32 : cuda::Math::f32),
      stream_(checked_stream()),
      arena_(checked_arena(this->plan(), options.members, aligned(this->plan().member_bytes()))),
      members_memory_{arena_.data(), aligned(this->plan().member_bytes()), options.members, nullptr},
      staging_(this->plan(), members_memory_),
      read_back_(this->plan(), members_memory_, stream_.get()),
      found_(sizeof(std::int64_t)),
      runs_before_recording_(trains(this->plan()) ? 1 : kRunsWorthRecording) {
  members_memory_.active = staging_.active();
  // What nobody writes before it is read is seen: it is NaN. Only what lives on from step to step starts at zero.
  const auto stride = static_cast<std::size_t>(members_memory_.stride);
  const auto count = static_cast<std::size_t>(members_memory_.count);
  cuda::check(cudaMemsetAsync(arena_.data(), 0xff, stride * count, stream_.get()), "clearing the GPU's memory");
  cuda::check(cudaMemset2DAsync(arena_.data(), stride, 0, static_cast<std::size_t>(this->plan().persistent_bytes()),
                                count, stream_.get()),
              "clearing the GPU's memory");
  write_constants();
  make_lanes();
  make_tables();
  wait();
}

CudaSession::~CudaSession() {
  ending_ = std::unique_lock(cuda::one_at_a_time());
  cudaStreamSynchronize(stream_.get());
}

void CudaSession::wait() { cuda::check(cudaStreamSynchronize(stream_.get()), "waiting for the GPU"); }

void CudaSession::write_constants() {
  for (const Value& value : plan().values()) {
    if (value.role != Role::constant || value.data->empty()) continue;
    const std::int64_t offset = plan().slot(value.name).offset;
    for (int member = 0; member < members(); ++member) put(member, offset, *value.data);
  }
}

void CudaSession::make_lanes() {
  int lanes = 1;
  done_.resize(plan().steps().size());
  for (const Step& step : plan().steps()) {
    lanes = std::max(lanes, step.kernel->lane + 1);
    for (const int other : step.waits_for) {
      cuda::OwnedEvent& event = done_[static_cast<std::size_t>(other)];
      if (!event) event = cuda::make_event();
    }
  }
  lanes_.resize(static_cast<std::size_t>(lanes));
  begun_ = cuda::make_event();
  for (std::size_t lane = 0; lane < lanes_.size(); ++lane) {
    if (lane > 0) lanes_[lane].stream = cuda::make_stream();
    ended_.push_back(cuda::make_event());
  }
}

cudaStream_t CudaSession::stream_of(int lane) const {
  return lane == 0 ? stream_.get() : lanes_[static_cast<std::size_t>(lane)].stream.get();
}

void CudaSession::make_tables() {
  std::vector<std::byte> all;
  for (std::size_t index = 0; index < plan().steps().size(); ++index) {
    const cuda::Program& program = program_of(plan().steps()[index]);
    table_offsets_.push_back(-1);
    if (!program.table) continue;
    const std::vector<std::byte> table = program.table(call_of(index, members_memory_, stream_.get(), Watching::yes));
    table_offsets_.back() = static_cast<std::int64_t>(all.size());
    all.insert(all.end(), table.begin(), table.end());
    all.resize(static_cast<std::size_t>(aligned(static_cast<std::int64_t>(all.size()))));
  }
  tables_ = cuda::DeviceBytes(all.size());
  cuda::copy_to_device(tables_, all, stream_.get());
}

cuda::Call CudaSession::call_of(std::size_t index, const cuda::Members& members, cudaStream_t stream,
                                Watching watching) {
  const Step& step = plan().steps()[index];
  const std::int64_t table = index < table_offsets_.size() ? table_offsets_[index] : -1;
  const bool spares = watching == Watching::no && !step.unwatched_offsets.empty();
  return {.members = members,
          .offsets = spares ? step.unwatched_offsets.data() : step.offsets.data(),
          .inputs = step.inputs,
          .scratch = step.scratch,
          .table = table < 0 ? nullptr : tables_.data() + table,
          .products = lanes_[static_cast<std::size_t>(step.kernel->lane)].products.get(),
          .math = math_,
          .stream = stream};
}

void CudaSession::launch(std::size_t index, const cuda::Members& members, cudaStream_t stream, Watching watching) {
  const int error = program_of(plan().steps()[index]).launch(call_of(index, members, stream, watching));
  if (error != 0) cuda::check(error, "starting " + plan().node_name(plan().steps()[index].node));
}

// Whether members were taken from the last to the first. Matrix products of the library take them in order.
bool CudaSession::launch_from_either_end(std::size_t index, bool from_the_end, Watching watching) {
  const cuda::Products& library = *lanes_.front().products;
  const std::int64_t before = library.runs();
  launch(index, from_the_end ? cuda::turned(members_memory_) : members_memory_, stream_.get(), watching);
  return from_the_end && library.runs() == before;
}

// The lanes part at the beginning and are one again at the end. Each step of the main lane begins with the members that
// the one before ended with: what that has written last is still in the second cache.
void CudaSession::launch_all(Watching watching) {
  bool from_the_end = false;
  cuda::check(cudaEventRecord(begun_.get(), stream_.get()), "recording an event");
  for (std::size_t lane = 1; lane < lanes_.size(); ++lane)
    cuda::check(cudaStreamWaitEvent(stream_of(static_cast<int>(lane)), begun_.get()), "waiting for an event");
  for (std::size_t index = 0; index < plan().steps().size(); ++index) {
    const Step& step = plan().steps()[index];
    const cudaStream_t stream = stream_of(step.kernel->lane);
    for (const int other : step.waits_for)
      cuda::check(cudaStreamWaitEvent(stream, done_[static_cast<std::size_t>(other)].get()), "waiting for an event");
    if (watching == Watching::yes || !step.only_watched) {
      if (step.kernel->lane > 0 || members() == 1) {
        launch(index, members_memory_, stream, watching);
      } else {
        from_the_end = !launch_from_either_end(index, from_the_end, watching);
      }
    }
    if (done_[index]) cuda::check(cudaEventRecord(done_[index].get(), stream), "recording an event");
  }
  for (std::size_t lane = 1; lane < lanes_.size(); ++lane) {
    cuda::check(cudaEventRecord(ended_[lane].get(), stream_of(static_cast<int>(lane))), "recording an event");
    cuda::check(cudaStreamWaitEvent(stream_.get(), ended_[lane].get()), "waiting for an event");
  }
  read_back_.gather(stream_.get());
}

void CudaSession::record(Recording& recording, Watching watching) {
  const std::lock_guard lock(cuda::one_at_a_time());
  cuda::check(cudaStreamBeginCapture(stream_.get(), cudaStreamCaptureModeThreadLocal), "recording a step");
  cudaGraph_t graph = nullptr;
  try {
    launch_all(watching);
  } catch (...) {
    cudaStreamEndCapture(stream_.get(), &graph);
    const cuda::OwnedGraph unfinished(graph);
    cudaGetLastError();
    constexpr int kMostFailures = 10;
    if (++recording.failures > kMostFailures) throw;
    return;
  }
  cuda::check(cudaStreamEndCapture(stream_.get(), &graph), "recording a step");
  const cuda::OwnedGraph recorded(graph);
  cudaGraphExec_t replay = nullptr;
  cuda::check(cudaGraphInstantiate(&replay, recorded.get(), 0), "preparing a recorded step");
  recording.replay = cuda::OwnedExecutable(replay);
}

void CudaSession::enqueue(std::span<const int> active, Watching watching) {
  staging_.set_active(active);
  staging_.upload(stream_.get());
  Recording& recording = recordings_[watching == Watching::yes];
  if (recording.runs >= runs_before_recording_ && !recording.replay) record(recording, watching);
  if (recording.replay) {
    cuda::check(cudaGraphLaunch(recording.replay.get(), stream_.get()), "running a step on the GPU");
  } else {
    launch_all(watching);
    ++recording.runs;
  }
  read_back_.download(stream_.get());
}

std::optional<NonFinite> CudaSession::check(int member) {
  staging_.upload(stream_.get());
  read_back_.outdate();
  cuda::Members one = members_memory_;
  one.base += member * one.stride;
  one.count = 1;
  one.active = nullptr;
  auto* const found = reinterpret_cast<std::int64_t*>(found_.data());
  for (std::size_t index = 0; index < plan().steps().size(); ++index) {
    const Step& step = plan().steps()[index];
    if (step.only_watched) continue;  // a probe shows what others have done
    launch(index, one, stream_.get(), Watching::yes);
    const Node& node = plan().nodes()[static_cast<std::size_t>(step.node)];
    for (std::size_t out = 0; out < node.outputs.size(); ++out) {
      const std::int64_t offset = step.offsets[static_cast<std::size_t>(step.inputs) + out];
      if (offset < 0) continue;
      const Value& value = plan().values()[static_cast<std::size_t>(node.outputs[out])];
      cuda::check(cuda::find_non_finite(one.base + offset, value.type, found, stream_.get()), "looking for bad values");
      std::int64_t bad = 0;
      cuda::check(cudaMemcpyAsync(&bad, found, sizeof bad, cudaMemcpyDeviceToHost, stream_.get()), "reading");
      wait();
      if (bad == cuda::kAllFinite) continue;
      return NonFinite{member, static_cast<int>(index), value.name, bad,
                       element(member, offset, value.type.dtype, bad)};
    }
  }
  return std::nullopt;
}

void CudaSession::put(int member, std::int64_t offset, std::span<const std::byte> bytes) {
  if (bytes.empty()) return;
  if (staging_.holds(offset)) return staging_.put(member, offset, bytes);
  read_back_.outdate();
  cuda::check(cudaMemcpyAsync(arena_.data() + member * members_memory_.stride + offset, bytes.data(), bytes.size(),
                              cudaMemcpyHostToDevice, stream_.get()),
              "copying to the GPU");
  wait();  // the caller may change its bytes
}

void CudaSession::get(int member, std::int64_t offset, std::span<std::byte> bytes) {
  if (bytes.empty()) return;
  if (staging_.holds(offset)) return staging_.get(member, offset, bytes);
  if (read_back_.get(member, offset, bytes)) return;
  cuda::check(cudaMemcpyAsync(bytes.data(), arena_.data() + member * members_memory_.stride + offset, bytes.size(),
                              cudaMemcpyDeviceToHost, stream_.get()),
              "copying from the GPU");
  wait();
}

void CudaSession::get_earlier(int member, std::int64_t offset, std::span<std::byte> bytes, int runs_ago) {
  if (!read_back_.get(member, offset, bytes, runs_ago))
    throw InternalError("internal error: what an earlier run left is not kept");
}

// In order with what both sessions do: after what the other has begun, and before what it begins next.
bool CudaSession::copy_on_device(Session& from, std::span<const Copied> tensors) {
  auto* const other = dynamic_cast<CudaSession*>(&from);
  if (other == nullptr) return false;
  const auto in_staging = [&](const Copied& one) { return staging_.holds(one.to) || other->staging_.holds(one.from); };
  if (std::any_of(tensors.begin(), tensors.end(), in_staging)) return false;
  const cuda::OwnedEvent written = cuda::make_event(), taken = cuda::make_event();
  cuda::check(cudaEventRecord(written.get(), other->stream_.get()), "recording an event");
  cuda::check(cudaStreamWaitEvent(stream_.get(), written.get()), "waiting for an event");
  for (const Copied& one : tensors) {
    cuda::check(cudaMemcpy2DAsync(
                    arena_.data() + one.to, static_cast<std::size_t>(members_memory_.stride),
                    other->arena_.data() + one.from, static_cast<std::size_t>(other->members_memory_.stride), one.bytes,
                    static_cast<std::size_t>(members_memory_.count), cudaMemcpyDeviceToDevice, stream_.get()),
                "copying on the GPU");
  }
  cuda::check(cudaEventRecord(taken.get(), stream_.get()), "recording an event");
  cuda::check(cudaStreamWaitEvent(other->stream_.get(), taken.get()), "waiting for an event");
  read_back_.outdate();
  return true;
}

std::unique_ptr<Session> make_cuda_session(std::shared_ptr<const Plan> plan, Session::Options options) {
  const std::lock_guard lock(cuda::one_at_a_time());
  return std::make_unique<CudaSession>(std::move(plan), options);
}

}  // namespace norma
