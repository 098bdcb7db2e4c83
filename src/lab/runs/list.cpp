#include "norma/lab/run_list.h"

#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "lab/directory_kind.h"
#include "lab/limits.h"
#include "norma/core/error.h"
#include "norma/lab/results.h"
#include "norma/store/run_directory.h"
#include "norma/train/config.h"
#include "norma/train/result.h"
#include "norma/train/run_schemes.h"

namespace norma {
namespace {

namespace fs = std::filesystem;

constexpr int kDeepestFolder = 6;

std::int64_t time_of(const fs::path& path) {
  struct stat status {};
  return stat(path.c_str(), &status) == 0 ? status.st_mtim.tv_sec : 0;
}

// "stable", "diverged, step 17", or of several members "3 stable, 1 diverged".
std::string outcome_of_all(const RunResult& result) {
  if (result.members.size() == 1) {
    const MemberResult& one = result.members[0];
    const std::string name(name_of(one.outcome));
    return one.outcome == Outcome::diverged ? fmt::format("{}, step {}", name, one.facts.diverged_at_step) : name;
  }
  std::map<std::string_view, int> counts;
  for (const MemberResult& member : result.members) ++counts[name_of(member.outcome)];
  std::string words;
  for (const auto& [name, count] : counts) words += fmt::format("{}{} {}", words.empty() ? "" : ", ", count, name);
  return words;
}

double best_loss_of(const RunResult& result) {
  double best = kNaN;
  for (const MemberResult& member : result.members) {
    if (member.outcome == Outcome::diverged) continue;
    const double loss = member.evaluation_loss.value_or(member.final_loss);
    if (std::isfinite(loss) && !(best <= loss)) best = loss;
  }
  return best;
}

ListedRun listed_run(const fs::path& path, const SchemeLibrary& schemes) {
  const RunView view(path);
  const RunConfig config = parse_config(view.config(), view.config_path().string(), library_of_run(path, schemes));
  ListedRun run{.path = path.string(),
                .outcome = "not finished",
                .loss = kNaN,
                .scheme = config.model.scheme.asked(),
                .task = config.data.task,
                .layers = config.model.layers,
                .width = config.model.width,
                .steps = config.train.steps,
                .members = std::ssize(member_configs(config)),
                .lr = config.train.lr,
                .written = std::max(time_of(view.config_path()), time_of(view.metrics_path()))};
  if (view.is_done()) {
    const RunResult result = read_result(view.result(), fmt::format("'{}'", view.result_path().string()));
    run.outcome = outcome_of_all(result);
    run.loss = best_loss_of(result);
    run.parameters = result.parameters;
    run.written = time_of(view.result_path());
  } else if (const std::vector<std::int64_t> steps = view.checkpoint_steps(); !steps.empty()) {
    run.outcome = fmt::format("not finished: step {}", steps.back());
  }
  return run;
}

// A sweep or a study by its results.
ListedRun listed_results(const fs::path& path, ListedKind kind) {
  ListedRun run{.path = path.string(), .kind = kind, .outcome = "not finished", .loss = kNaN};
  const fs::path file = path / "results.json";
  run.written = time_of(path);
  if (kind_of(file) != PathKind::file) return run;
  run.written = time_of(file);
  const Results results = read_results(Folder(path).read("results.json"), fmt::format("'{}'", file.string()));
  run.task = results.task ? results.task->name : "";
  run.members = std::ssize(results.runs);
  run.outcome = fmt::format("{} runs", results.runs.size());
  for (const SchemeSummary& scheme : results.schemes) run.scheme += (run.scheme.empty() ? "" : ", ") + scheme.name;
  for (const RunOutcome& one : results.runs) {
    const double loss = one.loss();
    if (std::isfinite(loss) && !(run.loss <= loss)) run.loss = loss;
  }
  return run;
}

class Lister {
 public:
  Lister(fs::path top, const SchemeLibrary& schemes) : top_(std::move(top)), schemes_(schemes) {}

  RunList list() {
    // What is asked for may be a run, or a sweep whose runs are asked for.
    if (RunView(top_).exists()) {
      add(top_, ListedKind::run);
    } else {
      look_into(Folder(top_), top_, 0);
    }
    return std::move(found_);
  }

 private:
  void add(const fs::path& path, ListedKind kind) {
    try {
      ListedRun run = kind == ListedKind::run ? listed_run(path, schemes_) : listed_results(path, kind);
      run.path = name_below(path);
      found_.runs.push_back(std::move(run));
    } catch (const Error& error) {
      found_.damaged.push_back({name_below(path), error.what()});
    }
  }

  std::string name_below(const fs::path& path) const {
    const std::string name = path.lexically_relative(top_).string();
    return name.empty() || name == "." ? path.string() : name;
  }

  // True when there was anything of norma's.
  bool look_into(const Folder& folder, const fs::path& path, int depth) {
    bool any = false;
    for (const std::string& name : folder.names()) {
      if (!folder.has_folder(name) || name.starts_with(".")) continue;
      const fs::path inside = path / name;
      try {
        any = look_at(inside, depth) || any;
      } catch (const Error& error) {
        found_.damaged.push_back({name_below(inside), error.what()});
      }
    }
    return any;
  }

  bool look_at(const fs::path& path, int depth) {
    if (RunView(path).exists()) {
      add(path, ListedKind::run);
    } else if (holds_sweep(path)) {
      add(path, ListedKind::sweep);
    } else if (holds_study(path)) {
      add(path, ListedKind::study);
    } else {
      const bool any = depth < kDeepestFolder && look_into(Folder(path), path, depth + 1);
      if (!any && depth == 0) found_.foreign.push_back(name_below(path));
      return any;
    }
    return true;
  }

  fs::path top_;
  const SchemeLibrary& schemes_;
  RunList found_;
};

}  // namespace

RunList list_runs(const fs::path& folder, const SchemeLibrary& schemes) {
  const PathKind kind = kind_of(folder);
  if (kind == PathKind::nothing) fail("there is no folder '{}'", folder.string());
  if (kind != PathKind::folder) fail("'{}' is a file; expected a folder of runs", folder.string());
  return Lister(folder, schemes).list();
}

void sort_runs(std::vector<ListedRun>& runs, RunOrder order) {
  const auto before = [&](const ListedRun& a, const ListedRun& b) {
    switch (order) {
      case RunOrder::loss: return std::isfinite(a.loss) && (!std::isfinite(b.loss) || a.loss < b.loss);
      case RunOrder::outcome: return a.outcome < b.outcome;
      case RunOrder::scheme: return a.scheme < b.scheme;
      case RunOrder::size:
        return std::pair(a.parameters, a.layers * a.width * a.width) <
               std::pair(b.parameters, b.layers * b.width * b.width);
      case RunOrder::steps: return a.steps < b.steps;
      case RunOrder::time: return a.written > b.written;
      case RunOrder::name: break;
    }
    return a.path < b.path;
  };
  std::stable_sort(runs.begin(), runs.end(), [](const ListedRun& a, const ListedRun& b) { return a.path < b.path; });
  std::stable_sort(runs.begin(), runs.end(), before);
}

}  // namespace norma
