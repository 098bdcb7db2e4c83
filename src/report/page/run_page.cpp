// The article of one run.
#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <cmath>
#include <functional>
#include <map>
#include <set>

#include "norma/report/run_report.h"
#include "norma/store/atomic_file.h"
#include "report/figures/axis.h"
#include "report/figures/chart.h"
#include "report/figures/parts.h"
#include "report/page/html.h"
#include "report/page/pages.h"
#include "report/page/words.h"

namespace norma {
namespace {

// "89.6 % (87.8 to 91.1) right" of a classifier, the mean of several members without an interval; otherwise empty.
std::string right_answers_of(const RunReport& run) {
  std::vector<double> shares;
  for (const MemberResult& member : run.result.members) {
    const bool answers = member.scores.contains("accuracy") && member.scores.contains("accuracy_low");
    if (answers && std::isfinite(member.scores.at("accuracy"))) shares.push_back(member.scores.at("accuracy"));
  }
  if (shares.empty()) return "";
  if (shares.size() > 1 || run.result.members.size() > 1) {
    double mean = 0;
    for (const double share : shares) mean += share / static_cast<double>(shares.size());
    return right_answers(Estimate{.mean = mean, .low = mean, .high = mean});
  }
  const std::map<std::string, double>& scores = run.result.members.front().scores;
  return right_answers(
      Estimate{.mean = shares[0], .low = scores.at("accuracy_low"), .high = scores.at("accuracy_high")});
}

std::string outcome_sentence(const RunReport& run) {
  const std::string scheme = run.scheme_title.empty() ? run.result.scheme : run.scheme_title;
  if (run.result.members.empty()) return scheme + ": no member";
  std::vector<double> losses;
  int bad = 0;
  for (const MemberResult& member : run.result.members) {
    const double loss = member.evaluation_loss.value_or(member.final_loss);
    if (std::isfinite(loss)) losses.push_back(loss);
    bad += member.outcome == Outcome::diverged || member.outcome == Outcome::did_not_learn;
  }
  const MemberResult& first = run.result.members.front();
  const std::string right = right_answers_of(run);
  std::string loss = right.empty() ? "" : ", " + right;
  if (!losses.empty())
    loss += fmt::format(", {} {} {}", first.evaluation_loss ? "held-out" : "training",
                        run.unit.empty() ? "loss" : run.unit, draw::loss_text(estimate_of(losses)));
  if (run.result.members.size() == 1)
    return fmt::format("{}: {}{}.", scheme, verdict_of(first.outcome, first.facts), loss);
  return fmt::format("{}: {} of {} members trained{}.", scheme,
                     run.result.members.size() - static_cast<std::size_t>(bad), run.result.members.size(), loss);
}

draw::Line curve_line(const LossCurve& curve, std::string label, draw::Tone tone, int marker) {
  draw::Line line{.label = std::move(label), .tone = tone, .x = {}, .y = {}, .marker = marker};
  const std::size_t size = std::min(curve.step.size(), curve.loss.size()), every = std::max<std::size_t>(1, size / 400);
  for (std::size_t i = 0; i < size; i += every) {
    line.x.push_back(static_cast<double>(curve.step[i]));
    line.y.push_back(curve.loss[i]);
    line.tips.push_back(fmt::format("{}, step {}: {}", line.label, curve.step[i], draw::loss_text(curve.loss[i])));
  }
  return line;
}

// Both losses of a single run; the held-out ones of several, one of them in colour.
draw::Panel loss_panel(const RunReport& run) {
  draw::Panel panel{.x_label = "step", .y_label = fmt::format("loss ({})", run.unit.empty() ? "nats" : run.unit)};
  const bool several = run.members.size() > 1;
  for (std::size_t i = 0; i < run.members.size(); ++i) {
    const RunCurves& curves = run.members[i];
    const std::string seed =
        several && i < run.result.members.size() ? fmt::format("seed {}", run.result.members[i].seed) : "";
    const draw::Tone tone = i == 0 ? draw::Tone::lead : draw::Tone::rest;
    if (!several || curves.held_out.step.empty())
      panel.lines.push_back(
          curve_line(curves.training, several ? seed : "training", several ? tone : draw::Tone::rest, -1));
    if (!curves.held_out.step.empty())
      panel.lines.push_back(
          curve_line(curves.held_out, several ? seed : "held out", tone, curves.held_out.step.size() < 40 ? 0 : -1));
  }
  std::erase_if(panel.lines, [](const draw::Line& line) { return line.x.empty(); });
  if (run.result.optimum && std::isfinite(*run.result.optimum)) panel.rules.push_back({*run.result.optimum, "optimum"});
  for (const MemberResult& member : run.result.members) {
    if (!member.unigram_entropy || !std::isfinite(*member.unigram_entropy)) continue;
    panel.rules.push_back({*member.unigram_entropy, run.unit.empty() ? "guessing" : "the mean"});
    break;
  }
  return panel;
}

std::vector<Figure> run_figures(const RunReport& run) {
  std::vector<Figure> figures;
  const auto add = [&](std::string id, std::string title, std::string caption, std::vector<draw::Panel> panels,
                       draw::Grid wide) {
    figures.push_back({.id = std::move(id),
                       .title = std::move(title),
                       .caption = std::move(caption),
                       .numbers = numbers_of(panels),
                       .draw = [panels, wide](double width) {
                         draw::Grid grid = wide;
                         if (width < 500) grid.columns = 1;
                         return draw_panels(panels, grid, width);
                       }});
  };
  const draw::Panel loss = loss_panel(run);
  if (!loss.lines.empty())
    add("curves", "Loss during training",
        run.unit.empty()
            ? "Loss by step, in nats; broken lines are the best that is possible and guessing by frequency, "
              "where they are known."
            : fmt::format("Loss by step, {}; broken lines are the best that is possible and predicting the "
                          "mean, where they are known.",
                          run.unit),
        {loss}, {.height = 260});
  std::vector<draw::Panel> panels;
  for (const RunMetric& metric : run.metrics) {
    draw::Panel panel{.title = metric.name, .x_label = "step", .y_label = metric.unit, .y_log = metric.log};
    draw::Line line = curve_line({metric.step, metric.value}, metric.name, draw::Tone::lead, -1);
    line.label.clear();
    if (line.x.empty()) continue;
    panel.lines.push_back(std::move(line));
    panel.names = false;
    panels.push_back(std::move(panel));
  }
  if (!panels.empty())
    add("metrics", "What else was recorded", "Quantities recorded during training, of the first member.", panels,
        {.columns = 2, .height = 120});
  return figures;
}

// "Row accuracy" of row_accuracy.
std::string heading_of(std::string name) {
  std::ranges::replace(name, '_', ' ');
  name[0] = static_cast<char>(std::toupper(static_cast<unsigned char>(name[0])));
  return name;
}

std::string percent(double share) { return fmt::format("{:.1f}\u00a0%", 100 * share); }

// Scores of one name, of all members; a dash for whoever has none.
struct ScoreColumn {
  std::string title, needs;  // needs: a score without which there is a dash
  std::function<std::string(const std::map<std::string, double>&)> cell;
};

// What a classifier is for stands before its loss.
std::vector<ScoreColumn> answer_columns(bool classifies) {
  if (!classifies) return {};
  return {{"Accuracy", "accuracy", [](const auto& scores) { return percent(scores.at("accuracy")); }},
          {"95 % interval", "accuracy_high", [](const auto& scores) {
             return fmt::format("{} to {}", percent(scores.at("accuracy_low")), percent(scores.at("accuracy_high")));
           }}};
}

std::vector<ScoreColumn> other_columns(const RunReport& run, bool classifies) {
  std::set<std::string> names;
  for (const MemberResult& one : run.result.members) {
    for (const auto& [name, score] : one.scores) {
      if (name != "loss" && !(classifies && name.starts_with("accuracy"))) names.insert(name);
    }
  }
  std::vector<ScoreColumn> columns;
  for (const std::string& name : names) {
    const bool share = name.find("accuracy") != std::string::npos;
    columns.push_back({heading_of(name), name, [name, share](const std::map<std::string, double>& scores) {
                         return share ? percent(scores.at(name)) : draw::plain(scores.at(name));
                       }});
  }
  return columns;
}

std::string members_table(const RunReport& run) {
  const bool classifies = std::ranges::any_of(
      run.result.members, [](const MemberResult& one) { return one.scores.contains("accuracy_low"); });
  const std::vector<ScoreColumn> answers = answer_columns(classifies), others = other_columns(run, classifies);
  HtmlTable rows{.columns = {"Seed", "Outcome", "Peak rate", "Warmup"}};
  for (const ScoreColumn& column : answers) rows.columns.push_back(column.title);
  for (const std::string& title : {std::string("Held-out loss"), std::string("Best"), heading_of(run.counted + "s/s")})
    rows.columns.push_back(title);
  for (const ScoreColumn& column : others) rows.columns.push_back(column.title);
  for (const MemberResult& one : run.result.members) {
    std::vector<std::string> row = {std::to_string(one.seed), verdict_of(one.outcome, one.facts), draw::plain(one.lr),
                                    std::to_string(one.warmup)};
    const auto add = [&](const std::vector<ScoreColumn>& columns) {
      for (const ScoreColumn& column : columns)
        row.push_back(one.scores.contains(column.needs) ? column.cell(one.scores) : "–");
    };
    add(answers);
    row.insert(row.end(),
               {one.evaluation_loss ? draw::loss_text(*one.evaluation_loss) : "–", draw::loss_text(one.best_loss),
                one.tokens_per_second ? draw::plain(*one.tokens_per_second) : "–"});
    add(others);
    rows.rows.push_back(std::move(row));
  }
  return table("Members", rows);
}

}  // namespace

std::string make_run_report(const RunReport& run) {
  const std::vector<Figure> figures = run_figures(run);
  const std::string facts =
      fmt::format("Run {} · {} · {} · {}{}{}", run.name, draw::counted(run.result.steps, "step", "steps"),
                  draw::counted(run.result.parameters, "parameter", "parameters"), duration_words(run.result.seconds),
                  run.created.empty() ? "" : " · ", date_text(run.created));
  std::vector<std::string> findings = run.findings;
  std::string html = head_html(facts, outcome_sentence(run), findings.empty() ? "" : findings.front());
  for (std::size_t i = 0; i < figures.size(); ++i)
    html += figure_html(figures[i], static_cast<int>(i + 1), Drawn::twice);
  std::string rest;
  for (std::size_t i = 1; i < findings.size(); ++i) rest += paragraph(findings[i]);
  html += section("findings", "What stands out", rest);
  if (!run.samples.empty())
    html += section(
        "samples", "Samples",
        paragraph("What the model makes of noise, as norma sample drew it last.") +
            fmt::format("<img alt=\"Samples of the model\" src=\"data:image/png;base64,{}\">", base64(run.samples)));
  html += section("members", "Numbers", members_table(run));
  html += section("method", "Method",
                  folded("What repeats it: command and configuration", paragraph(run.result.task) +
                                                                           preformatted(run.command, "Command") +
                                                                           preformatted(run.config, "Configuration")));
  return page_of(
      {.title = "norma: run " + run.name, .kind = "run", .html = html, .data = run.json.empty() ? "{}" : run.json});
}

void write_run_report(const std::filesystem::path& path, const RunReport& run) {
  write_atomically(path, make_run_report(run));
}

}  // namespace norma
