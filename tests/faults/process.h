// A process with a time limit, whose words on standard error are kept.
#pragma once

#include <chrono>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

namespace norma::faults {

struct Exit {
  int code = -1;  // -1: a signal ended it
  int signal = 0;
  bool hung = false;
  std::string error;  // the end of what it wrote to standard error
};

struct Start {
  std::vector<std::string> words;                  // the program and its arguments
  std::map<std::string, std::string> environment;  // on top of ours
  std::filesystem::path folder;                    // where it is started
  std::filesystem::path error_file;
  std::chrono::seconds limit{60};
};

Exit run(const Start& start);

std::string text_of(const std::filesystem::path& file);  // empty where there is none

}  // namespace norma::faults
