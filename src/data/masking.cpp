#include "data/masking.h"

#include <algorithm>
#include <cmath>

#include "norma/core/error.h"

namespace norma {

Masking::Masking(const DataConfig& config, std::int64_t time, std::int64_t words) : time_(time), words_(words) {
  if (!(config.mask_fraction > 0 && config.mask_fraction <= 1)) {
    fail("data.mask_fraction is {}; expected more than 0 and at most 1", config.mask_fraction);
  }
  const double share = config.mask_fraction * static_cast<double>(time);
  asked_ = std::max<std::int64_t>(1, static_cast<std::int64_t>(std::llround(share)));
}

void Masking::ask(Draws draws, std::int32_t* tokens, std::int32_t* targets) const {
  auto wanted = static_cast<std::uint32_t>(asked_), left = static_cast<std::uint32_t>(time_);
  for (std::int64_t t = 0; t < time_; ++t, --left) {  // selection sampling: exactly `asked_`, all sets alike
    targets[t] = kIgnored;
    if (draws.below(left) >= wanted) continue;
    --wanted;
    targets[t] = tokens[t];
    const std::uint32_t tenth = draws.below(10);
    if (tenth < 8) {
      tokens[t] = mask();
    } else if (tenth == 8) {
      tokens[t] = static_cast<std::int32_t>(draws.below(static_cast<std::uint32_t>(words_)));
    }
  }
}

std::string Masking::describe() const { return fmt::format("{} of {} tokens masked", asked_, time_); }

std::string Masking::decode(std::span<const std::int32_t> tokens, const Source& language,
                            std::string_view between) const {
  std::string text;
  const auto add = [&](std::string_view part) {
    if (!text.empty() && !part.empty()) text += between;
    text += part;
  };
  for (std::size_t begin = 0; begin <= tokens.size();) {
    const auto found = std::find(tokens.begin() + static_cast<std::ptrdiff_t>(begin), tokens.end(), mask());
    const auto end = static_cast<std::size_t>(found - tokens.begin());
    add(language.decode(tokens.subspan(begin, end - begin)));
    if (found != tokens.end()) add("<mask>");
    begin = end + 1;
  }
  return text;
}

}  // namespace norma
