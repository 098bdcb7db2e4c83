// Every other held-out batch of a source, so that what tunes and what judges are never the same data.
#pragma once

#include <memory>
#include <string>

#include "norma/data/source.h"

namespace norma {

enum class HeldOut { all, even, odd };
HeldOut parse_held_out(const std::string& name);  // throws Error

// `whole` has twice the batches that are wanted.
std::unique_ptr<Source> part_of(std::unique_ptr<Source> whole, HeldOut part);

}  // namespace norma
