norma_test(lab_sweep_test DEPENDS norma::lab SOURCES lab/sweep_test.cpp)
