// Numbers with intervals: a mean over seeds, and the exponent of a law.
#pragma once

#include <optional>
#include <span>
#include <vector>

namespace norma {

// A mean over n seeds and the ends of its 95 % interval (Student's t); equal to the mean for one seed.
struct Estimate {
  double mean = 0, low = 0, high = 0;
  int n = 0;
};

Estimate estimate_of(std::span<const double> values);
std::vector<Estimate> estimates_of(const std::vector<std::vector<double>>& values);

// A slope with the ends of its 95 % interval.
struct Exponent {
  double value = 0, low = 0, high = 0;
  double r2 = 1;        // share of the variance of the seeds' mean that the line explains
  double by_seeds = 0;  // half the width of the interval that the scatter of the seeds alone would give
};

// What an interval says of how a quantity changes: only what all of it says.
enum class Trend { grows, falls, level, open };
Trend trend_of(const Exponent& exponent);

// The slope of ln y on ln x, y[i][seed] at x[i]. Each seed has a slope of its own; the value is their mean. The
// interval is the wider of two: Student's t over the seeds' slopes, and Student's t from how far the mean curve strays
// from its line. Empty with fewer than two depths, or where a value is not finite and positive.
std::optional<Exponent> power_law(std::span<const double> x, std::span<const std::vector<double>> y);

// The same for ln y on x: the rate of exponential growth.
std::optional<Exponent> exponential_law(std::span<const double> x, std::span<const std::vector<double>> y);

// Two-sided 95 % quantile of Student's t.
double student_t(int degrees_of_freedom);

}  // namespace norma
