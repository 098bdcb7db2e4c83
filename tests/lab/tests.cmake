find_package(nlohmann_json REQUIRED)
norma_test(lab_test LABEL laws DEPENDS norma::lab nlohmann_json::nlohmann_json SOURCES
  lab/activations_test.cpp
  lab/advice_test.cpp
  lab/amplification_test.cpp
  lab/depth_use_test.cpp
  lab/encoder_decoder_test.cpp
  lab/families_inspect_test.cpp
  lab/gradient_test.cpp
  lab/inspect_test.cpp
  lab/jacobian_test.cpp
  lab/judgement_test.cpp
  lab/sample_quality_test.cpp
  lab/sharpness_test.cpp
  lab/smoothing_test.cpp
  lab/study_table_test.cpp
  lab/verdict_rates_test.cpp
  lab/verdict_test.cpp)
norma_test(lab_runs_test DEPENDS norma::lab nlohmann_json::nlohmann_json SOURCES
  lab/compare_test.cpp
  lab/diagnose_data_test.cpp
  lab/diagnose_test.cpp
  lab/inspect_words_test.cpp)
