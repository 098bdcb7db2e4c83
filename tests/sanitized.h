// Sanitizers cost much and learn little from large sizes: tests take fewer of them there.
#pragma once

namespace norma::test {

#ifdef NORMA_SANITIZED
inline constexpr bool kSanitized = true;
#else
inline constexpr bool kSanitized = false;
#endif

}  // namespace norma::test
