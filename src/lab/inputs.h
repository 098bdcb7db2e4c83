// Writes one batch and everything else that a model reads into one member of a session.
#pragma once

#include "norma/data/source.h"
#include "norma/models/model.h"

namespace norma {

void write_inputs(Session& session, const ModelConfig& model, const std::vector<Schedule>& schedules,
                  const Batch& batch, double step, double steps, int member);

}  // namespace norma
