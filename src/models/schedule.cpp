#include "norma/models/schedule.h"

namespace norma {

double Schedule::at(double t, double steps) const {
  Variables known = numbers;
  known["t"] = t;
  known["T"] = steps;
  for (const NamedExpression& link : chain)
    known[link.name] = evaluate(*link.value, known, print_expression(*link.value));
  return known.at(name);
}

}  // namespace norma
