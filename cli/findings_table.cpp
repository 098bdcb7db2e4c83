#include "cli/findings_table.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <span>

#include "cli/table.h"
#include "cli/terminal.h"
#include "norma/lab/study_depths.h"

namespace norma::cli {
namespace {

constexpr std::size_t kColumn = 11;
constexpr std::size_t kPlot = 48;

std::string value_text(const Estimate& e) { return fmt::format("{:.3g}", e.mean); }
// Half of the interval; on a log scale it is as many times more as less, and does not reach below 0.
std::string spread_text(const Estimate& e, bool log) {
  if (e.n < 2) return "";
  return log && e.low > 0 ? fmt::format("\u00d7/\u00f7 {:.3g}", e.high / e.mean)
                          : fmt::format("\u00b1{:.1g}", e.high - e.mean);
}

std::string exponent_text(const Exponent& e) {
  return fmt::format("{:+.2f} [{:+.2f}, {:+.2f}]", e.value, e.low, e.high);
}

std::size_t width_of(const std::string& text) {
  return static_cast<std::size_t>(std::count_if(text.begin(), text.end(), [](char c) { return (c & 0xC0) != 0x80; }));
}

std::string padded(const std::string& text, std::size_t width) {
  return text + std::string(width > width_of(text) ? width - width_of(text) : 0, ' ');
}

std::vector<double> means_of(const std::vector<Estimate>& y) {
  std::vector<double> means;
  for (const Estimate& e : y) means.push_back(e.mean);
  return means;
}

// Long profiles are drawn by means of equal parts.
std::vector<double> condensed(std::span<const double> y) {
  const std::size_t parts = std::min(kPlot, y.size());
  std::vector<double> means;
  for (std::size_t part = 0; part < parts; ++part) {
    const std::size_t begin = part * y.size() / parts, end = (part + 1) * y.size() / parts;
    double sum = 0;
    for (std::size_t i = begin; i < end; ++i) sum += y[i];
    means.push_back(sum / static_cast<double>(end - begin));
  }
  return means;
}

// Where the stack of the site at `begin` ends: an encoder before its decoder, the way down of a U-Net before its
// middle.
std::size_t end_of_stack(const std::vector<std::string>& sites, std::size_t begin) {
  const auto stack_of = [](std::string_view site) { return site.substr(0, site.find("layers.")); };
  std::size_t end = begin;
  while (end < sites.size() && stack_of(sites[end]) == stack_of(sites[begin])) ++end;
  return end;
}

// The deepest model along its sites, one stack at a time, and what the theory says of them.
std::string profile_lines(const LayerProfile& profile, const std::string& scheme, std::size_t names, bool log) {
  const std::vector<double> measured = means_of(profile.y);
  const auto line = [&](const std::string& label, const std::vector<double>& y, std::size_t begin, std::size_t end) {
    return padded(label, names) + fmt::format("  {}  {:.3g} at {} \u2192 {:.3g} at {}\n",
                                              sparkline(condensed(std::span(y).subspan(begin, end - begin)), log),
                                              y[begin], profile.sites[begin], y[end - 1], profile.sites[end - 1]);
  };
  const auto stack = [&](std::size_t begin, std::size_t end) {
    std::string text = line("  " + scheme, measured, begin, end);
    if (!profile.theory.empty()) text += line("    theory", profile.theory, begin, end);
    return text;
  };
  std::string text;
  for (std::size_t begin = 0, end = 0; begin < profile.sites.size(); begin = end) {
    end = end_of_stack(profile.sites, begin);
    text += stack(begin, end);
  }
  return text;
}

// Where the deepest models of all schemes have something: a common range of bins, so that columns can be compared.
struct Bins {
  std::size_t begin = 0, end = 0;
};

Bins filled_bins(const Analysis& analysis) {
  constexpr double kSeen = 1e-5;
  Bins bins{.begin = SIZE_MAX, .end = 0};
  for (const Series& series : analysis.series) {
    if (series.histograms.empty()) continue;
    const std::vector<Estimate>& share = series.histograms.back().share;
    for (std::size_t bin = 0; bin < share.size(); ++bin) {
      if (share[bin].mean < kSeen) continue;
      bins.begin = std::min(bins.begin, bin);
      bins.end = std::max(bins.end, bin + 1);
    }
  }
  return bins;
}

std::string histogram_lines(const Analysis& analysis, std::size_t names) {
  const Bins bins = filled_bins(analysis);
  std::string text;
  for (const Series& series : analysis.series) {
    if (series.histograms.empty() || bins.begin >= bins.end) continue;
    const MeasuredHistogram& histogram = series.histograms.back();
    std::vector<double> shares;
    for (std::size_t bin = bins.begin; bin < bins.end; ++bin) shares.push_back(histogram.share[bin].mean);
    text += padded("  " + series.scheme, names) + fmt::format("  {:.2g} {} {:.2g}  singular values at {}, {}",
                                                              histogram.edges[bins.begin], sparkline(shares, false),
                                                              histogram.edges[bins.end], layers_text(histogram.depth),
                                                              histogram.exact ? "all" : "by projections");
    if (histogram.unresolved.mean > 0)
      text +=
          fmt::format("; {:.1f} % somewhere below {:.2g}", 100 * histogram.unresolved.mean, histogram.unresolved_below);
    text += '\n';
  }
  return text;
}

std::string table_of(const Analysis& analysis) {
  std::string text = fmt::format("{}\n", analysis.title);
  std::size_t names = 8;
  for (const Series& series : analysis.series) names = std::max(names, width_of(series.scheme));
  names = std::min<std::size_t>(names, 40) + 2;
  text += padded("  " + analysis.x, names + 2);
  for (const double x : analysis.series[0].x) text += fmt::format("{:>{}}", x, kColumn);
  const bool exponents = std::ranges::any_of(analysis.series, [](const Series& s) { return s.exponent.has_value(); });
  if (exponents) text += analysis.exponent_of.empty() ? "   exponent [95 %]" : "   exponent along sites [95 %]";
  text += '\n';
  for (const Series& series : analysis.series) {
    text += padded("  " + series.scheme, names + 2);
    for (const Estimate& e : series.y) text += fmt::format("{:>{}}", value_text(e), kColumn);
    if (series.exponent) text += "   " + exponent_text(*series.exponent);
    text += '\n';
    if (std::ranges::any_of(series.y, [](const Estimate& e) { return e.n > 1; })) {
      text += std::string(names + 2, ' ');
      for (const Estimate& e : series.y) {
        const std::string spread = spread_text(e, analysis.log);
        text += std::string(kColumn - std::min(kColumn, width_of(spread)), ' ') + spread;
      }
      text += '\n';
    }
    if (series.theory) {
      text += padded("    theory", names + 2);
      for (const double y : series.theory->y) text += fmt::format("{:>{}.3g}", y, kColumn);
      if (series.theory->exponent) text += fmt::format("   {:+.2f}", *series.theory->exponent);
      text += '\n';
    }
  }
  for (const Series& series : analysis.series) {
    if (series.profiles.empty()) continue;
    const LayerProfile& profile = series.profiles.back();
    if (analysis.name == "gradient_role") {  // no layers: roles by name
      text += padded("  " + series.scheme, names + 2);
      for (std::size_t i = 0; i < profile.sites.size(); ++i)
        text += fmt::format("  {} {:.3g}", profile.sites[i], profile.y[i].mean);
      text += '\n';
      continue;
    }
    text += profile_lines(profile, series.scheme, names + 2, analysis.log);
  }
  return text + histogram_lines(analysis, names + 2);
}

// One row per layer, for the layers of one model.
std::string depth_table(const DepthFinding& found) {
  const Estimate& depth = found.effective_depth;
  const std::string used =
      depth.n == 0 ? "no effective depth"
                   : fmt::format("effective depth {:.1f} [{:.1f}, {:.1f}]", depth.mean, depth.low, depth.high);
  std::string text =
      fmt::format("Depth of {}: {}, {}, loss {:.4g}\n", found.scheme, layers_text(found.layers), used, found.loss.mean);
  Table table;
  for (const char* heading : {"layer", "deleted", "swapped", "beside", "influence", "lens KL", "agreement", "probe"})
    table.column({.title = heading});
  const auto cell = [](const std::vector<Estimate>& y, std::size_t i) {
    return i < y.size() && !std::isnan(y[i].mean) ? fmt::format("{:+.3g}", y[i].mean) : std::string();
  };
  const auto number = [](const std::vector<double>& y, std::size_t i) {
    return i < y.size() ? fmt::format("{:.3g}", y[i]) : std::string();
  };
  const std::vector<double> influence = means_of(found.influence), probe = means_of(found.probe);
  for (std::size_t layer = 0; layer < found.deletion.size(); ++layer)
    table.add({layer < found.layer_names.size() ? found.layer_names[layer] : fmt::format("{}", layer),
               cell(found.deletion, layer), cell(found.swap, layer), cell(found.width_equivalence, layer),
               number(influence, layer), number(found.lens_divergence, layer + 1),
               number(found.lens_agreement, layer + 1), number(probe, layer + 1)});
  text += table.folded(output_columns());
  text += fmt::format("  loss with 0 to {} layers  {}  {:.3g} \u2192 {:.3g}\n", found.layers,
                      sparkline(found.kept_loss, false), found.kept_loss.front(), found.kept_loss.back());
  text += fmt::format("  cost of deletion         {}\n", sparkline(means_of(found.deletion), false));
  if (!found.path_share.empty()) {
    double mean = 0;
    for (std::size_t k = 0; k < found.path_share.size(); ++k) mean += static_cast<double>(k) * found.path_share[k];
    text += std::isfinite(mean) ? fmt::format("  gradient by path length  {}  mean {:.1f} of {} branches\n",
                                              sparkline(found.path_share, false), mean, found.path_share.size() - 1)
                                : std::string("  gradient by path length  none arrives\n");
  }
  return text;
}

std::string budget_table(const Findings& findings) {
  std::string text;
  for (const SchemeSummary& scheme : findings.schemes)
    text += fmt::format("{}: {}, {} parameters at {} layers, {} norms with {}\n", scheme.name, scheme.title,
                        scheme.parameters, scheme.layers, scheme.norm_instances, scheme.norm_parameters);
  return text;
}

}  // namespace

std::string sparkline(const std::vector<double>& values, bool log) {
  constexpr std::array kBars = {"\u2581", "\u2582", "\u2583", "\u2584", "\u2585", "\u2586", "\u2587", "\u2588"};
  const bool positive = std::ranges::all_of(values, [](double v) { return v > 0; });
  std::vector<double> heights;
  for (const double v : values) heights.push_back(log && positive ? std::log(v) : v);
  double low = INFINITY, high = -INFINITY;
  for (const double h : heights) {
    if (!std::isfinite(h)) continue;
    low = std::min(low, h);
    high = std::max(high, h);
  }
  // What differs by less than a thousandth is level: its steps would be rounding.
  const double size = log && positive ? 1 : std::max(std::abs(low), std::abs(high));
  const bool level = !(high - low > 1e-3 * size);
  std::string text;
  for (const double h : heights) {
    if (!std::isfinite(h)) {
      text += "?";
      continue;
    }
    const double share = level ? 0.5 : (h - low) / (high - low);
    text += kBars[static_cast<std::size_t>(std::lround(share * static_cast<double>(kBars.size() - 1)))];
  }
  return text;
}

std::string findings_table(const Findings& findings) {
  std::string text = budget_table(findings);
  for (const Analysis& analysis : findings.analyses) text += "\n" + table_of(analysis);
  for (const DepthFinding& found : findings.depth_use) text += "\n" + depth_table(found);
  for (const std::string& note : findings.notes) text += fmt::format("\nnote: {}\n", note);
  return text;
}

}  // namespace norma::cli
