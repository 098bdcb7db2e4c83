// Where a scheme trains: loss of the short runs by peak rate, and the whole maps.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>
#include <set>

#include "report/figures/axis.h"
#include "report/figures/dots.h"
#include "report/figures/parts.h"

namespace norma {
namespace {

constexpr double kGap = std::numeric_limits<double>::quiet_NaN();

// One row of a map. Losses far above guessing are shown like divergence: at the top.
draw::Line row_line(const StabilityMap& map, std::size_t row, const Cast& cast, double ceiling) {
  const CastMember& member = cast.of(map.scheme);
  draw::Line line{.label = fmt::format("{}, {} {}", member.label, map.y_name, draw::plain(map.y[row])),
                  .scheme = cast.index(map.scheme),
                  .tone = member.tone,
                  .x = map.lr,
                  .y = {},
                  .marker = member.marker};
  bool several = false;
  for (std::size_t i = 0; i < map.lr.size(); ++i) {
    const Estimate loss = i < map.loss[row].size() ? map.loss[row][i] : Estimate{};
    const double lost = row < map.diverged.size() && i < map.diverged[row].size() ? map.diverged[row][i] : 0;
    const bool shown = loss.n > 0 && loss.mean <= ceiling;
    several = several || loss.n > 1;
    line.y.push_back(shown ? loss.mean : kGap);
    line.low.push_back(shown ? std::max(std::min(0.0, loss.mean), loss.low) : kGap);  // no loss is below 0
    line.high.push_back(shown ? loss.high : kGap);
    if (lost > 0 || (loss.n > 0 && !shown)) line.crosses.push_back(map.lr[i]);
    std::string tip = fmt::format("{}, {} {}, peak rate {}: {}", member.label, map.y_name, draw::plain(map.y[row]),
                                  draw::plain(map.lr[i]), "loss " + draw::loss_text(loss));
    if (lost > 0) tip += fmt::format("; {:.0f} % of seeds diverged", 100 * lost);
    line.tips.push_back(std::move(tip));
  }
  if (!several) line.low.clear(), line.high.clear();
  return line;
}

std::vector<const StabilityMap*> maps_in_order(const Results& results) {
  std::vector<const StabilityMap*> maps;
  for (const Tuned* one : tuned_in_order(results)) {
    const StabilityMap* map = map_of(results, *one);
    if (map != nullptr && !map->y.empty() && map->loss.size() == map->y.size()) maps.push_back(map);
  }
  return maps;
}

std::vector<draw::Panel> rate_panels(const Results& results, const Cast& cast,
                                     const std::vector<const StabilityMap*>& maps) {
  const std::optional<double> guessing = guessing_of(results);
  std::set<double> rates;  // tried anywhere
  for (const StabilityMap* map : maps) rates.insert(map->lr.begin(), map->lr.end());
  std::vector<draw::Panel> panels;
  for (const StabilityMap* map : maps) {
    const CastMember& member = cast.of(map->scheme);
    draw::Panel panel{.title = map_name(results, cast, *map),
                      .scheme = cast.index(map->scheme),
                      .tone = member.tone == draw::Tone::rest ? draw::Tone::ink : member.tone,
                      .x_label = "peak learning rate",
                      .y_label = fmt::format("loss of {} ({})", mapped_runs(results), loss_unit(results)),
                      .x_log = true,
                      .x_ticks = {rates.begin(), rates.end()}};
    const double ceiling = guessing ? 1.25 * *guessing : std::numeric_limits<double>::infinity();
    for (const std::size_t row : {map->y.size() - 1, std::size_t{0}}) {
      draw::Line line = row_line(*map, row, cast, ceiling);
      if (row == 0 && map->y.size() > 1) line.dash = 4, line.marker += 8;
      panel.lines.push_back(std::move(line));
      if (map->y.size() == 1) break;
    }
    if (guessing) panel.rules.push_back({*guessing, panels.empty() ? std::string(guessing_word(results)) : ""});
    panel.names = false;
    panels.push_back(std::move(panel));
  }
  return panels;
}

std::string rates_caption(const std::vector<const StabilityMap*>& maps, std::string_view runs) {
  const StabilityMap& map = *maps.front();
  std::string text = fmt::format("Held-out loss of the {} by peak learning rate", runs);
  if (map.y.size() > 1)
    text += fmt::format("; solid: {} steps of warmup, broken and hollow: {}", draw::plain(map.y.back()),
                        map.y.front() == 0 ? "none" : draw::plain(map.y.front()));
  return text +
         ". Bands are 95 % intervals over seeds, crosses at the top rates at which a seed diverged, or at which the "
         "loss is beyond the axis.";
}

FigureTable numbers_of_maps(const std::vector<const StabilityMap*>& maps) {
  FigureTable table{
      .columns = {"scheme", "layers", "rest", "lr", "y", "y_value", "loss", "low", "high", "n", "diverged"}};
  for (const StabilityMap* map : maps) {
    for (std::size_t row = 0; row < map->y.size(); ++row) {
      for (std::size_t i = 0; i < std::min(map->lr.size(), map->loss[row].size()); ++i) {
        const Estimate& loss = map->loss[row][i];
        table.rows.push_back(
            {map->scheme, std::to_string(map->layers), map->rest, draw::exact(map->lr[i]), map->y_name,
             draw::exact(map->y[row]), loss.n > 0 ? draw::exact(loss.mean) : "",
             loss.n > 0 ? draw::exact(loss.low) : "", loss.n > 0 ? draw::exact(loss.high) : "", std::to_string(loss.n),
             row < map->diverged.size() && i < map->diverged[row].size() ? draw::exact(map->diverged[row][i]) : ""});
      }
    }
  }
  return table;
}

Figure maps_figure(const Results& results, const Cast& cast, const std::vector<const StabilityMap*>& maps,
                   std::string id, std::string title) {
  auto heats = std::make_shared<std::vector<draw::Heat>>();
  const LossLevels levels = loss_levels(results);
  for (const StabilityMap* map : maps) heats->push_back(heat_of(results, *map, cast, levels));
  draw::HeatKey key{.x_label = "peak learning rate",
                    .y_label = maps.front()->y_name == "warmup" ? "warmup (steps)" : "layers",
                    .strong = draw::loss_text(levels.best),
                    .faint = draw::loss_text(levels.worst) +
                             (guessing_of(results) ? fmt::format(", {}", guessing_word(results)) : "")};
  return {.id = std::move(id),
          .title = std::move(title),
          .caption = fmt::format("Held-out loss of the {}, mean over seeds, for every peak learning rate and ",
                                 mapped_runs(results)) +
                     maps.front()->y_name + ". Hatched: seeds diverged, all of them where there is no colour.",
          .numbers = numbers_of_maps(maps),
          .draw = [heats, key](double width) { return draw_heats(*heats, key, width); }};
}

}  // namespace

void add_stability_figures(std::vector<Figure>& figures, const Results& results, const Cast& cast) {
  const std::vector<const StabilityMap*> maps = maps_in_order(results);
  if (!maps.empty()) {
    auto panels = std::make_shared<std::vector<draw::Panel>>(rate_panels(results, cast, maps));
    figures.push_back({.id = "stability",
                       .title = "Loss by learning rate",
                       .caption = rates_caption(maps, mapped_runs(results)),
                       .numbers = numbers_of(*panels),
                       .draw = [panels](double width) {
                         return draw_panels(*panels,
                                            {.columns = width < 500 ? 2 : 4, .height = 104, .axes = draw::Axes::shared},
                                            width);
                       }});
    figures.push_back(maps_figure(results, cast, maps, "maps", "Stability maps"));
  }
  std::vector<const StabilityMap*> by_depth;
  for (const StabilityMap& map : results.maps) {
    if (map.y_name == "layers" && !map.y.empty() && map.loss.size() == map.y.size()) by_depth.push_back(&map);
  }
  if (!by_depth.empty())
    figures.push_back(maps_figure(results, cast, by_depth, "maps-depth", "Stability maps by depth"));
  if (results.ramps.empty()) return;
  auto dots = std::make_shared<draw::Dots>();
  for (const RampLimit& ramp : results.ramps) {
    const CastMember& member = cast.of(ramp.scheme);
    dots->rows.push_back(
        {.label = fmt::format("{}, {}{}{}", member.label, draw::counted(ramp.layers, "layer", "layers"),
                              ramp.rest.empty() ? "" : ", ", ramp.rest),
         .scheme = cast.index(ramp.scheme),
         .tone = member.tone,
         .marker = member.marker,
         .value = ramp.lr,
         .digits = (ramp.beyond ? "≥ " : "") + draw::plain(ramp.lr),
         .note = "none"});
  }
  dots->x_label = "learning rate of the last calm step";
  dots->log = true;
  figures.push_back({.id = "ramps",
                     .title = "How far a growing rate goes",
                     .caption = "Learning rate of the last calm step of runs whose rate grows, mean and 95 % interval "
                                "over seeds; ≥ where a seed reached the end of the ramp.",
                     .numbers = numbers_of(*dots),
                     .draw = [dots](double width) { return draw_dots(*dots, width); }});
}

}  // namespace norma
