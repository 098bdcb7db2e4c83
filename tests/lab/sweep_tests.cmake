find_package(nlohmann_json REQUIRED)
norma_test(lab_sweep_test DEPENDS norma::lab nlohmann_json::nlohmann_json SOURCES
  lab/final_scores_test.cpp
  lab/planner_long_runs_test.cpp
  lab/planner_test.cpp
  lab/side_by_side_sweep_test.cpp
  lab/share_test.cpp
  lab/statistics_test.cpp
  lab/study_depth_test.cpp
  lab/study_depths_test.cpp
  lab/study_rounds_test.cpp
  lab/study_test.cpp
  lab/sweep_damage_test.cpp
  lab/sweep_directory_test.cpp
  lab/sweep_grid_test.cpp
  lab/sweep_kill_test.cpp
  lab/sweep_results_test.cpp
  lab/sweep_test.cpp
  sync_points.cpp)
