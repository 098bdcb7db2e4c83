// What norma says. Results go to standard output, everything else to standard error. Neither ever stops a run: what
// standard error does not take is lost, what standard output does not take is an error when the program ends, with all
// work stored.
#pragma once

#include <fmt/format.h>

#include <concepts>
#include <string>
#include <string_view>

#include "norma/core/printable.h"

namespace norma::cli {

// Before anything is opened: a standard stream that is closed would give its number to the next file, and what is
// printed would land in it. A reader that has gone away, or a file that may not grow, must fail the write, not the run.
void prepare_streams();

// The exit code once all of the output has arrived, or been refused.
int finish_streams(int code);

void flush_out();  // what was written so far is seen now
void write_out(std::string_view text);
void write_err(std::string_view text);

// Texts among the arguments may come from users' files.
template <typename T>
decltype(auto) shown(const T& value) {
  if constexpr (std::convertible_to<const T&, std::string_view>) {
    return printable(value);
  } else {
    return (value);
  }
}

template <typename... Args>
std::string shown_text(fmt::string_view format, const Args&... args) {
  return [&](const auto&... texts) { return fmt::vformat(format, fmt::make_format_args(texts...)); }(shown(args)...);
}

// Whole lines; what is wider than the terminal goes on in the next one.
void write_lines(std::string_view text);

// As fmt::print, but whole lines.
template <typename... Args>
void print(fmt::format_string<Args...> format, Args&&... args) {
  write_lines(shown_text(format, args...));
}

// The same to standard error. A line with a caret below it is left alone, as the caret would no longer point.
void write_notes(std::string_view text);

// Progress, notes and errors.
template <typename... Args>
void note(fmt::format_string<Args...> format, Args&&... args) {
  write_notes(shown_text(format, args...));
}

// JSON as it is stored.
void write_json(std::string_view json);

// What a model says: as it is, but on a terminal.
void write_said(std::string_view text);

}  // namespace norma::cli
