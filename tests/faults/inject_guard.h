// A call of the program on its way to the kernel: counted, and hit when its turn has come.
#pragma once

#include <cerrno>
#include <cstddef>
#include <vector>

#include "inject_plan.h"
#include "inject_power.h"

namespace norma::faults {

enum class Space { needed, not_needed };

inline bool changes_something(Kind kind) {
  return kind == Kind::open_to_write || kind == Kind::write || kind == Kind::name || kind == Kind::sync;
}

// The error that the deed makes of this call; 0: none.
inline int error_of(Deed deed, Kind kind, Space space) {
  switch (deed) {
    case Deed::error: return plan().error;
    case Deed::dead: return EIO;
    case Deed::read_only: return changes_something(kind) ? EROFS : 0;
    case Deed::full: return space == Space::needed ? ENOSPC : 0;
    default: return 0;
  }
}

inline bool dies_before(Deed deed) {
  return deed == Deed::kill_before || deed == Deed::power || deed == Deed::power_data || deed == Deed::power_names;
}

// A call that cannot be done by halves.
template <typename Call>
long guarded(Kind kind, const char* name, const char* file, Space space, Call call) {
  const Turn turn = next(kind, name, file, 0);
  if (dies_before(turn.deed)) die();
  if (const int error = error_of(turn.deed, kind, space)) {
    errno = error;
    return -1;
  }
  if (turn.deed == Deed::lie_rename && kind == Kind::name) return 0;
  const long result = call();
  if (turn.deed == Deed::kill_after) die();
  return result;
}

// A write of `bytes` at `data`; call(data, n) writes n of them.
template <typename Call>
long guarded_write(const char* name, const char* file, const void* data, std::size_t bytes, Call call) {
  const Turn turn = next(Kind::write, name, file, bytes);
  if (dies_before(turn.deed)) die();
  const bool half =
      turn.deed == Deed::short_kill || turn.deed == Deed::short_write || (turn.deed == Deed::full && turn.first);
  if (half && bytes > 1) {
    const long result = call(data, bytes / 2);
    if (turn.deed == Deed::short_kill) die();
    return result;
  }
  if (const int error = error_of(turn.deed, Kind::write, Space::needed)) {
    errno = error;
    return -1;
  }
  std::vector<char> other;
  if (turn.deed == Deed::lie_write && bytes > 0) {
    other.assign(static_cast<const char*>(data), static_cast<const char*>(data) + bytes);
    other[bytes / 2] = static_cast<char>(other[bytes / 2] ^ 1);
  }
  const long result = call(other.empty() ? data : other.data(), bytes);
  if (keeps_track() && result > 0) written(file);
  if (turn.deed == Deed::kill_after || turn.deed == Deed::short_kill) die();
  return result;
}

}  // namespace norma::faults
