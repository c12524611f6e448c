#include "loadgen/connect/slow_readers.hpp"

#include <sys/socket.h>

#include <array>
#include <utility>

namespace netdyno::load {

void SlowReaders::add(UniqueFd fd, Nanos now) {
  const int room = static_cast<int>(sip);  // the kernel makes it its smallest buffer, some 2 KiB (socket(7))
  setsockopt(fd.get(), SOL_SOCKET, SO_RCVBUF, &room, sizeof room);
  readers_.push_back(std::move(fd));
  next_ = now + between_sips;
}

void SlowReaders::read(Nanos now) {
  if (now < next()) return;
  std::array<char, sip> bytes;
  for (const UniqueFd& fd : readers_) recv(fd.get(), bytes.data(), bytes.size(), MSG_DONTWAIT);
  next_ = now + between_sips;
}

}  // namespace netdyno::load
