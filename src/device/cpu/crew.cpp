#include "device/cpu/crew.h"

#include <algorithm>

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
      phase.run_range(call, begin, end);
    });
  }
}

// In the order of the plan: what a kernel wrote is still in the cache when the next one reads it.
void Crew::run_alone(Watching watching, std::byte* member, int thread) {
  for (const Step& step : plan_->steps()) {
    if (step.only_watched && watching == Watching::no) continue;
    const Call call = make_call(step, member, scratch(thread));
    for (const Phase& phase : phases_of(step)) phase.run_range(call, 0, phase.tiles);
  }
}

void Crew::run_shared(const Programme& programme, std::byte* member, const Shift& shift, int thread) {
  for (std::size_t index = 0; index < programme.stretches.size(); ++index) {
    if (index > 0) shift.group->barrier.wait(shift.rank, team_->patience(thread));
    const Stretch& stretch = programme.stretches[index];
    const int open = shift.group->handout.open(shift.rank);
    if (!stretch.free) {
      const Share& share = stretch.shares[static_cast<std::size_t>(shift.rank)];
      for (std::size_t at = share.first; at < share.end; ++at) {
        const Piece& piece = programme.workers[static_cast<std::size_t>(shift.rank)][at];
        run_piece(piece, piece.begin, piece.end, member, thread);
      }
      continue;
    }
    for (int other = 0; other < shift.workers; ++other) {
      const int owner = (shift.rank + other) % shift.workers;
      const Share& share = stretch.shares[static_cast<std::size_t>(owner)];
      const Piece* piece = programme.workers[static_cast<std::size_t>(owner)].data() + share.first;
      std::int64_t before = 0;  // tiles of the pieces before
      for (Handout::Range range; (range = shift.group->handout.take(owner, open, share.tiles, other == 0)).count > 0;) {
        while (range.count > 0) {
          for (; range.first - before >= piece->end - piece->begin; ++piece) before += piece->end - piece->begin;
          const std::int64_t begin = piece->begin + range.first - before;
          const std::int64_t count = std::min(range.count, piece->end - begin);
          run_piece(*piece, begin, begin + count, member, thread);
          range = {range.first + count, range.count - count};
        }
      }
    }
  }
}

void Crew::run_piece(const Piece& piece, std::int64_t begin, std::int64_t end, std::byte* member, int thread) {
  const Step& step = plan_->steps()[static_cast<std::size_t>(piece.step)];
  const Call call = make_call(step, member, scratch(thread));
  phases_of(step)[static_cast<std::size_t>(piece.phase)].run_range(call, begin, end);
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
