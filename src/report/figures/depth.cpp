// What layers are worth after training: effective depth, loss as layers are taken away, measures by layer, and how
// alike the states of different layers are.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <set>

#include "report/figures/axis.h"
#include "report/figures/dots.h"
#include "report/figures/parts.h"

namespace norma {
namespace {

std::vector<const DepthFinding*> findings_in_order(const Results& results) {
  std::vector<const DepthFinding*> all;
  for (const DepthFinding& one : results.depth_use) all.push_back(&one);
  const auto rank = [&](const DepthFinding* one) {
    const Verdict* verdict = verdict_of(results, one->scheme);
    return verdict != nullptr && verdict->rank > 0 ? verdict->rank : 1 << 20;
  };
  std::stable_sort(all.begin(), all.end(),
                   [&](const DepthFinding* a, const DepthFinding* b) { return rank(a) < rank(b); });
  return all;
}

std::string name_of_finding(const DepthFinding& one, const Cast& cast, bool depths) {
  return cast.of(one.scheme).label + (depths ? ", " + draw::counted(one.layers, "layer", "layers") : "");
}

bool several_depths(const Results& results) {
  return std::any_of(results.depth_use.begin(), results.depth_use.end(),
                     [&](const DepthFinding& one) { return one.layers != results.depth_use.front().layers; });
}

draw::Dots effective_depths(const Results& results, const Cast& cast) {
  draw::Dots dots{.rows = {}, .x_label = "effective depth (layers)", .from = 0, .to = 0};
  for (const DepthFinding* one : findings_in_order(results)) {
    const CastMember& member = cast.of(one->scheme);
    draw::DotRow row{.label = name_of_finding(*one, cast, several_depths(results)),
                     .scheme = cast.index(one->scheme),
                     .tone = member.tone,
                     .marker = member.marker,
                     .value = one->effective_depth,
                     .note = "did not learn"};
    row.digits = one->effective_depth.n > 0 ? draw::depth_text(one->effective_depth.mean) : "";
    row.tip = fmt::format("{}: effective depth {} of {} layers", row.label, draw::depth_text(one->effective_depth),
                          one->layers);
    dots.rows.push_back(std::move(row));
    dots.to = std::max(*dots.to, static_cast<double>(one->layers));
  }
  dots.rules = {{*dots.to, "all layers"}};
  return dots;
}

draw::Panel kept_panel(const Results& results, const Cast& cast) {
  const std::optional<double> optimum = optimum_of(results);
  bool above = optimum.has_value();
  for (const DepthFinding& one : results.depth_use) {
    for (const double loss : one.kept_loss) above = above && !(loss <= *optimum);
  }
  draw::Panel panel{.x_label = "layers kept",
                    .y_label = fmt::format("loss{} ({})", above ? " above the optimum" : "", loss_unit(results)),
                    .y_log = above,
                    .y_most = most_shown(results) - (above ? *optimum : 0)};
  for (const DepthFinding* one : findings_in_order(results)) {
    const CastMember& member = cast.of(one->scheme);
    draw::Line line{.label = name_of_finding(*one, cast, several_depths(results)),
                    .scheme = cast.index(one->scheme),
                    .tone = member.tone,
                    .x = {},
                    .y = {}};
    for (std::size_t kept = 0; kept < one->kept_loss.size(); ++kept) {
      line.x.push_back(static_cast<double>(kept));
      line.y.push_back(one->kept_loss[kept] - (above ? *optimum : 0));
      line.tips.push_back(fmt::format("{}, {} of {} layers kept: loss {}", line.label, kept, one->layers,
                                      draw::loss_text(one->kept_loss[kept])));
    }
    panel.lines.push_back(std::move(line));
  }
  return panel;
}

struct Measure {
  const char* title;
  const char* x_label;
  std::string_view y_label;
  double first;  // x of the first value
  std::vector<Estimate> (*of)(const DepthFinding&);
};

std::vector<Estimate> exactly(const std::vector<double>& values) {
  std::vector<Estimate> all;
  for (const double value : values) all.push_back({value, value, value, 1});
  return all;
}

constexpr std::string_view kAddedLoss = "added loss";
const Measure kMeasures[] = {
    {"Loss when a layer is removed", "layer", kAddedLoss, 1, [](const DepthFinding& one) { return one.deletion; }},
    {"Block influence", "layer", "1 \u2212 cosine", 1, [](const DepthFinding& one) { return one.influence; }},
    {"Loss when swapped with the next", "layer", kAddedLoss, 1, [](const DepthFinding& one) { return one.swap; }},
    {"Loss when run beside the next", "layer", kAddedLoss, 1,
     [](const DepthFinding& one) { return one.width_equivalence; }},
    {"Distance of the early answer", "after layer", "KL divergence", 0,
     [](const DepthFinding& one) { return exactly(one.lens_divergence); }},
    {"Agreement of the early answer", "after layer", "share", 0,
     [](const DepthFinding& one) { return exactly(one.lens_agreement); }},
    {"Accuracy of a linear probe", "after layer", "share", 0, [](const DepthFinding& one) { return one.probe; }},
    {"Gradient by path length", "branches", "share", 0,
     [](const DepthFinding& one) { return exactly(one.path_share); }},
};

draw::Panel measure_panel(const Results& results, const Cast& cast, const Measure& measure) {
  draw::Panel panel{.title = measure.title, .x_label = measure.x_label, .y_label = std::string(measure.y_label)};
  if (measure.y_label == kAddedLoss) panel.y_label += fmt::format(" ({})", loss_unit(results));
  for (const DepthFinding* one : findings_in_order(results)) {
    const std::vector<Estimate> values = measure.of(*one);
    if (values.empty()) continue;
    const CastMember& member = cast.of(one->scheme);
    draw::Line line{.label = name_of_finding(*one, cast, several_depths(results)),
                    .scheme = cast.index(one->scheme),
                    .tone = member.tone,
                    .x = {},
                    .y = {}};
    const bool banded = std::any_of(values.begin(), values.end(), [](const Estimate& value) { return value.n > 1; });
    for (std::size_t i = 0; i < values.size(); ++i) {
      line.x.push_back(static_cast<double>(i) + measure.first);
      line.y.push_back(values[i].mean);
      if (banded) line.low.push_back(values[i].low), line.high.push_back(values[i].high);
      const bool named = std::string_view(measure.x_label) == "layer" && i < one->layer_names.size();
      const std::string at = named ? one->layer_names[i] : fmt::format("{} {}", measure.x_label, line.x.back());
      line.tips.push_back(fmt::format("{}, {}: {}", line.label, at, draw::plain(values[i])));
    }
    panel.lines.push_back(std::move(line));
  }
  return panel;
}

// Blocks of the matrix of distances, at most 13 on a side.
draw::Heat likeness_of(const DepthFinding& one, const Cast& cast, double most) {
  const std::size_t size = one.angular_distance.size(), blocks = std::min<std::size_t>(size, 13);
  const CastMember& member = cast.of(one.scheme);
  draw::Heat heat{.title = member.label,
                  .scheme = cast.index(one.scheme),
                  .tone = member.tone == draw::Tone::rest ? draw::Tone::ink : member.tone,
                  .x = {"0", std::to_string(size - 1)},
                  .y = {},
                  .cells = {}};
  for (std::size_t row = 0; row < blocks; ++row) {
    std::vector<draw::HeatCell>& cells = heat.cells.emplace_back();
    const std::size_t top = row * size / blocks, bottom = (row + 1) * size / blocks;
    heat.y.push_back(std::to_string(top));
    for (std::size_t column = 0; column < blocks; ++column) {
      const std::size_t left = column * size / blocks, right = (column + 1) * size / blocks;
      double sum = 0;
      int count = 0;
      for (std::size_t i = top; i < bottom; ++i) {
        for (std::size_t k = left; k < std::min(right, one.angular_distance[i].size()); ++k) {
          if (!std::isfinite(one.angular_distance[i][k])) continue;  // streams of two shapes
          sum += one.angular_distance[i][k];
          ++count;
        }
      }
      const double mean = count > 0 ? sum / count : std::nan("");
      cells.push_back({.level = mean / most,
                       .tip = fmt::format("{}, states {} and {}: {}", member.label, top, left, draw::plain(mean))});
    }
  }
  return heat;
}

void add_likeness(std::vector<Figure>& figures, const Results& results, const Cast& cast) {
  double most = 0;
  FigureTable table{.columns = {"scheme", "layers", "state", "other", "distance"}};
  for (const DepthFinding& one : results.depth_use) {
    for (std::size_t i = 0; i < one.angular_distance.size(); ++i) {
      for (std::size_t k = 0; k < one.angular_distance[i].size(); ++k) {
        most = std::max(most, one.angular_distance[i][k]);
        table.rows.push_back({one.scheme, std::to_string(one.layers), std::to_string(i), std::to_string(k),
                              draw::exact(one.angular_distance[i][k])});
      }
    }
  }
  if (!(most > 0)) return;
  auto heats = std::make_shared<std::vector<draw::Heat>>();
  for (const DepthFinding* one : findings_in_order(results)) {
    if (!one->angular_distance.empty()) heats->push_back(likeness_of(*one, cast, most));
  }
  const draw::HeatKey key{.x_label = "state after layer",
                          .y_label = "state after layer",
                          .strong = "alike, 0",
                          .faint = draw::plain(most) + ", far apart",
                          .diverges = false};
  figures.push_back({.id = "likeness",
                     .title = "Likeness of layers",
                     .caption = "Angular distance (over pi) between the residual stream after two layers, mean over "
                                "tokens. Where the colour is strong, layers hardly change the stream.",
                     .numbers = std::move(table),
                     .draw = [heats, key](double width) { return draw_heats(*heats, key, width); }});
}

void add_gain_by_depth(std::vector<Figure>& figures, const Results& results, const Cast& cast) {
  draw::Panel panel{
      .x_label = "layers", .y_label = fmt::format("tuned held-out loss ({})", loss_unit(results)), .x_log = true};
  std::set<double> depths;
  for (const DepthEfficiency& one : results.depth_efficiency) {
    if (one.layers.size() < 2) continue;
    const CastMember& member = cast.of(one.scheme);
    draw::Line line{.label = one.rest.empty() ? member.label : member.label + ", " + one.rest,
                    .scheme = cast.index(one.scheme),
                    .tone = member.tone,
                    .x = {},
                    .y = {},
                    .marker = member.marker};
    for (std::size_t i = 0; i < std::min(one.layers.size(), one.loss.size()); ++i) {
      const bool known = one.loss[i].n > 0;
      line.x.push_back(static_cast<double>(one.layers[i]));
      line.y.push_back(known ? one.loss[i].mean : std::nan(""));
      line.low.push_back(one.loss[i].low);
      line.high.push_back(one.loss[i].high);
      line.tips.push_back(fmt::format("{}, {}: {}", line.label, draw::counted(one.layers[i], "layer", "layers"),
                                      draw::loss_text(one.loss[i])));
      depths.insert(line.x.back());
    }
    panel.lines.push_back(std::move(line));
  }
  if (panel.lines.empty()) return;
  panel.x_ticks.assign(depths.begin(), depths.end());
  auto panels = std::make_shared<std::vector<draw::Panel>>(1, std::move(panel));
  figures.push_back({.id = "gain-by-depth",
                     .title = "What depth brings",
                     .caption = "Held-out loss at the best setting of each depth, mean and 95 % interval over seeds.",
                     .numbers = numbers_of(*panels),
                     .draw = [panels](double width) { return draw_panels(*panels, {.height = 220}, width); }});
}

}  // namespace

void add_depth_figures(std::vector<Figure>& figures, const Results& results, const Cast& cast) {
  add_gain_by_depth(figures, results, cast);
  if (results.depth_use.empty()) return;
  auto dots = std::make_shared<draw::Dots>(effective_depths(results, cast));
  auto kept = std::make_shared<std::vector<draw::Panel>>(1, kept_panel(results, cast));
  FigureTable table = numbers_of(*kept);
  for (const DepthFinding& one : results.depth_use) {
    table.rows.push_back({"effective depth", cast.of(one.scheme).label, std::to_string(one.layers),
                          draw::exact(one.effective_depth.mean), draw::exact(one.effective_depth.low),
                          draw::exact(one.effective_depth.high), ""});
  }
  figures.push_back(
      {.id = "depth",
       .title = "Use of depth",
       .caption =
           fmt::format("Left: the least number of layers that keeps nine tenths of what all layers gain over {}, with "
                       "95 % intervals. Right: loss as layers are taken out of the trained model, those that cost "
                       "least first.",
                       guessing_deed(results)) +
           beyond_words(results, kept->front().lines, kept->front().y_most),
       .numbers = std::move(table),
       .draw = [dots, kept](double width) {
         draw::Scene scene{.width = width, .height = 0, .marks = {}, .spots = {}};
         const bool narrow = width < 500;
         const draw::Scene left = draw_dots(*dots, narrow ? width : 0.44 * width);
         const draw::Scene right = draw_panels(*kept, {.height = narrow ? 200 : std::max(180.0, left.height - 50)},
                                               narrow ? width : 0.53 * width);
         put(scene, left, 0, 0);
         put(scene, right, narrow ? 0 : 0.47 * width, narrow ? left.height + 14 : 0);
         return scene;
       }});
  auto panels = std::make_shared<std::vector<draw::Panel>>();
  for (const Measure& measure : kMeasures) {
    draw::Panel panel = measure_panel(results, cast, measure);
    if (!panel.lines.empty()) panels->push_back(std::move(panel));
  }
  if (!panels->empty()) {
    figures.push_back({.id = "layers",
                       .title = "What each layer does",
                       .caption =
                           "Measures of each layer of the trained model. Losses are how much more is lost when a "
                           "layer is removed, swapped with the next or run beside it, without further training; "
                           "early answers are read off the stream after a layer.",
                       .numbers = numbers_of(*panels),
                       .draw = [panels](double width) {
                         return draw_panels(*panels, {.columns = width < 500 ? 1 : 2, .height = 130}, width);
                       }});
  }
  add_likeness(figures, results, cast);
}

}  // namespace norma
