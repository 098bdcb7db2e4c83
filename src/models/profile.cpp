#include "norma/models/profile.h"

namespace norma {

void apply_profile(Session& profiled, Session& target, const std::vector<ParameterSpec>& specs, int member) {
  for (const ParameterSpec& spec : specs) {
    const Handle measured = profiled.find("profile." + spec.name);
    if (measured) target.stage_number(spec.name, member, profiled.number(measured, member));
  }
}

}  // namespace norma
