#pragma once

#include <caf/actor.hpp>
#include <caf/allowed_unsafe_message_type.hpp>
#include <memory>
#include <string>
#include <vector>

#include "lib/session/effects.hpp"

/// All that the actors say to each other.
namespace netdyno {

/// A connection is to go on like this when it has written what came with it.
enum class Next { wait, read, close };

using Frames = std::shared_ptr<const std::vector<SharedFrame>>;  // that one sender broadcast together

// To a worker, from its connection.
struct BytesArrived {
  std::string bytes;
};
struct StreamEnded {};

// To a worker, from itself.
struct ServiceOver {};

// To a connection, from its worker or the room.
struct Replied {
  std::vector<std::string> writes;  // each is sent by itself
  Next next = Next::wait;
};

// To a connection, from the room.
struct Heard {
  Frames frames;
};

// To a connection, from itself.
struct LingerOver {};

// To the room, from a worker.
struct Broadcast {
  Frames frames;
  caf::actor sender;  // the connection
  Next next = Next::wait;
};

// To the room, from a connection: more waits for this reader, whose socket would take it, than this server has sent. Or
// that is so no longer.
struct Behind {
  bool now = false;
};

// To the room, from the main thread.
struct Joined {
  int fd = -1;
};

// To the room from the main thread, and to the connections from the room.
struct ServerEnds {};

// To the main thread, from the room.
struct RoomEmpty {};

}  // namespace netdyno

// They stay in this process, so CAF need not be able to write them into bytes.
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(netdyno::BytesArrived)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(netdyno::StreamEnded)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(netdyno::ServiceOver)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(netdyno::Replied)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(netdyno::Heard)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(netdyno::LingerOver)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(netdyno::Broadcast)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(netdyno::Behind)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(netdyno::Joined)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(netdyno::ServerEnds)
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(netdyno::RoomEmpty)
