// The default study of a family.
#include "norma/lab/study.h"

namespace norma {

StudyConfig default_study_of(const Family& family) {
  StudyConfig config;
  const FamilyStudy& usual = family->study;
  config.base.model.family = family;
  if (family->batch > 0) config.base.model.batch = family->batch;
  for (const std::string& key : usual.keys) override_config(config.base, key);
  if (!usual.schemes.empty()) config.schemes.assign(usual.schemes.begin(), usual.schemes.end());
  if (!usual.rates.empty()) config.rates = usual.rates;
  if (!usual.depths.empty()) config.depths = usual.depths;
  return config;
}

}  // namespace norma
