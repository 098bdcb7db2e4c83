// Scales, their ticks, and numbers as people read them.
#pragma once

#include <string>
#include <vector>

#include "norma/lab/estimate.h"

namespace norma::draw {

struct Scale {
  double low = 0, high = 1;  // values
  double from = 0, to = 1;   // where they are drawn
  bool log = false;

  double at(double value) const;
  std::vector<double> ticks(int about) const;
  bool shows(double value) const;  // not beyond an end; false for what is not finite
};

// What has to be shown, growing value by value. On a log axis values that are not positive do not count.
class Range {
 public:
  explicit Range(bool log = false) : log_(log) {}
  void add(double value);
  bool empty() const { return low_ > high_; }
  double low() const { return low_; }
  double high() const { return high_; }
  // A little wider than the values, so that none lies on the frame.
  Scale scale(double from, double to, double margin = 0.05) const;

 private:
  bool log_;
  double low_ = 1e300, high_ = -1e300;
};

std::string plain(double value, int digits = 3);  // "0.003", "−1.25", "3.2e−7"; "–" for what is not a number
// Of one axis, alike: with the decimals that the finest needs, or all as powers of ten.
std::vector<std::string> tick_texts(const std::vector<double>& ticks, const Scale& scale);
std::string loss_text(double loss);  // three decimals, everywhere
std::string loss_text(const Estimate& loss);
std::string exponent_text(double exponent);      // two decimals, everywhere
std::string depth_text(double layers);           // with one decimal, as everywhere
std::string depth_text(const Estimate& layers);  // "1.955 [1.950, 1.960]"
std::string plain(const Estimate& value, int digits = 3);
std::string counted(long long number, const char* one, const char* many);  // "1 seed", "3 seeds", "1,202,432 tokens"

}  // namespace norma::draw
