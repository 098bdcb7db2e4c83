#include "norma/models/profile.h"

#include <algorithm>

namespace norma {
namespace {

template <typename T>
void copy_measured(Session& profiled, Session& target, const std::string& name, int member) {
  std::ranges::fill(target.tensor<T>(name, member), profiled.tensor<T>("profile." + name, member)[0]);
}

}  // namespace

void apply_profile(Session& profiled, Session& target, const std::vector<ParameterSpec>& specs, int member) {
  for (const ParameterSpec& spec : specs) {
    if (!profiled.plan().has_slot("profile." + spec.name)) continue;
    if (profiled.plan().slot("profile." + spec.name).type.dtype == DType::f32) {
      copy_measured<float>(profiled, target, spec.name, member);
    } else {
      copy_measured<double>(profiled, target, spec.name, member);
    }
  }
}

}  // namespace norma
