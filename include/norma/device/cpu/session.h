// Opens a session on the CPU.
#pragma once

#include "norma/device/session.h"

namespace norma {

std::unique_ptr<Session> make_cpu_session(std::shared_ptr<const Plan> plan, Session::Options options = {});

}  // namespace norma
