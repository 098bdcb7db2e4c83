#include "cli/output.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <iostream>
#include <system_error>

#include "cli/terminal.h"

namespace norma::cli {
namespace {

int refused = 0;  // why standard output took no more; 0: it took everything

void occupy(int stream) {
  if (fcntl(stream, F_GETFD) != -1) return;
  // Writing to standard output must fail, as it would have; standard error is nobody's loss.
  const int nothing = open("/dev/null", stream == STDERR_FILENO ? O_WRONLY : O_RDONLY);
  if (nothing < 0) open("/", O_RDONLY);  // every process has one
}

}  // namespace

void prepare_streams() {
  for (const int stream : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) occupy(stream);  // the lowest free number first
  std::signal(SIGPIPE, SIG_IGN);
  std::signal(SIGXFSZ, SIG_IGN);
}

void write_out(std::string_view text) {
  if (refused == 0 && std::fwrite(text.data(), 1, text.size(), stdout) != text.size()) refused = errno;
}

void flush_out() {
  if (refused == 0 && std::fflush(stdout) != 0) refused = errno;
}

void write_err(std::string_view text) {
  while (!text.empty()) {
    const ssize_t written = ::write(STDERR_FILENO, text.data(), text.size());
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) return;
    text.remove_prefix(static_cast<std::size_t>(written));
  }
}

int finish_streams(int code) {
  errno = 0;
  const bool arrived = std::cout.flush().good() && std::fflush(stdout) == 0;  // helps and versions go through std::cout
  if (!arrived && refused == 0) refused = errno;
  if (refused == 0 || code != 0) return code;
  if (refused == EPIPE) return 128 + SIGPIPE;  // the reader has seen enough, as with `| head`
  note("norma: cannot write the output: {}\n", std::system_category().message(refused));
  return 2;
}

void write_lines(std::string_view text) {
  const std::optional<std::size_t> columns = output_columns();
  write_out(columns ? wrapped(text, *columns) : std::string(text));
}

void write_notes(std::string_view text) {
  const std::optional<std::size_t> columns = error_columns();
  if (!columns) return write_err(text);
  const auto line_at = [&](std::size_t at) { return text.substr(std::min(at, text.size()), text.find('\n', at) - at); };
  const auto is_caret = [](std::string_view line) {
    return line.find('^') != std::string_view::npos && line.find_first_not_of(" ^") == std::string_view::npos;
  };
  std::string folded;
  for (std::size_t at = 0; at < text.size();) {
    const std::string_view line = line_at(at), next = line_at(at + line.size() + 1);
    folded += is_caret(line) || is_caret(next) ? std::string(line) : wrapped(line, *columns);
    at += line.size() + 1;
    if (at <= text.size()) folded += '\n';
  }
  write_err(folded);
}

void write_json(std::string_view json) { write_out(printable_json(json)); }

void write_said(std::string_view text) { write_out(isatty(STDOUT_FILENO) != 0 ? printable(text) : std::string(text)); }

}  // namespace norma::cli
