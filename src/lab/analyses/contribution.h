// What a formula adds to the stream and what it adds it to: of norm(a x + b f(x)) the wires a x and b f(x).
#pragma once

#include <optional>

#include "norma/models/model.h"

namespace norma {

struct Contribution {
  Wire kept, added;
};

// At the last sum between the branch and the stream after it that a branch reaches through sums, scales and other
// linear maps alone; a norm on the branch itself belongs to what is added. Other branches of the same formula count on
// neither side. Nothing where no sum is on the way, as in attention over depth.
std::optional<Contribution> contribution_of(const Model& model, const SublayerSite& site);

// The stream before a sublayer in the shape that it has behind it: where the sublayer changes that, what it keeps of
// it, as its projection. Throws Error where it keeps nothing of that shape.
Wire stream_before(const SublayerSite& site, const Contribution& parts);
Wire stream_before(const Model& model, const SublayerSite& site);

}  // namespace norma
