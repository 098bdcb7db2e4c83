// TOML of a user, checked: too large, malformed or with letters outside strings throws Error with origin and line.
#pragma once

#include <toml++/toml.h>

#include <filesystem>
#include <string>
#include <string_view>

namespace norma {

toml::table parse_toml(std::string_view text, std::string_view origin);

// The text of a TOML file; one that is too large is cut one byte behind what parse_toml accepts.
std::string read_toml(const std::filesystem::path& path);

std::string toml_string(std::string_view text);  // in quotes
std::string toml_key(std::string_view name);     // in quotes where it needs them

}  // namespace norma
