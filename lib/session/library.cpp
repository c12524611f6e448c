#include "lib/session/library.hpp"

#include <dlfcn.h>

#include <filesystem>

#include "lib/cli/die.hpp"

namespace netdyno {
namespace {

/// The libraries stand in the build, whose programs stand in folders of it.
std::filesystem::path find_library(const std::string& name, const std::string& option, const std::string& how) {
  std::filesystem::path folder = std::filesystem::read_symlink("/proc/self/exe").parent_path();
  while (!std::filesystem::exists(folder / name)) {
    if (!folder.has_relative_path()) die(option + ": this build has no " + name + ": " + how);
    folder = folder.parent_path();
  }
  return folder / name;
}

}  // namespace

void* load_function(const std::string& library, const char* function, const std::string& option,
                    const std::string& how) {
  void* const loaded = dlopen(find_library(library, option, how).c_str(), RTLD_NOW | RTLD_LOCAL);
  if (loaded == nullptr) die(option + ": " + dlerror());
  void* const found = dlsym(loaded, function);
  if (found == nullptr) die(option + ": " + dlerror());
  return found;
}

}  // namespace netdyno
