#include "report/figures/labels.h"

#include <algorithm>
#include <cmath>

#include "report/figures/font.h"

namespace norma::draw {
namespace {

// Heights at least `step` apart, in order, as near to the wanted ones as pushing down and then up makes them.
std::vector<double> apart(const std::vector<double>& wanted, double step, double top, double bottom) {
  std::vector<double> y = wanted;
  for (std::size_t i = 0; i < y.size(); ++i) y[i] = std::max(y[i], i == 0 ? top : y[i - 1] + step);
  for (std::size_t i = y.size(); i-- > 0;) y[i] = std::min(y[i], i + 1 == y.size() ? bottom : y[i + 1] - step);
  return y;
}

}  // namespace

void place_labels(Scene& scene, std::vector<Label> labels, const LabelColumn& column) {
  const double step = column.size + 1.5;
  const auto places = static_cast<std::size_t>(std::max(1.0, (column.bottom - column.top + step) / step));
  if (labels.size() > places) {
    std::stable_partition(labels.begin(), labels.end(), [](const Label& label) { return label.tone != Tone::rest; });
    labels.resize(places);
  }
  std::stable_sort(labels.begin(), labels.end(), [](const Label& a, const Label& b) { return a.from.y < b.from.y; });
  std::vector<double> wanted;
  for (const Label& label : labels) wanted.push_back(label.from.y);
  const std::vector<double> y = apart(wanted, step, column.top, column.bottom);
  for (std::size_t i = 0; i < labels.size(); ++i) {
    const Label& label = labels[i];
    if (std::abs(y[i] - label.from.y) > 3 || label.from.x < column.x - 14) {
      scene.add(Shape{.points = {{label.from.x + 4, label.from.y}, {column.x - 2, y[i]}},
                      .stroke = {.tone = label.tone, .opacity = 0.5},
                      .width = 0.7,
                      .dash = label.from.x < column.x - kFarName ? 2.0 : 0.0,
                      .scheme = label.scheme});
    }
    scene.add(Text{.at = {column.x, y[i] + 3.5},
                   .text = fitted(label.text, column.size, column.room + 2),
                   .size = column.size,
                   .paint = {.tone = label.tone == Tone::rest ? Tone::muted : label.tone},
                   .scheme = label.scheme});
  }
}

}  // namespace norma::draw
