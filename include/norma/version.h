// The version of norma. CMake reads it from here.
#pragma once

#define NORMA_VERSION_MAJOR 0
#define NORMA_VERSION_MINOR 1
#define NORMA_VERSION_PATCH 0
#define NORMA_VERSION "0.1.0"
