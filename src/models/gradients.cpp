#include "norma/models/gradients.h"

#include "norma/core/error.h"
#include "norma/graph/differentiate.h"

namespace norma {

Wires differentiate_model(const ModelConfig& config, Wire loss, std::span<const Wire> wrt) {
  try {
    return differentiate(loss, wrt);
  } catch (const Error& error) {
    if (const std::optional<std::string> unread = unread_name(*config.scheme))
      fail("the scheme '{}' cannot be trained; {}", config.scheme.asked(), *unread);
    fail(
        "the scheme '{}' cannot be trained: {}; whatever a formula calls must reach its value, and not through sg "
        "alone",
        config.scheme.asked(), error.what());
  }
}

}  // namespace norma
