// Does a model that says one token after another see those that it has yet to say? A norm over positions, or a mean
// over the batch in a formula, lets it: its loss then means nothing.
#pragma once

#include <optional>
#include <string>

#include "norma/models/model.h"

namespace norma {

// Measured, once, on a small copy of the model in double precision, with the same scheme, norms and branches: at most
// 48 layers, narrow, short, and with every weight moved off its start, so that nothing hides behind a zero. Schedules
// of the scheme are tried at the start, the middle and the end of `steps`. Nothing where a later token changes no
// earlier logit, or where the family has no later tokens; otherwise what it is, as in "a later token changes an earlier
// logit: 'layers.0.attn.norm' is a batch norm, which takes its statistics over positions".
std::optional<std::string> leak_of(const ModelConfig& model, double steps);

// Throws Error for a model that leaks.
void require_causal(const ModelConfig& model, double steps);

}  // namespace norma
