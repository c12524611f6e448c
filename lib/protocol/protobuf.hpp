#pragma once

#include <string_view>

namespace netdyno {

/// False where a Protobuf message says that a part of it is longer than what follows. No parser takes such a message,
/// but libprotobuf first reserves up to 50 MB for a text that an overlong part announces. True says nothing more.
bool parts_fit(std::string_view message);

}  // namespace netdyno
