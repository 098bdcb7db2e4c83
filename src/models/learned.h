// How a learned value of a scheme starts.
#pragma once

#include "norma/models/parameters.h"
#include "norma/schemes/evaluate.h"
#include "norma/schemes/scheme.h"

namespace norma {

struct LearnedStart {
  Shape shape;
  ParameterSpec spec;
  double factor = 1;  // between what is stored and what a formula sees
};

// At a place with these numbers, d among them. Throws Error naming the scheme.
LearnedStart start_of(const LearnedSpec& learned, const Variables& numbers, const std::string& scheme);

}  // namespace norma
