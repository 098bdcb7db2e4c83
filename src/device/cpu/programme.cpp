#include "device/cpu/programme.h"

#include <algorithm>

namespace norma {
namespace {

// One level divided among the workers.
struct Division {
  explicit Division(int workers)
      : pieces(static_cast<std::size_t>(workers)), nanoseconds(static_cast<std::size_t>(workers), 0) {}

  void give(int worker, const Task& task, std::int64_t begin, std::int64_t end) {
    if (begin == end) return;
    pieces[static_cast<std::size_t>(worker)].push_back({task.step, task.phase, begin, end});
    nanoseconds[static_cast<std::size_t>(worker)] += static_cast<double>(end - begin) * task.tile_ns;
  }
  double longest() const { return *std::max_element(nanoseconds.begin(), nanoseconds.end()); }
  // The only worker with anything to do, or -1.
  int only_worker() const {
    const auto busy = [](const std::vector<Piece>& own) { return !own.empty(); };
    if (std::count_if(pieces.begin(), pieces.end(), busy) != 1) return -1;
    return static_cast<int>(std::find_if(pieces.begin(), pieces.end(), busy) - pieces.begin());
  }

  std::vector<std::vector<Piece>> pieces;
  std::vector<double> nanoseconds;
};

// Every phase is shared by all: neighbouring rows stay with one worker from phase to phase, and so in its cache.
Division divide_by_rows(const Level& level, int workers) {
  Division division(workers);
  for (const Task& task : level) {
    for (int worker = 0; worker < workers; ++worker)
      division.give(worker, task, task.tiles * worker / workers, task.tiles * (worker + 1) / workers);
  }
  return division;
}

// Whole phases side by side: each worker takes tiles, the longest first, until it has its share of what is left.
Division divide_by_work(const Level& level, int workers) {
  Level tasks = level;
  std::stable_sort(tasks.begin(), tasks.end(), [](const Task& a, const Task& b) { return a.tile_ns > b.tile_ns; });
  double left = 0;
  for (const Task& task : tasks) left += static_cast<double>(task.tiles) * task.tile_ns;
  Division division(workers);
  int worker = 0;
  double mine = 0, share = left / workers;
  for (const Task& task : tasks) {
    std::int64_t begin = 0;
    for (std::int64_t tile = 0; tile < task.tiles; ++tile) {
      if (mine > 0 && mine + task.tile_ns / 2 > share && worker + 1 < workers) {
        division.give(worker, task, begin, tile);
        begin = tile;
        left -= mine;
        mine = 0;
        share = left / (workers - ++worker);
      }
      mine += task.tile_ns;
    }
    division.give(worker, task, begin, task.tiles);
  }
  return division;
}

Division divide(const Level& level, int workers) {
  Division rows = divide_by_rows(level, workers);
  if (level.size() == 1) return rows;
  Division work = divide_by_work(level, workers);
  return work.longest() < 0.9 * rows.longest() ? work : rows;
}

double barrier_nanoseconds(int workers) { return workers == 1 ? 0 : 300.0 + 50.0 * workers; }

// What lies between the barriers of the workers' lists. Levels that only one worker works on follow each other without
// a barrier, and so in their order.
std::vector<Stretch> stretches_of(const std::vector<std::vector<Piece>>& workers, const std::vector<bool>& one_level) {
  std::vector<Stretch> stretches(one_level.size());
  for (const std::vector<Piece>& own : workers) {
    std::size_t at = 0;
    for (std::size_t index = 0; index < stretches.size(); ++index) {
      Share share{.first = at};
      for (; at < own.size() && own[at].step >= 0; ++at) share.tiles += own[at].end - own[at].begin;
      share.end = at++;
      stretches[index].shares.push_back(share);
      if (share.tiles > 1 && one_level[index]) stretches[index].free = true;
    }
  }
  return stretches;
}

}  // namespace

Programme make_programme(std::span<const Level> levels, int workers) {
  Programme programme;
  programme.workers.resize(static_cast<std::size_t>(workers));
  int only = 0;                 // who alone has worked since the last barrier; -1 = several
  std::vector<bool> one_level;  // by stretch
  for (std::size_t index = 0; index < levels.size(); ++index) {
    const Division division = divide(levels[index], workers);
    const int now = division.only_worker();
    if (index == 0) {
      one_level.push_back(true);
    } else if (only < 0 || only != now) {
      for (auto& own : programme.workers) own.push_back({});
      programme.nanoseconds += barrier_nanoseconds(workers);
      one_level.push_back(true);
    } else {
      one_level.back() = false;
    }
    only = now;
    for (std::size_t worker = 0; worker < programme.workers.size(); ++worker) {
      auto& own = programme.workers[worker];
      own.insert(own.end(), division.pieces[worker].begin(), division.pieces[worker].end());
    }
    programme.nanoseconds += division.longest();
  }
  programme.stretches = stretches_of(programme.workers, one_level);
  return programme;
}

}  // namespace norma
