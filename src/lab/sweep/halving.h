// Successive halving (Jamieson & Talwalkar 2016): where the rungs are, what each member brought to one, who stops.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "norma/lab/sweep.h"
#include "norma/store/folder.h"
#include "norma/store/safetensors.h"

namespace norma {

// Steps at which a run pauses to be compared, and its last one.
std::vector<std::int64_t> rung_steps(const std::optional<HalvingConfig>& halving, std::int64_t steps);

struct RungEntry {
  double score = 0;    // rolling median of the training loss; infinite after divergence
  std::string result;  // what result.json says if the member ends here
};
using RungScores = std::map<std::string, RungEntry>;  // by id

double rung_score(const SafetensorsFile& checkpoint, int member);

std::string rung_name(const std::string& group, std::int64_t step);  // of its file

// The file of a rung; the new entries replace those of the same name.
RungScores read_scores(const Folder& rungs, const std::string& name);
void add_scores(const Folder& rungs, const std::string& name, const RungScores& scores);

// Ids of those that stop at a rung: all but the best 1/eta of the settings, by the mean score of their seeds. A setting
// with a seed that diverged is beaten by every other; ties keep the order of the grid. Settings of which every run had
// ended before the rung began (`out`) do not take part.
std::vector<std::string> hopeless(const std::vector<const SweepCell*>& cells, const RungScores& scores,
                                  const std::set<std::string>& out, std::int64_t eta);

}  // namespace norma
