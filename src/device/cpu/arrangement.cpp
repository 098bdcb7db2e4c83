#include "device/cpu/arrangement.h"

#include <algorithm>
#include <limits>
#include <map>

namespace norma {
namespace {

// The best number of threads for one member out of at most so many: a small model is slower on many.
class GroupSizes {
 public:
  explicit GroupSizes(const std::function<double(int)>& time) : time_(time) {}

  int best(int most) {
    int best = most;
    for (int size = most; size > 1; size /= 2) {
      if (time(size) < time(best)) best = size;
    }
    return time(1) < time(best) ? 1 : best;
  }
  double time(int size) {
    const auto [entry, fresh] = known_.emplace(size, 0.0);
    if (fresh) entry->second = time_(size);
    return entry->second;
  }

 private:
  const std::function<double(int)>& time_;
  std::map<int, double> known_;
};

std::vector<int> rounds_of(int members, int threads, GroupSizes& sizes) {
  // As long as every thread can have a member, nothing is gained by sharing one.
  std::vector<int> rounds(static_cast<std::size_t>(std::max(0, members / threads - 1)), threads);
  const int left = members - static_cast<int>(rounds.size()) * threads;
  std::vector<double> least(static_cast<std::size_t>(left) + 1, std::numeric_limits<double>::infinity());
  std::vector<int> choice(least.size(), 0);
  least[0] = 0;
  for (int count = 1; count <= left; ++count) {
    for (int round = std::min(count, threads); round >= 1; --round) {
      const double total = least[static_cast<std::size_t>(count - round)] + sizes.time(sizes.best(threads / round));
      if (total < least[static_cast<std::size_t>(count)]) {
        least[static_cast<std::size_t>(count)] = total;
        choice[static_cast<std::size_t>(count)] = round;
      }
    }
  }
  for (int count = left; count > 0; count -= choice[static_cast<std::size_t>(count)])
    rounds.push_back(choice[static_cast<std::size_t>(count)]);
  std::sort(rounds.rbegin(), rounds.rend());
  return rounds;
}

}  // namespace

std::vector<int> choose_rounds(int members, int threads, const std::function<double(int)>& time) {
  GroupSizes sizes(time);
  return rounds_of(members, threads, sizes);
}

Arrangement arrange(int members, int threads, const std::function<double(int)>& time) {
  GroupSizes sizes(time);
  Arrangement arrangement;
  arrangement.workers.resize(static_cast<std::size_t>(threads));
  int member = 0;
  for (const int round : rounds_of(members, threads, sizes)) {
    for (int group = 0; group < round; ++group, ++member) {
      const int first = threads * group / round, end = threads * (group + 1) / round;
      const int workers = sizes.best(end - first);
      Group* shared = nullptr;
      if (workers > 1) shared = arrangement.groups.emplace_back(std::make_unique<Group>(workers)).get();
      for (int rank = 0; rank < workers; ++rank)
        arrangement.workers[static_cast<std::size_t>(first + rank)].push_back({member, rank, workers, shared});
    }
  }
  return arrangement;
}

}  // namespace norma
