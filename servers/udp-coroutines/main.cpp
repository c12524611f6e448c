// One UDP socket and an own epoll loop; a C++20 coroutine serves each client that made itself known, all on one thread.
#include <string_view>
#include <utility>
#include <vector>

#include "servers/_shared/datagram/coroutine_server.hpp"

namespace netdyno {
namespace {

/// A chat message is sent to each client.
class RoomOfClients {
 public:
  explicit RoomOfClients(Audience audience) : to_self_(audience == Audience::all) {}

  void add(Sender& sender, std::string_view text, const CoroutineClient& from) {
    messages_.push_back({sender.keep(text), &from});
  }

  /// Recipient by recipient, so that what is for one of them can leave in one piece.
  void send(Sender& sender, const CoroutineClients& clients) {
    if (messages_.empty()) return;
    clients.for_each([&](const Address& address, const CoroutineClient& client) {
      for (const Message& message : messages_)
        if (to_self_ || message.from != &client) sender.push(address, message.text);
    });
    messages_.clear();
  }

 private:
  struct Message {
    std::string_view text;  // kept by the sender
    const CoroutineClient* from;
  };

  const bool to_self_;
  std::vector<Message> messages_;  // of this turn
};

}  // namespace
}  // namespace netdyno

int main(int argc, char** argv) {
  using namespace netdyno;
  const ServerOptions options = parse_server_options(argc, argv, ThreadModel::one, "udp");
  UniqueFd signals = termination_signals();
  UniqueFd socket = bind_udp(options);
  const Url endpoint = local_endpoint(socket.get(), "udp");
  CoroutineServer server{options, RoomOfClients{options.audience}, std::move(socket), std::move(signals)};
  announce_ready(endpoint);

  server.run();
  print_totals_with_peers(server.counters().totals());
}
