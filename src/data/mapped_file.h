#pragma once
#include "norma/core/mapped_file.h"
