# What norma publishes: its types, their JSON and the schema of it.
find_package(nlohmann_json REQUIRED)
norma_test(results_test DEPENDS norma::lab nlohmann_json::nlohmann_json SOURCES
  results/json_schema.cpp
  results/json_schema_test.cpp
  results/made_up.cpp
  results/results_json_test.cpp
  results/schema_test.cpp)
