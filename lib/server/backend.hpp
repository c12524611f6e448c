#pragma once

#include <chrono>
#include <string>

#include "lib/cli/url.hpp"
#include "lib/net/descriptor.hpp"
#include "lib/protocol/framing.hpp"

/// The server that requests wait for with service kind backend: it speaks rpc (protocol/WIRE.md, Backend).
namespace netdyno {

/// A blocking connection to the backend, with TCP_NODELAY. Dies with a hint where there is none.
UniqueFd connect_to_backend(const Url& backend);

/// The frame that asks the backend for a reply after `duration`, in whole microseconds.
std::string encode_question(std::chrono::nanoseconds duration);

/// The reader of the backend's replies. An answer is a frame, whatever is in it.
inline FrameReader make_answer_reader() { return FrameReader{1 << 10}; }

/// Ends the program: without its backend it has no answers.
[[noreturn]] void die_without_backend();

}  // namespace netdyno
