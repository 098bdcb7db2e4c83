// Folders of PNG and JPEG files.
#pragma once

#include "data/images/image_set.h"

namespace norma {

// A folder for each class, whose names are theirs. Images come in such an order that the last share of all is the last
// share of every class.
ImageSet read_class_folders(const std::string& path, const ImageForm& form, const std::vector<std::string>& known);

// A folder of images, and a table with a file and its label in each line (a tab or a comma between).
ImageSet read_labelled_folder(const std::string& path, const std::string& table, const ImageForm& form,
                              const std::vector<std::string>& known);

// A picture, or all pictures of a folder and the folders in it, in the order of their names.
ImageSet read_pictures(const std::string& path, const ImageForm& form, std::vector<std::string>& names);

}  // namespace norma
