// UDP multicast: a chat message is sent once, to a group that every client has joined. Everything else is as in
// udp-coroutines: one socket, an own epoll loop, a coroutine for each client that made itself known, all on one thread.
#include <string_view>
#include <utility>

#include "lib/cli/option_values.hpp"
#include "lib/net/multicast.hpp"
#include "servers/_shared/datagram/coroutine_server.hpp"

namespace netdyno {
namespace {

/// A chat message is sent once, to the group.
class RoomOfGroup {
 public:
  explicit RoomOfGroup(const Address& group) : group_(group) {}

  void add(Sender& sender, std::string_view text, const CoroutineClient&) { sender.push_copy(group_, text); }
  void send(Sender&, const CoroutineClients&) {}

 private:
  Address group_;
};

/// The socket of the server, on its own address: clients send to it and are answered from it, and the group's messages
/// leave by it. None of those reaches it.
UniqueFd bind_and_join(ServerOptions options, const MulticastPlace& place) {
  options.listen = {"udp", to_string(*place.url.server), place.url.port, ""};
  UniqueFd socket = bind_udp(options);
  set_multicast_output(socket.get(), place.interface, place.url.ttl);
  if (!join_group(socket.get(), place.url.group, place.interface)) die("no room to join " + to_string(place.url.group));
  return socket;
}

}  // namespace
}  // namespace netdyno

int main(int argc, char** argv) {
  using namespace netdyno;
  bool anywhere = false;
  const ServerOptions options = parse_server_options(
      argc, argv, ThreadModel::one, "multicast", [&anywhere](auto& line) { add_multicast_anywhere(line, anywhere); });
  MulticastPlace place = multicast_place(program_name(argv[0]), "--listen", options.listen, anywhere);
  UniqueFd signals = termination_signals();
  UniqueFd socket = bind_and_join(options, place);
  place.url.port = local_endpoint(socket.get(), "udp").port;
  CoroutineServer server{options, RoomOfGroup{to_address(place.url.group, place.url.port)}, std::move(socket),
                         std::move(signals)};
  announce_ready(to_url(place.url));

  server.run();
  print_totals_with_peers(server.counters().totals());
}
