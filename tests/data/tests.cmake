# It brings an operator new of its own, which GCC would see through in the other files of a unit.
set_source_files_properties(${CMAKE_CURRENT_LIST_DIR}/allocation_test.cpp PROPERTIES SKIP_UNITY_BUILD_INCLUSION ON)
norma_test(data_test DEPENDS norma::data SOURCES
  data/allocation_test.cpp data/bleu_test.cpp data/diffusion_test.cpp data/formats_test.cpp data/generated_test.cpp data/grammar_test.cpp data/image_archives_test.cpp data/image_folders_test.cpp
  data/image_mixing_test.cpp data/images_test.cpp data/permutation_test.cpp
  data/records_test.cpp data/sentencepiece_test.cpp data/sentences_test.cpp data/source_test.cpp data/text_test.cpp
  data/token_file_test.cpp data/tokenizer_test.cpp)
target_link_libraries(data_test PRIVATE ${Png_LIBRARY} ${Jpeg_LIBRARY} ${Zlib_LIBRARY})  # its files are written with them
