// norma compare: runs beside each other: outcomes, curves, what their configurations differ in, and which differences
// of loss the seeds support.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <memory>

#include "cli/findings_table.h"
#include "cli/output.h"
#include "cli/overrides.h"
#include "cli/table.h"
#include "cli/terminal.h"
#include "cli/text.h"
#include "cli/verbs.h"
#include "norma/core/error.h"
#include "norma/lab/compare.h"
#include "norma/report/comparison_report.h"
#include "norma/store/environment.h"

namespace norma::cli {
namespace {

struct CompareVerb {
  std::vector<std::string> runs;
  std::string out;
  bool json = false;
  SchemeLibrary schemes = SchemeLibrary::of_environment();
};

constexpr std::size_t kColumnsOfAPipe = 100;

std::string compared_loss(double loss) { return std::isfinite(loss) ? fmt::format("{:.4f}", loss) : "-"; }

std::string compared_table(const RunComparison& comparison, std::optional<std::size_t> columns) {
  Table table({{.title = "run", .left = true},
               {.title = "loss"},
               {.title = "verdict", .left = true},
               {.title = "scheme", .left = true},
               {.title = "size", .left = true, .optional = true},
               {.title = "lr", .left = false, .optional = true},
               {.title = "seed", .left = false, .optional = true},
               {.title = "steps", .left = false, .optional = true}});
  for (const ComparedRun& run : comparison.runs)
    table.add({printable(run.name), compared_loss(run.loss), printable(run.verdict), printable(run.scheme),
               fmt::format("{}x{}", run.layers, run.width), fmt::format("{:.1e}", run.lr), fmt::format("{}", run.seed),
               fmt::format("{}", run.steps)});
  return table.text(columns);
}

// Losses at `points` equal parts of the longest run; where a run has ended there is nothing.
std::vector<double> sampled(const LossCurve& curve, std::int64_t last, std::size_t points) {
  std::vector<double> losses;
  std::size_t at = 0;
  for (std::size_t point = 1; point <= points; ++point) {
    const double until = static_cast<double>(last) * static_cast<double>(point) / static_cast<double>(points);
    double sum = 0, count = 0;
    for (; at < curve.step.size() && static_cast<double>(curve.step[at]) <= until; ++at) {
      if (!std::isfinite(curve.loss[at])) continue;
      sum += curve.loss[at];
      ++count;
    }
    if (count > 0) {
      losses.push_back(sum / count);
    } else if (at >= curve.step.size()) {
      break;
    } else if (!losses.empty()) {
      losses.push_back(losses.back());
    }
  }
  return losses;
}

// The lowest and the highest loss that are drawn. A run that diverges must not flatten all others: what lies far above
// where they began is cut off. Where nothing has fallen, a run that rises must still be seen to rise.
std::pair<double, double> scale_of(const std::vector<std::vector<double>>& lines) {
  double low = INFINITY, high = -INFINITY, start = -INFINITY;
  for (const std::vector<double>& line : lines) {
    if (!line.empty()) start = std::max(start, line.front());
    for (const double loss : line) {
      low = std::min(low, loss);
      high = std::max(high, loss);
    }
  }
  return {low, std::min(high, start + std::max(0.5 * (start - low), 0.1 * std::abs(start)))};
}

// A line of bars on that scale.
std::string bars_of(std::vector<double> losses, double low, double high) {
  const std::size_t count = losses.size();
  for (double& loss : losses) loss = std::min(loss, high);
  losses.insert(losses.end(), {low, high});  // behind the end, so that all lines are scaled alike
  const std::string bars = sparkline(losses, false);
  std::size_t end = 0;
  for (std::size_t seen = 0; end < bars.size(); ++end) {
    if ((bars[end] & 0xC0) != 0x80 && seen++ == count) break;
  }
  return bars.substr(0, end);
}

std::string curves_text(const RunComparison& comparison, std::size_t columns) {
  const std::size_t room = std::min<std::size_t>(columns / 3, 32);
  const std::size_t points = std::min<std::size_t>(48, columns - room - 18);
  std::int64_t last = 1;
  std::vector<std::vector<double>> lines;
  for (const ComparedRun& run : comparison.runs) {
    if (!run.curve.step.empty()) last = std::max(last, run.curve.step.back());
  }
  for (const ComparedRun& run : comparison.runs) lines.push_back(sampled(run.curve, last, points));
  const auto [low, high] = scale_of(lines);
  if (!(low <= high)) return "";
  std::string text =
      wrapped(fmt::format("training loss by step, 1 to {}, all on one scale from {:.4g} to {:.4g}\n", last, low, high),
              columns);
  for (std::size_t i = 0; i < lines.size(); ++i) {
    if (lines[i].empty()) continue;
    const std::string name = cut_to(printable(comparison.runs[i].name), room), bars = bars_of(lines[i], low, high);
    text += fmt::format("  {}{}  {}{}  {:.4f}\n", name, std::string(room - display_width(name), ' '), bars,
                        std::string(points - std::min(points, display_width(bars)), ' '), lines[i].back());
  }
  return text;
}

std::string differences_text(const RunComparison& comparison, std::optional<std::size_t> columns) {
  if (comparison.groups.size() < 2) return "";
  std::vector<TableColumn> titles = {{.title = "configuration", .left = true}};
  for (const RunGroup& group : comparison.groups) titles.push_back({.title = printable(group.name), .left = true});
  Table table(titles);
  for (const ConfigDifference& difference : comparison.differences) {
    std::vector<std::string> row = {difference.key};
    for (const std::string& value : difference.values) row.push_back(printable(value));
    table.add(std::move(row));
  }
  return table.text(columns);
}

std::string groups_text(const RunComparison& comparison) {
  std::string text;
  for (const RunGroup& group : comparison.groups) {
    if (group.runs.size() < 2 || group.loss.n < 2) continue;
    text += fmt::format("{}: mean loss {:.4f} [{:.4f}, {:.4f}] over {} seeds\n", printable(group.name), group.loss.mean,
                        group.loss.low, group.loss.high, group.loss.n);
  }
  for (const RunGroup& group : comparison.groups) {
    if (!group.accuracy) continue;
    text += fmt::format("{}: accuracy {:.4f} [{:.4f}, {:.4f}] over {} and held-out records\n", printable(group.name),
                        group.accuracy->mean, group.accuracy->low, group.accuracy->high,
                        group.accuracy->n == 1 ? "one seed" : fmt::format("{} seeds", group.accuracy->n));
  }
  for (const GroupDifference& pair : comparison.pairs) text += printable(pair.words) + "\n";
  for (const std::string& note : comparison.notes) text += fmt::format("note: {}\n", printable(note));
  if (comparison.groups.size() == 1)
    text += "the configurations are the same but for seeds: there is nothing to compare, only how far seeds scatter\n";
  return text;
}

void run_compare(const CompareVerb& verb) {
  std::vector<RunHistory> runs;
  for (const std::string& run : verb.runs) runs.push_back(read_history(run, verb.schemes));
  const RunComparison comparison = compare_runs(runs);
  if (comparison.runs.size() < 2)
    fail("'{}' is one run; expected two or more, or one with several members", verb.runs.front());
  if (!verb.out.empty())
    write_comparison_report(verb.out, {.comparison = comparison,
                                       .command = fmt::format("{}", fmt::join(command_line(), " ")),
                                       .created = environment_now({}).time});
  if (verb.json) {
    write_json(write_comparison(comparison));
    return;
  }
  const std::optional<std::size_t> columns = output_columns();
  const std::string words = groups_text(comparison), differences = differences_text(comparison, columns);
  write_out(compared_table(comparison, columns));
  write_out("\n" + curves_text(comparison, columns.value_or(kColumnsOfAPipe)));
  if (!differences.empty()) write_out("\n" + differences);
  if (!words.empty()) write_out("\n" + (columns ? wrapped(words, *columns) : words));
  if (!verb.out.empty()) write_out("\npage: " + printable(verb.out) + "\n");
}

}  // namespace

void add_compare(CLI::App& app, int& /*exit_code*/) {
  const auto verb = std::make_shared<CompareVerb>();
  CLI::App* command = app.add_subcommand(
      "compare", "Put runs beside each other: losses, curves, what differs, and what the seeds support");
  command->add_option("runs", verb->runs, "Run directories; members of one run count as runs")
      ->required()
      ->type_name(kFolder);
  command->add_option("--out", verb->out, "Write a page with curves and tables to this file, such as compare.html")
      ->type_name(kFile);
  command->add_flag("--json", verb->json, "Print JSON, with the curves");
  add_schemes_dir(*command, verb->schemes);
  command->callback([verb] { run_compare(*verb); });
}

}  // namespace norma::cli
