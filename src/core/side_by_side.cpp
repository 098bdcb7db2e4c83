#include "norma/core/side_by_side.h"

#include <algorithm>
#include <atomic>
#include <exception>
#include <thread>
#include <vector>

namespace norma {

void side_by_side(std::size_t count, int at_once, const std::function<void(std::size_t)>& job) {
  const std::size_t threads = std::min(count, static_cast<std::size_t>(std::max(1, at_once)));
  if (threads <= 1) {
    for (std::size_t index = 0; index < count; ++index) job(index);
    return;
  }
  std::atomic<std::size_t> next = 0;
  std::vector<char> failed(count, 0);
  {
    std::vector<std::jthread> team;
    for (std::size_t i = 0; i < threads; ++i) {
      team.emplace_back([&] {
        for (std::size_t index = next++; index < count; index = next++) {
          try {
            job(index);
          } catch (const std::exception&) {
            failed[index] = 1;
          }
        }
      });
    }
  }
  for (std::size_t index = 0; index < count; ++index) {
    if (failed[index] != 0) job(index);
  }
}

}  // namespace norma
