// Opens a session on a GPU; throws Error that says why where there is none that can be used. And what is measured of
// it.
#pragma once

#include "norma/device/session.h"

namespace norma {

std::unique_ptr<Session> make_cuda_session(std::shared_ptr<const Plan> plan, Session::Options options = {});

// Of a session on a GPU: the seconds that each step of its plan takes by itself, again and again. What the tensors hold
// afterwards is undefined.
std::vector<double> seconds_by_step(Session& session, int repeats = 20);

// Limits of the card, in bytes read and written a second and in operations a second.
double card_copy_rate(std::int64_t bytes);
double card_product_rate(std::int64_t size, DType dtype, bool tf32);

}  // namespace norma
