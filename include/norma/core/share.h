// A share of right answers is a mean over the records that happened to be held out.
#pragma once

namespace norma {

struct RightShare {
  double value = 0;
  double records = 0;  // answers that it rests on
};

struct ShareInterval {
  double low = 0, high = 1;
};

// Wilson's interval for a share of so many independent records, `z` deviations wide on each side. It stays within 0 and
// 1, and has a width where all answers are right.
ShareInterval wilson_interval(const RightShare& share, double z = 1.959964);

}  // namespace norma
