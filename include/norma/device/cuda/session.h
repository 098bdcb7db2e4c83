// Opens a session on a GPU; throws Error that says why where there is none that can be used.
#pragma once

#include "norma/device/session.h"

namespace norma {

std::unique_ptr<Session> make_cuda_session(std::shared_ptr<const Plan> plan, Session::Options options = {});

}  // namespace norma
