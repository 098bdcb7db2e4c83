// Random matrices without their scatter.
#pragma once

#include "norma/device/session.h"
#include "norma/models/parameters.h"

namespace norma {

// Replaces a random matrix by an orthogonal one of the same expected gain: what is measured is a mean over random
// matrices, and this leaves out most of their scatter, which hundreds of layers would multiply.
void straighten(Session& session, const ParameterSpec& spec, int member);

}  // namespace norma
