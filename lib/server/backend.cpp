#include "lib/server/backend.hpp"

#include <netdb.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <string_view>
#include <utility>

#include "lib/cli/die.hpp"
#include "lib/net/descriptor.hpp"
#include "lib/net/resolve.hpp"
#include "lib/net/send.hpp"
#include "lib/protocol/framing.hpp"
#include "lib/session/library.hpp"
#include "work.pb.h"

namespace netdyno {
namespace {

UniqueFd connect_socket(const Url& backend) {
  const Resolved addresses{backend.host, backend.port, SOCK_STREAM};
  int why = 0;  // of the first
  for (const addrinfo* address : addresses.in_order()) {
    UniqueFd fd{socket(address->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0)};
    if (fd && connect(fd.get(), address->ai_addr, address->ai_addrlen) == 0) {
      set_nodelay(fd.get(), true);
      return fd;
    }
    if (why == 0) why = errno;
  }
  die_errno("cannot connect to the backend " + format_url(backend) + "; start it first", why);
}

std::string encode_question(std::chrono::nanoseconds duration) {
  wire::WorkMessage message;
  message.mutable_request()->set_workload(
      static_cast<std::int32_t>(std::chrono::ceil<std::chrono::microseconds>(duration).count()));
  const std::string body = message.SerializeAsString();
  const auto header = encode_frame_header(body.size());
  return std::string{header.data(), header.size()} + body;
}

/// To a backend that speaks rpc. An answer is a frame, whatever is in it.
class RpcBackendConnection final : public BackendConnection {
 public:
  explicit RpcBackendConnection(UniqueFd fd) : fd_(std::move(fd)) {}

  int fd() const override { return fd_.get(); }

  void ask(std::chrono::nanoseconds duration) override {
    // A question is shorter than any socket's buffer, which is empty.
    if (send_all(fd(), encode_question(duration)) != SendResult::sent) die_without_backend();
  }

  bool take_answer() override {
    bool answered = false;
    while (receive(MSG_DONTWAIT, answered)) {
    }
    return answered;
  }

  void await_answer() override {
    for (bool answered = false; !answered;) receive(0, answered);
  }

 private:
  /// False where nothing is there yet.
  bool receive(int flags, bool& answered) {
    std::array<char, 256> buffer;
    const ssize_t size = recv(fd(), buffer.data(), buffer.size(), flags);
    if (size < 0 && (errno == EAGAIN || errno == EINTR)) return errno == EINTR;
    if (size <= 0) die_without_backend();
    answers_.receive({buffer.data(), static_cast<std::size_t>(size)},
                     [&answered](std::string_view) { return answered = true; });
    return true;
  }

  const UniqueFd fd_;
  FrameReader answers_{1 << 10};
};

}  // namespace

std::unique_ptr<BackendConnection> connect_to_backend(const Url& backend) {
  if (backend.transport != "postgresql") return std::make_unique<RpcBackendConnection>(connect_socket(backend));
  static auto* const connect = reinterpret_cast<ConnectToPostgresql*>(
      load_function("postgresql/netdyno-postgresql.so", connect_to_postgresql_name, "--backend",
                    "install libpq-dev, and build the target netdyno-postgresql"));
  return std::unique_ptr<BackendConnection>{connect(backend)};
}

void die_without_backend() { die("the backend closed a connection; it must run as long as this server"); }

}  // namespace netdyno
