// What a loss of power takes: contents since the last fsync of the file, names since the last fsync of the folder.
// Files that were overwritten in place keep the new bytes, which a disk may have written at any time.
#pragma once

#include <cstdint>

#include "inject_plan.h"

namespace norma::faults {

void opened(const char* file, bool existed);  // after the call; before it, existed = names_a_file(file)
void written(const char* file);
void synced(const char* file);           // a file or a folder
void about_to_remove(const char* file);  // unlink, rmdir, or the target of a rename
void renamed(const char* from, const char* to);
void created(const char* file);  // a folder, a link
bool names_a_file(const char* file);

void lose_contents();
void lose_names();

}  // namespace norma::faults
