// The opening figure: tuned loss with intervals, guessing and optimum, and a small stability map in each row.
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

std::string setting_words(const Tuned& tuned) {
  if (!tuned.lr) return "";
  return fmt::format("peak rate {}, {}", draw::plain(*tuned.lr),
                     tuned.warmup > 0 ? fmt::format("{} steps of warmup", tuned.warmup) : "no warmup");
}

// Columns for the rates of all schemes, so that one lies below another.
draw::Heat with_rates(draw::Heat heat, const std::vector<double>& own, const std::set<double>& all) {
  for (std::vector<draw::HeatCell>& row : heat.cells) {
    std::vector<draw::HeatCell> wider;
    for (const double rate : all) {
      const auto found = std::find(own.begin(), own.end(), rate);
      const auto column = static_cast<std::size_t>(found - own.begin());
      wider.push_back(column < row.size() ? row[column] : draw::HeatCell{.level = std::nan("")});
    }
    row = std::move(wider);
  }
  heat.x.clear();
  for (const double rate : all) heat.x.push_back(draw::plain(rate));
  return heat;
}

draw::DotRow row_of(const Results& results, const Cast& cast, const Tuned& tuned, const LossLevels& levels,
                    const std::set<double>& rates) {
  const CastMember& member = cast.of(tuned.scheme);
  const Verdict* verdict = verdict_of(results, tuned.scheme);
  const bool apart =
      results.kind == ResultsKind::study && (verdict == nullptr || verdict->rank < 1 || !is_comparable(results, tuned));
  draw::DotRow row{.label = row_name(results, cast, tuned),
                   .scheme = cast.index(tuned.scheme),
                   .tone = member.tone,
                   .marker = member.marker};
  if (!apart) row.value = tuned.loss;
  if (row.value.mean >= 0) row.value.low = std::max(0.0, row.value.low);  // as loss_text has it
  const std::optional<double> guessing = guessing_of(results);
  row.far = guessing && row.value.n > 0 && row.value.mean > 0.99 * *guessing;
  if (row.value.n > 0) {
    row.digits = draw::loss_text(tuned.loss);
    row.tip = fmt::format("{}: {}; {}{}; {}", row.label, row.digits,
                          tuned.accuracy ? right_answers(*tuned.accuracy) + "; " : "", setting_words(tuned),
                          draw::counted(tuned.loss.n, "seed", "seeds"));
  }
  row.note = verdict != nullptr ? std::string(name_of(verdict->verdict))
             : row.value.n > 0  ? ""
                                : "no setting without a diverged seed";
  if (const StabilityMap* map = map_of(results, tuned))
    row.map = with_rates(heat_of(results, *map, cast, levels), map->lr, rates);
  return row;
}

// Schemes that a study did not train at all, such as one that sees the future.
void add_untrained(draw::Dots& dots, const Results& results, const Cast& cast) {
  for (const Verdict& verdict : results.verdicts) {
    const bool there = std::any_of(results.tuned.begin(), results.tuned.end(),
                                   [&](const Tuned& one) { return one.scheme == verdict.scheme; });
    if (there) continue;
    const CastMember& member = cast.of(verdict.scheme);
    dots.rows.push_back({.label = member.label,
                         .scheme = cast.index(verdict.scheme),
                         .tone = member.tone,
                         .marker = member.marker,
                         .note = std::string(name_of(verdict.verdict))});
  }
}

std::string caption_of(const Results& results, const draw::Dots& dots) {
  int fewest = 1 << 30, most = 0;
  std::int64_t steps = 0;
  for (const draw::DotRow& row : dots.rows) {
    if (row.value.n > 0) fewest = std::min(fewest, row.value.n), most = std::max(most, row.value.n);
  }
  for (const Tuned& one : results.tuned) steps = std::max(steps, one.steps);
  std::string text = "Held-out loss of each scheme at its tuned setting";
  if (steps > 0) text += fmt::format(" after {} steps", steps);
  if (most > 1)
    text +=
        fmt::format(", mean and 95 % interval over {}{}",
                    fewest == most ? draw::counted(most, "seed", "seeds") : fmt::format("{} to {} seeds", fewest, most),
                    steps > 0 ? " and held-out data" : "");
  if (most == 1) text += ", one seed and so no interval";
  text += results.maps.empty()
              ? "."
              : fmt::format(". Right: loss of {} by peak learning rate, from left to right, and warmup, from below.",
                            mapped_runs(results));
  return text;
}

}  // namespace

void add_loss_figure(std::vector<Figure>& figures, const Results& results, const Cast& cast) {
  if (results.tuned.empty()) return;
  auto dots = std::make_shared<draw::Dots>();
  const LossLevels levels = loss_levels(results);
  std::set<double> rates;
  for (const StabilityMap& map : results.maps) rates.insert(map.lr.begin(), map.lr.end());
  for (const Tuned* one : tuned_in_order(results)) dots->rows.push_back(row_of(results, cast, *one, levels, rates));
  add_untrained(*dots, results, cast);
  dots->x_label = fmt::format("held-out loss ({})", loss_unit(results));
  if (const std::optional<double> optimum = optimum_of(results))
    dots->rules.push_back({*optimum, "optimum " + draw::loss_text(*optimum)});
  if (const std::optional<double> guessing = guessing_of(results))
    dots->rules.push_back({*guessing, fmt::format("{} {}", guessing_word(results), draw::loss_text(*guessing))});
  dots->key = {.x_label = "peak learning rate",
               .y_label = "",
               .strong = "low loss",
               .faint = std::string(guessing_word(results))};
  figures.push_back({.id = "loss",
                     .title = "Tuned loss and stability by scheme",
                     .caption = caption_of(results, *dots),
                     .numbers = numbers_of(*dots),
                     .draw = [dots](double width) { return draw_dots(*dots, width); }});
}

}  // namespace norma
