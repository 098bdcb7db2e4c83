// The article of runs beside each other: what the seeds support, curves, losses, and in what configurations differ.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "norma/report/comparison_report.h"
#include "norma/store/atomic_file.h"
#include "report/figures/axis.h"
#include "report/figures/chart.h"
#include "report/page/html.h"
#include "report/page/pages.h"
#include "report/page/words.h"

namespace norma {
namespace {

constexpr std::size_t kMostPoints = 400;  // of a curve

// Groups from the lowest loss to the highest; those without one come last.
std::vector<std::size_t> by_loss(const RunComparison& comparison) {
  std::vector<std::size_t> order;
  for (std::size_t i = 0; i < comparison.groups.size(); ++i) order.push_back(i);
  const auto rank = [&](std::size_t group) {
    const Estimate& loss = comparison.groups[group].loss;
    return loss.n > 0 && std::isfinite(loss.mean) ? loss.mean : INFINITY;
  };
  std::ranges::stable_sort(order, {}, rank);
  return order;
}

std::string compared_name(const RunComparison& comparison, const ComparedRun& run) {
  const RunGroup& group = comparison.groups[run.group];
  return group.runs.size() > 1 ? fmt::format("{}, seed {}", group.name, run.seed) : group.name;
}

draw::Line compared_line(const RunComparison& comparison, const ComparedRun& run, const LossCurve& curve,
                         draw::Tone tone, bool named) {
  std::string label = named ? comparison.groups[run.group].name : "";
  std::erase(label, '"');  // room beside a figure is short
  draw::Line line{.label = std::move(label), .tone = tone, .x = {}, .y = {}};
  const std::size_t size = std::min(curve.step.size(), curve.loss.size()),
                    every = std::max<std::size_t>(1, size / kMostPoints);
  for (std::size_t i = 0; i < size; i += every) {
    line.x.push_back(static_cast<double>(curve.step[i]));
    line.y.push_back(curve.loss[i]);
    line.tips.push_back(
        fmt::format("{}, step {}: {}", compared_name(comparison, run), curve.step[i], draw::loss_text(curve.loss[i])));
  }
  return line;
}

// What all losses are in, after "loss "; empty where runs differ.
std::string unit_of(const RunComparison& comparison) {
  const std::string first = comparison.runs.empty() ? "" : comparison.runs.front().unit;
  for (const ComparedRun& run : comparison.runs) {
    if (run.unit != first) return "";
  }
  return first.empty() ? "nats" : first;
}

// One line a run, in the tone of its group: the best two in colour, the rest grey; a group's first has its name at the
// end.
draw::Panel curves_panel(const RunComparison& comparison, bool held_out) {
  draw::Panel panel{.title = held_out ? "held out" : "training", .x_label = "step", .y_label = "loss"};
  if (const std::string unit = unit_of(comparison); !unit.empty()) panel.y_label += fmt::format(" ({})", unit);
  const std::vector<std::size_t> order = by_loss(comparison);
  for (std::size_t place = order.size(); place-- > 0;) {  // the best is drawn last, above the others
    const draw::Tone tone = place == 0 ? draw::Tone::lead : place == 1 ? draw::Tone::base : draw::Tone::rest;
    bool named = true;
    for (const std::size_t index : comparison.groups[order[place]].runs) {
      const ComparedRun& run = comparison.runs[index];
      const LossCurve& curve = held_out ? run.evaluations : run.curve;
      if (curve.step.empty()) continue;
      panel.lines.push_back(compared_line(comparison, run, curve, tone, named));
      named = false;
    }
  }
  return panel;
}

Figure curves_figure(const RunComparison& comparison) {
  std::vector<draw::Panel> panels;
  for (const bool held_out : {true, false}) {
    draw::Panel panel = curves_panel(comparison, held_out);
    if (!panel.lines.empty()) panels.push_back(std::move(panel));
  }
  if (panels.size() == 1) panels.front().title.clear();
  return {
      .id = "curves",
      .title = "Loss during training",
      .caption =
          "Loss by step, one line for each run. The two groups with the lowest losses are in colour, all others grey.",
      .numbers = numbers_of(panels),
      .draw = [panels](double width) {
        return draw_panels(panels, {.columns = width < 500 ? 1 : static_cast<int>(panels.size()), .height = 240},
                           width);
      }};
}

std::string groups_table(const RunComparison& comparison) {
  HtmlTable rows{.columns = {"Group", "Mean loss", "95 % interval", "Runs", "Diverged"}};
  for (const std::size_t index : by_loss(comparison)) {
    const RunGroup& group = comparison.groups[index];
    rows.rows.push_back(
        {group.name, group.loss.n > 0 ? draw::loss_text(group.loss.mean) : "–",
         group.loss.n > 1 ? fmt::format("{} to {}", draw::loss_text(group.loss.low), draw::loss_text(group.loss.high))
                          : "one seed has none",
         std::to_string(group.runs.size()), std::to_string(group.diverged)});
  }
  return table("Runs that differ in seeds alone are a group", rows);
}

std::string runs_table(const RunComparison& comparison) {
  HtmlTable rows{.columns = {"Run", "Loss", "Outcome", "Scheme", "Layers", "Width", "Peak rate", "Seed", "Steps"}};
  for (const ComparedRun& run : comparison.runs)
    rows.rows.push_back({run.name, std::isfinite(run.loss) ? draw::loss_text(run.loss) : "–", run.verdict, run.scheme,
                         std::to_string(run.layers), std::to_string(run.width), draw::plain(run.lr),
                         std::to_string(run.seed), std::to_string(run.steps)});
  return table("Runs", rows);
}

std::string differences_table(const RunComparison& comparison) {
  if (comparison.groups.size() < 2 || comparison.differences.empty()) return "";
  HtmlTable rows{.columns = {"Key"}};
  for (const RunGroup& group : comparison.groups) rows.columns.push_back(group.name);
  for (const ConfigDifference& difference : comparison.differences) {
    rows.rows.push_back({difference.key});
    rows.rows.back().insert(rows.rows.back().end(), difference.values.begin(), difference.values.end());
  }
  return section("differences", "In what they differ", table("Keys of the configuration", rows));
}

// The first pair that the seeds tell apart, or that there is none.
std::string answer_of(const RunComparison& comparison) {
  if (comparison.groups.size() < 2) return "One configuration, several seeds: there is nothing to compare.";
  const auto found = std::ranges::find_if(comparison.pairs, &GroupDifference::supported);
  if (found == comparison.pairs.end()) {
    int seeds = 0;  // shared by two groups, at most
    for (const GroupDifference& pair : comparison.pairs) seeds = std::max(seeds, pair.difference.n);
    return seeds == 0   ? "These runs cannot be compared by their losses."
           : seeds == 1 ? "One seed cannot tell these runs apart."
                        : "The seeds support no difference between these runs.";
  }
  const bool a_wins = found->difference.mean < 0;
  const std::string &better = comparison.groups[a_wins ? found->a : found->b].name,
                    &worse = comparison.groups[a_wins ? found->b : found->a].name;
  return fmt::format("{} ends lower than {}.", better, worse);
}

}  // namespace

std::string make_comparison_report(const ComparisonReport& report) {
  const RunComparison& comparison = report.comparison;
  const std::string facts = fmt::format("Comparison · {} runs · {} configuration{}{}{}", comparison.runs.size(),
                                        comparison.groups.size(), comparison.groups.size() == 1 ? "" : "s",
                                        report.created.empty() ? "" : " · ", date_text(report.created));
  std::string words;
  for (const GroupDifference& pair : comparison.pairs) words += paragraph(pair.words + ".");
  for (const std::string& note : comparison.notes) words += paragraph("Note: " + note + ".");
  std::string html =
      head_html(facts, answer_of(comparison), comparison.pairs.empty() ? "" : comparison.pairs.front().words + ".");
  const Figure figure = curves_figure(comparison);
  if (!figure.numbers.rows.empty()) html += figure_html(figure, 1, Drawn::twice);
  html += section("losses", "What the seeds support", groups_table(comparison) + words);
  html += differences_table(comparison);
  html += section("runs", "Numbers", runs_table(comparison));
  if (!report.command.empty())
    html +=
        section("method", "Method", folded("What repeats it: the command", preformatted(report.command, "Command")));
  return page_of({.title = "norma: comparison of " + std::to_string(comparison.runs.size()) + " runs",
                  .kind = "comparison",
                  .html = html,
                  .data = write_comparison(comparison)});
}

void write_comparison_report(const std::filesystem::path& path, const ComparisonReport& report) {
  write_atomically(path, make_comparison_report(report));
}

}  // namespace norma
