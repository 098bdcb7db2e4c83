#include "cli/diagnosis_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "cli/terminal.h"

namespace norma::cli {
namespace {

std::string options_of(const Suggestion& suggestion) {
  std::string options;
  for (const std::string& change : suggestion.changes) options += (options.empty() ? "--" : " --") + change;
  return options;
}

std::string condition_text(const Diagnosis& diagnosis, bool name_member) {
  const std::string who = name_member ? fmt::format("member {} (seed {}): ", diagnosis.member, diagnosis.seed) : "";
  return who + std::string(name_of(diagnosis.condition));
}

std::string diagnosis_headline(const Diagnosis& diagnosis, bool name_member) {
  std::string line = condition_text(diagnosis, name_member);
  if (diagnosis.cause != Cause::none) line += fmt::format(": {}", name_of(diagnosis.cause));
  return line;
}

}  // namespace

std::string diagnosis_text(const Diagnosis& diagnosis, bool name_member) {
  std::string text = diagnosis_headline(diagnosis, name_member) + "\n  " + diagnosis.words + "\n";
  if (!diagnosis.evidence.empty()) text += "evidence\n";
  for (const DiagnosisEvidence& evidence : diagnosis.evidence) text += fmt::format("  - {}\n", evidence.words);
  if (!diagnosis.suggestions.empty()) text += "what to try\n";
  for (std::size_t i = 0; i < diagnosis.suggestions.size(); ++i) {
    const Suggestion& suggestion = diagnosis.suggestions[i];
    text += fmt::format("  {}. {}\n", i + 1, suggestion.words);
    if (!suggestion.changes.empty()) text += fmt::format("     {}\n", options_of(suggestion));
    text += fmt::format("     because {}\n", suggestion.because);
  }
  for (const std::string& note : diagnosis.notes) text += fmt::format("note: {}\n", note);
  return text;
}

std::string diagnosis_in_short(const Diagnosis& diagnosis, bool name_member) {
  // The cause is what the words say.
  std::string text = fmt::format("{}: {}\n", condition_text(diagnosis, name_member), diagnosis.words);
  if (diagnosis.suggestions.empty()) return text;
  const Suggestion& first = diagnosis.suggestions.front();
  text += fmt::format("  try: {}", first.words);
  if (!first.changes.empty()) text += fmt::format(" ({})", options_of(first));
  return text + "\n";
}

std::string trials_text(const std::vector<TrialResult>& results, const std::string& conclusion) {
  std::string text = fmt::format("{:>6}  {:>9}  {}\n", "steps", "loss", "what was changed, and how it ended");
  for (const TrialResult& result : results)
    text += fmt::format("{:>6}  {:>9}  {}: {}\n", result.steps,
                        std::isfinite(result.loss) ? fmt::format("{:.4f}", result.loss) : "-", result.words,
                        result.verdict);
  return text + (conclusion.empty() ? "" : conclusion + "\n");
}

}  // namespace norma::cli
