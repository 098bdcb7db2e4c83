// Which mapped file an address belongs to, for a handler of SIGBUS: a mapped file that shrinks, or whose disk fails,
// faults when it is read.
#pragma once

namespace norma {

// The path of the MappedFile that holds this address; nullptr where there is none. Takes no lock and allocates nothing.
const char* mapped_path_at(const void* address) noexcept;

}  // namespace norma
