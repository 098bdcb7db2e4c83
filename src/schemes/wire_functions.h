// Functions of wires that take more than a line of the table.
#pragma once

#include <span>

#include "norma/schemes/functions.h"

namespace norma {

Wire weigh_copies(std::span<const Traced> a);
Wire mix_copies(std::span<const Traced> a);
Wire spread_copies(std::span<const Traced> a);
Wire copies_of_one(std::span<const Traced> a);
Wire append_copy(std::span<const Traced> a);
Wire sum_copies(std::span<const Traced> a);
Wire dot_last(std::span<const Traced> a);
Wire flat_copies(std::span<const Traced> a);
Wire as_matrix(std::span<const Traced> a);
Wire sinkhorn_matrix(std::span<const Traced> a);
Wire variance_of_all(std::span<const Traced> a);

}  // namespace norma
