#include "device/cpu/crew.h"

#include "norma/device/cpu/backend.h"

namespace norma {
namespace {

Call make_call(const Step& step, std::byte* member, std::byte* worker_scratch) {
  return {.base = member,
          .offsets = step.offsets.data(),
          .inputs = step.inputs,
          .scratch = member + step.scratch,
          .worker_scratch = worker_scratch};
}

}  // namespace

Crew::Crew(std::shared_ptr<const Plan> plan, int threads)
    : plan_(std::move(plan)),
      team_(std::make_unique<Team>(threads)),
      scratch_stride_(worker_bytes(*plan_) + 2 * kArenaAlignment),
      scratch_(scratch_stride_ * threads) {}

void Crew::use_threads(int threads) {
  if (threads == this->threads()) return;
  if (threads > this->threads()) scratch_ = Arena(scratch_stride_ * threads);
  arrangements_.clear();
  team_.reset();  // first the old threads go: the new ones may need their place
  team_ = std::make_unique<Team>(threads);
}

void Crew::run(std::span<std::byte* const> members, Watching watching) {
  if (members.empty()) return;
  const Arrangement& arranged = arrangement(static_cast<int>(members.size()));
  for (const auto& shifts : arranged.workers) {
    for (const Shift& shift : shifts) {
      if (shift.workers > 1) programme(shift.workers, watching);  // made here, where one thread is at work
    }
  }
  team_->run([&](int thread) {
    for (const Shift& shift : arranged.workers[static_cast<std::size_t>(thread)]) {
      std::byte* const member = members[static_cast<std::size_t>(shift.member)];
      if (shift.workers == 1) {
        run_alone(watching, member, thread);
      } else {
        run_shared(programmes_.at({shift.workers, watching}), member, shift, thread);
      }
    }
  });
}

void Crew::run_step(const Step& step, std::byte* member) {
  for (const Phase& phase : phases_of(step)) {
    team_->run([&](int thread) {
      const Call call = make_call(step, member, scratch(thread));
      const std::int64_t begin = phase.tiles * thread / threads(), end = phase.tiles * (thread + 1) / threads();
      for (std::int64_t tile = begin; tile < end; ++tile) phase.run(call, tile);
    });
  }
}

// In the order of the plan: what a kernel wrote is still in the cache when the next one reads it.
void Crew::run_alone(Watching watching, std::byte* member, int thread) {
  for (const Step& step : plan_->steps()) {
    if (step.only_watched && watching == Watching::no) continue;
    const Call call = make_call(step, member, scratch(thread));
    for (const Phase& phase : phases_of(step)) {
      for (std::int64_t tile = 0; tile < phase.tiles; ++tile) phase.run(call, tile);
    }
  }
}

void Crew::run_shared(const Programme& programme, std::byte* member, const Shift& shift, int thread) {
  for (const Piece& piece : programme.workers[static_cast<std::size_t>(shift.rank)]) {
    if (piece.step < 0) {
      shift.barrier->wait(shift.rank, team_->patience(thread));
      continue;
    }
    const Step& step = plan_->steps()[static_cast<std::size_t>(piece.step)];
    const Call call = make_call(step, member, scratch(thread));
    const Phase& phase = phases_of(step)[static_cast<std::size_t>(piece.phase)];
    for (std::int64_t tile = piece.begin; tile < piece.end; ++tile) phase.run(call, tile);
  }
}

const std::vector<Level>& Crew::levels(Watching watching) {
  std::vector<Level>& levels = levels_[watching == Watching::yes ? 1 : 0];
  if (levels.empty()) levels = dependency_levels(*plan_, watching);
  return levels;
}

const Programme& Crew::programme(int workers, Watching watching) {
  const auto [entry, fresh] = programmes_.try_emplace({workers, watching});
  if (fresh) entry->second = make_programme(levels(watching), workers);
  return entry->second;
}

const Arrangement& Crew::arrangement(int members) {
  const auto found = arrangements_.find(members);
  if (found != arrangements_.end()) return found->second;
  const auto time = [&](int workers) { return programme(workers, Watching::no).nanoseconds; };
  return arrangements_.emplace(members, arrange(members, threads(), time)).first->second;
}

}  // namespace norma
