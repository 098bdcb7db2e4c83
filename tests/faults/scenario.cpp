#include "scenario.h"

#include <fmt/format.h>

#include <cstdio>
#include <fstream>
#include <stdexcept>

namespace norma::faults {
namespace {

namespace fs = std::filesystem;
using Words = std::vector<std::string>;

Words with(Words words, const Words& more) {
  words.insert(words.end(), more.begin(), more.end());
  return words;
}

// As small as a run can be that still writes everything: one fault costs a few runs of these.
Words tiny(const Words& more) {
  return with({"--quiet", "--model.layers=1", "--model.width=8", "--model.heads=1", "--model.batch=1", "--model.time=8",
               "--train.threads=1", "--train.log_every=1", "--train.checkpoint_every=2", "--train.evaluate_every=2"},
              more);
}

// Few tensors, so few writes: of sweeps and studies the ways matter, not the checkpoints, which are those of a run.
Words plain(const Words& more) {
  return with({"--model.biases=false", "--model.positions=none", "--model.tied=true", "--train.optimiser=sgd",
               "--train.beta1=0"},
              more);
}

struct Recipe {
  std::string name;
  Words arguments;
};

std::vector<Recipe> recipes() {
  return {
      {"train", with({"train"}, tiny({"--train.steps=6", "--data.path=data.txt"}))},
      {"recovery", with({"train"}, tiny({"--train.steps=8", "--members.lr=[1e-3,1e6]", "--train.clip=0",
                                         "--train.schedule=constant", "--detect.recovery=roll_back",
                                         "--detect.snapshot_every=3", "--detect.window=2", "--detect.patience=1"}))},
      {"sweep", with({"sweep"}, tiny(plain({"--train.steps=4", "--sweep.members=2", "--model.scheme=[pre,post]",
                                            "--train.lr=[1e-3,1e6]", "--train.clip=0", "--data.path=data.txt"})))},
      {"halving",
       with({"sweep"}, tiny(plain({"--train.steps=4", "--sweep.members=2", "--train.lr=[1e-3,1e-2,1e-1,1]",
                                   "--train.tensorboard=false", "--sweep.halving={eta = 2, min_steps = 2}"})))},
      {"study", with({"study",
                      "--quiet",
                      "--no-inspect",
                      "--schemes",
                      "pre",
                      "post",
                      "--layers",
                      "1",
                      "--width",
                      "8",
                      "--steps",
                      "3",
                      "--lr",
                      "1e-3",
                      "--warmup",
                      "0",
                      "--seeds",
                      "1",
                      "--extra-rates",
                      "1",
                      "--budget",
                      "90steps",
                      "--train.checkpoint_every=2",
                      "--model.batch=1",
                      "--model.time=8",
                      "--model.heads=1",
                      "--train.threads=1"},
                     plain({}))},
  };
}

void write_data(const fs::path& file) {
  std::ofstream stream(file);
  for (int line = 0; line < 60; ++line)
    stream << fmt::format("line {} of a text that is read in bytes, {} times {}\n", line, line * 7 % 11, line * 5 % 13);
}

// Two undisturbed runs that end differently would make every comparison worthless.
Snapshot end_of(Bench& bench, const Scenario& scenario) {
  Snapshot ends[2];
  for (Snapshot& end : ends) {
    bench.clear(scenario.start);
    const Exit exit = bench.run(scenario.arguments, std::nullopt);
    if (exit.code != 0) throw std::runtime_error(scenario.name + ": an undisturbed run failed: " + exit.error);
    end = snapshot_of(bench.root());
  }
  const Difference difference = compare(ends[0], ends[1]);
  if (!difference.lost.empty()) throw std::runtime_error(scenario.name + " does not repeat: " + difference.lost[0]);
  return ends[0];
}

Scenario from_nothing(Bench& bench, const fs::path& folder, const Recipe& recipe) {
  Scenario scenario;
  scenario.name = recipe.name;
  scenario.arguments = recipe.arguments;
  scenario.start = folder / recipe.name;
  fs::create_directories(scenario.start);
  write_data(scenario.start / "data.txt");
  scenario.end = end_of(bench, scenario);
  scenario.states.push_back({folder / (recipe.name + "-ended"), true});
  fs::copy(bench.root(), scenario.states.back().folder, fs::copy_options::recursive);
  bench.clear(scenario.start);
  scenario.calls = bench.count_calls(scenario.arguments);
  return scenario;
}

// A copy of what a kill leaves after this part of all calls.
fs::path killed_after(double part, Bench& bench, const fs::path& folder, const Scenario& whole) {
  const double call = part * static_cast<double>(whole.calls.size());
  bench.clear(whole.start);
  bench.run(whole.arguments, Injection{"kill-before", whole.calls[static_cast<std::size_t>(call)].number});
  const fs::path copy = folder / fmt::format("{}-{:.0f}", whole.name, 100 * part);
  fs::copy(bench.root(), copy, fs::copy_options::recursive);
  return copy;
}

// What comes is a start that finds something.
Scenario from_the_middle(Bench& bench, const fs::path& folder, const Scenario& whole) {
  Scenario scenario = whole;
  scenario.name += "-again";
  scenario.begun = true;
  scenario.start = killed_after(0.5, bench, folder, whole);
  scenario.states.clear();
  for (const double part : {0.35, 0.7, 0.9})
    scenario.states.push_back({killed_after(part, bench, folder, whole), false});
  bench.clear(scenario.start);
  scenario.calls = bench.count_calls(scenario.arguments);
  return scenario;
}

}  // namespace

std::vector<Scenario> prepare(Bench& bench, const fs::path& folder, const std::string& only) {
  std::vector<Scenario> scenarios;
  for (const Recipe& recipe : recipes()) {
    if (!only.empty() && only != recipe.name && only != recipe.name + "-again") continue;
    const Scenario whole = from_nothing(bench, folder, recipe);
    if (only != recipe.name + "-again") scenarios.push_back(whole);
    if (only != recipe.name) scenarios.push_back(from_the_middle(bench, folder, whole));
  }
  if (scenarios.empty()) throw std::runtime_error("there is no scenario '" + only + "'");
  return scenarios;
}

}  // namespace norma::faults
