#pragma once

#include <string_view>

namespace netdyno {

/// False where a Protobuf message says that a part of it is longer than what follows. No parser takes such a message,
/// but libprotobuf first reserves up to 50 MB for a text that an overlong part announces. False too where a tag of a
/// WorkMessage, or of what is in it, has more than 32 bits: libprotobuf would drop them, and take it for another field
/// (protocol/WIRE.md). True says nothing more.
bool parts_fit(std::string_view message);

}  // namespace netdyno
