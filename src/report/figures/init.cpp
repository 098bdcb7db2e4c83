// Laws at init: one analysis in a panel, measured with bands and theory; by place in the stack; and histograms.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <memory>
#include <set>

#include "report/figures/axis.h"
#include "report/figures/init.h"
#include "report/figures/parts.h"

namespace norma {
namespace {

struct Known {
  std::string_view name, title, unit;
};
// Short titles, and units that results.json leaves out.
constexpr std::array<Known, 8> kKnown = {{{"gradient", "Gradient of the last layer", "Frobenius norm"},
                                          {"stream", "Size of the stream", "rms"},
                                          {"amplification", "Amplification", "squared change per token"},
                                          {"gradient_batch", "", "Frobenius norm"},
                                          {"gradient_layer", "", "norm"},
                                          {"gradient_role", "", "norm"},
                                          {"attention_entropy", "", "nats"},
                                          {"angle", "", "share of pi"}}};
constexpr std::array<std::string_view, 3> kMain = {"gradient", "amplification", "stream"};

const Known* known(const std::string& name) {
  for (const Known& one : kKnown) {
    if (one.name == name) return &one;
  }
  return nullptr;
}

std::string unit_of(const Analysis& analysis) {
  if (!analysis.unit.empty()) return analysis.unit;
  const Known* one = known(analysis.name);
  return one != nullptr ? std::string(one->unit) : std::string("ratio");
}

draw::Line depth_line(const Analysis& analysis, const Series& series, const Cast& cast) {
  const CastMember& member = cast.of(series.scheme);
  draw::Line line{.label = member.label,
                  .scheme = cast.index(series.scheme),
                  .tone = member.tone,
                  .x = {},
                  .y = {},
                  .marker = member.marker};
  for (std::size_t i = 0; i < std::min(series.x.size(), series.y.size()); ++i) {
    const Estimate& y = series.y[i];
    line.x.push_back(series.x[i]);
    line.y.push_back(y.mean);
    line.low.push_back(y.low);
    line.high.push_back(y.high);
    std::string tip = fmt::format("{}, {} {}: {}", member.label, draw::plain(series.x[i]), analysis.x, draw::plain(y));
    if (series.theory && i < series.theory->y.size()) {
      line.theory.push_back(series.theory->y[i]);
      tip += ", theory " + draw::plain(series.theory->y[i]);
    }
    line.tips.push_back(std::move(tip));
  }
  return line;
}

draw::Panel depth_panel(const Analysis& analysis, const Cast& cast) {
  draw::Panel panel{.x_label = analysis.x, .y_label = unit_of(analysis), .x_log = analysis.log, .y_log = analysis.log};
  const double level = zero_level(analysis);
  std::set<double> depths;
  for (const Series& series : analysis.series) {
    depths.insert(series.x.begin(), series.x.end());
    if (series.x.empty() || (analysis.log && is_zero(series, level))) continue;
    panel.lines.push_back(depth_line(analysis, series, cast));
  }
  panel.x_ticks.assign(depths.begin(), depths.end());
  return panel;
}

// The deepest model that every series has a profile of.
std::int64_t deepest(const Analysis& analysis) {
  std::int64_t depth = 0;
  for (const Series& series : analysis.series) {
    for (const LayerProfile& one : series.profiles) depth = std::max(depth, one.depth);
  }
  return depth;
}

draw::Panel place_panel(const Analysis& analysis, const Cast& cast, std::int64_t depth) {
  draw::Panel panel{.x_label = "place in the stack of " + draw::counted(depth, "layer", "layers"),
                    .y_label = unit_of(analysis),
                    .y_log = analysis.log};
  for (const Series& series : analysis.series) {
    for (const LayerProfile& profile : series.profiles) {
      if (profile.depth != depth || profile.y.size() < 2) continue;
      const CastMember& member = cast.of(series.scheme);
      draw::Line line{
          .label = member.label, .scheme = cast.index(series.scheme), .tone = member.tone, .x = {}, .y = {}};
      for (std::size_t i = 0; i < profile.y.size(); ++i) {
        line.x.push_back(static_cast<double>(i + 1));
        line.y.push_back(profile.y[i].mean);
        line.low.push_back(profile.y[i].low);
        line.high.push_back(profile.y[i].high);
        if (i < profile.theory.size()) line.theory.push_back(profile.theory[i]);
        line.tips.push_back(fmt::format("{}, {}: {}", member.label, i < profile.sites.size() ? profile.sites[i] : "",
                                        draw::plain(profile.y[i])));
      }
      panel.lines.push_back(std::move(line));
    }
  }
  return panel;
}

draw::Panel value_panel(const Analysis& analysis, const Cast& cast) {
  draw::Panel panel{.x_label = analysis.title, .y_label = "share", .x_log = true};
  for (const Series& series : analysis.series) {
    if (series.histograms.empty()) continue;
    const MeasuredHistogram& one = series.histograms.back();
    const CastMember& member = cast.of(series.scheme);
    draw::Line line{.label = member.label, .scheme = cast.index(series.scheme), .tone = member.tone, .x = {}, .y = {}};
    for (std::size_t i = 0; i < one.share.size() && i + 1 < one.edges.size(); ++i) {
      line.x.push_back(std::sqrt(one.edges[i] * one.edges[i + 1]));
      line.y.push_back(one.share[i].mean);
      line.low.push_back(one.share[i].low);
      line.high.push_back(one.share[i].high);
      line.tips.push_back(fmt::format("{}, {} to {}: {}", member.label, draw::plain(one.edges[i]),
                                      draw::plain(one.edges[i + 1]), draw::plain(one.share[i])));
    }
    panel.lines.push_back(std::move(line));
  }
  return panel;
}

std::string zero_words(const Analysis& analysis, const Cast& cast) {
  std::vector<std::string> zeros;
  const double level = zero_level(analysis);
  for (const Series& series : analysis.series) {
    if (analysis.log && !series.x.empty() && is_zero(series, level)) zeros.push_back(cast.of(series.scheme).label);
  }
  return zeros.empty() ? "" : " Zero within rounding, and not drawn: " + listed(zeros) + ".";
}

bool has_theory(const Analysis& analysis) {
  return std::any_of(analysis.series.begin(), analysis.series.end(),
                     [](const Series& one) { return one.theory.has_value(); });
}

// Of networks of one depth nothing can be drawn by depth.
bool one_depth(const Analysis& analysis) {
  return std::ranges::all_of(analysis.series, [](const Series& one) { return one.x.size() < 2; });
}

bool has_places(const Analysis& analysis) {
  return std::ranges::any_of(analysis.series, [](const Series& one) {
    return std::ranges::any_of(one.profiles, [](const LayerProfile& profile) { return profile.y.size() > 1; });
  });
}

std::string main_caption(const Results& results, bool by_place) {
  if (by_place && is_trained(results)) return "The trained model by place, from its first layer to its last.";
  if (by_place)
    return "Networks at initialisation by place, from the first layer to the last: lines with bands are geometric "
           "means and 95 % intervals over networks, thin broken lines theory.";
  return "Networks at initialisation by depth: lines with bands are geometric means and 95 % intervals over networks, "
         "thin broken lines theory.";
}

void add_single(std::vector<Figure>& figures, std::string id, std::string title, std::string caption,
                draw::Panel panel) {
  if (panel.lines.empty()) return;
  auto panels = std::make_shared<std::vector<draw::Panel>>(1, std::move(panel));
  figures.push_back({.id = std::move(id),
                     .title = std::move(title),
                     .caption = std::move(caption),
                     .numbers = numbers_of(*panels),
                     .draw = [panels](double width) { return draw_panels(*panels, {.height = 210}, width); }});
}

}  // namespace

double zero_level(const Analysis& analysis) {
  std::vector<double> sizes;
  for (const Series& series : analysis.series) {
    for (const Estimate& y : series.y) {
      if (std::abs(y.mean) > 0 && std::isfinite(y.mean)) sizes.push_back(std::abs(y.mean));
    }
  }
  // What single precision leaves of 1 - cosine, and of the angle that it makes.
  constexpr double kCosine = 1.0 / (1 << 23);
  double least = analysis.name == "influence" ? kCosine
                 : analysis.name == "angle"   ? std::sqrt(2 * kCosine) / 3.14159265
                                              : 0;
  if (!sizes.empty()) {
    std::nth_element(sizes.begin(), sizes.begin() + static_cast<std::ptrdiff_t>(sizes.size() / 2), sizes.end());
    least = std::max(least, 1e-6 * sizes[sizes.size() / 2]);
  }
  return least;
}

bool is_zero(const Series& series, double level) {
  return std::all_of(series.y.begin(), series.y.end(), [&](const Estimate& y) { return !(std::abs(y.mean) > level); });
}

std::string short_title(const Analysis& analysis) {
  const Known* one = known(analysis.name);
  return one != nullptr && !one->title.empty() ? std::string(one->title) : analysis.title;
}

std::vector<const Analysis*> main_analyses(const Results& results) {
  std::vector<const Analysis*> found;
  for (const std::string_view name : kMain) {
    for (const Analysis& one : results.analyses) {
      if (one.name == name) found.push_back(&one);
    }
  }
  for (const Analysis& one : results.analyses) {
    if (found.empty()) found.push_back(&one);
  }
  return found;
}

void add_init_figures(std::vector<Figure>& figures, const Results& results, const Cast& cast) {
  auto panels = std::make_shared<std::vector<draw::Panel>>();
  std::string zeros;
  const std::vector<const Analysis*> main = main_analyses(results);
  const bool by_place =
      std::ranges::all_of(main, [](const Analysis* one) { return one_depth(*one) && has_places(*one); });
  for (const Analysis* one : main) {
    if (zeros.empty() && !by_place) zeros = zero_words(*one, cast);
    draw::Panel panel = by_place ? place_panel(*one, cast, deepest(*one)) : depth_panel(*one, cast);
    if (by_place) panel.x_label = "place", panel.names = panel.lines.size() > 1;
    if (panel.lines.empty()) continue;
    panel.title = by_place && one->name == "gradient" ? "Gradient" : short_title(*one);
    panels->push_back(std::move(panel));
  }
  if (!panels->empty()) {
    figures.push_back({.id = "init",
                       .title = is_trained(results) ? "Inside the trained model" : "Laws at initialisation",
                       .caption = main_caption(results, by_place) + zeros,
                       .numbers = numbers_of(*panels),
                       .draw = [panels](double width) {
                         return draw_panels(
                             *panels, {.columns = width < 500 ? 1 : static_cast<int>(panels->size()), .height = 190},
                             width);
                       }});
  }
  for (const Analysis& one : results.analyses) {
    const std::string source = one.source.empty() ? "" : " Source: " + one.source + ".";
    if (!one_depth(one) || !has_places(one))
      add_single(figures, "init-" + one.name, one.title,
                 one.about + (has_theory(one) ? " Broken lines are theory." : "") + zero_words(one, cast) + source,
                 depth_panel(one, cast));
    const std::int64_t depth = deepest(one);
    add_single(figures, "places-" + one.name, one.title + ", by place",
               one.about + fmt::format(" Along one network of {}.", draw::counted(depth, "layer", "layers")),
               place_panel(one, cast, depth));
    add_single(figures, "values-" + one.name, one.title + ", distribution",
               one.about + " Shares of the values by size, in the deepest network.", value_panel(one, cast));
  }
}

}  // namespace norma
