// What happens at which file system call of a process that runs under the shim. The environment says it:
//   NORMA_FAULT_ROOT   only calls on files below this folder count
//   NORMA_FAULT_PLAN   e.g. "kill-before", "error:5", "full"; see Deed
//   NORMA_FAULT_AT     the number of the call, from 1; none: nothing happens
//   NORMA_FAULT_LOG    a file that gets a line for every call (without a plan), or for the call that was hit
//   NORMA_FAULT_STASH  a folder beside the root: what a loss of power needs to bring back
#pragma once

#include <sys/types.h>

#include <cstddef>

namespace norma::faults {

enum class Kind { open_to_read, open_to_write, read, write, sync, name, lock, close };

enum class Deed {
  none,
  kill_before,
  kill_after,
  short_kill,   // half of the bytes, then the kill
  error,        // this call fails, once
  short_write,  // half of the bytes, and the process goes on
  full,         // from here on nothing that needs space succeeds; a write leaves half of its bytes
  dead,         // from here on every call fails
  read_only,    // from here on every call that changes something fails
  power,        // a kill, and whatever was not brought to disk is lost
  power_data,   // the same for contents only: new names are there, their contents are not
  power_names,  // the same for names only
  lie_write,    // one bit of what is written is another; success is reported
  lie_rename,   // nothing is renamed; success is reported
};

struct Plan {
  Deed deed = Deed::none;
  int error = 0;
  bool lies_about_sync = false;  // no fsync brings anything to disk
  long at = 0;
  const char* root = nullptr;
  const char* log = nullptr;
  const char* stash = nullptr;
};

const Plan& plan();
bool keeps_track();  // whether a loss of power may come

inline constexpr std::size_t kPathSize = 4096;

// The file of a path relative to a descriptor (AT_FDCWD: the working directory), or of a descriptor where the path is
// null; false where it lies outside the root.
bool locate(int descriptor, const char* path, char (&file)[kPathSize]);

struct Turn {
  Deed deed = Deed::none;
  bool first = false;  // of a deed that lasts
};

// What is to be done with the call that comes now; counts it. A deed that lasts is given for every later call.
Turn next(Kind kind, const char* name, const char* file, std::size_t bytes);

[[noreturn]] void die();  // as the plan says: with what was not brought to disk, or without it

}  // namespace norma::faults
