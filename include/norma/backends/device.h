// Where plans run: the devices that this build knows and this machine has.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "norma/device/session.h"

namespace norma {

enum class Device { automatic, cpu, cuda };  // automatic: a GPU where there is one that can be used, else the CPU

// How a GPU multiplies. tf32: the factors of products are rounded to 11 bits. bf16: mixed precision, in which weights,
// the residual stream, statistics and sums are f32, and what products read and write is bf16.
enum class Precision { f32, tf32, bf16 };

std::string_view name_of(Precision precision);
Precision parse_precision(std::string_view name);  // throws Error
// Throws Error where `device` does not multiply so.
void check(Precision precision, Device device, DType dtype = DType::f32);

std::string_view name_of(Device device);
Device parse_device(std::string_view name);  // throws Error naming what is known

// Why the device cannot be used here, in one sentence; empty where it can.
std::string why_not(Device device);
// cpu or cuda, for tensors of this type: f64 stays on the CPU. Throws Error where the device was asked for and cannot
// be used.
Device resolve(Device device, DType dtype = DType::f32);
std::string describe(Device device);  // "cpu", "cuda (NVIDIA H200)"

std::int64_t available_memory(Device device);  // of the device that this resolves to, now

const Backend& backend(Device device, DType dtype = DType::f32);

// On the device that the plan was made for.
std::unique_ptr<Session> make_session(std::shared_ptr<const Plan> plan, Session::Options options = {});

}  // namespace norma
