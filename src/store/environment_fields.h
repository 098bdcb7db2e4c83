// The environment as JSON, in environment.json and in results.json.
#pragma once

#include "core/json_fields.h"
#include "norma/store/environment.h"

namespace norma {

template <typename Io>
void fields(Io& io, In<Io, Environment>& facts) {
  io.field("norma", facts.norma);
  io.field("commit", facts.commit);
  io.field("compiler", facts.compiler);
  io.field("cpu", facts.cpu);
  io.field("instruction_set", facts.instruction_set);
  io.field("cores", facts.cores);
  io.field("memory_bytes", facts.memory_bytes);
  io.field("kernel", facts.kernel);
  io.field("time", facts.time);
  io.field("command_line", facts.command_line);
}

}  // namespace norma
