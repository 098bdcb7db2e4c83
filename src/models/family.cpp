#include <algorithm>
#include <string>
#include <vector>

#include "norma/core/error.h"
#include "norma/core/names.h"
#include "norma/models/model.h"

namespace norma {

std::string_view name_of(Family family) {
  switch (family) {
    case Family::decoder: return "decoder";
    case Family::encoder: return "encoder";
    case Family::encoder_decoder: return "encoder_decoder";
  }
  return "family";
}

Family parse_family(std::string_view name) {
  std::string plain(name);
  std::replace(plain.begin(), plain.end(), '-', '_');
  std::vector<std::string> names;
  for (const Family family : {Family::decoder, Family::encoder, Family::encoder_decoder}) {
    if (name_of(family) == plain) return family;
    names.emplace_back(name_of(family));
  }
  fail("there is no family '{}'{}; expected decoder, encoder or encoder_decoder", name, did_you_mean(name, names));
}

}  // namespace norma
