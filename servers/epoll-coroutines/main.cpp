// Raw non-blocking sockets and an own epoll loop; a C++20 coroutine serves each connection, all on one thread.
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <memory>
#include <vector>

#include "connection.hpp"
#include "loop.hpp"

namespace netdyno {
namespace {

class Server {
 public:
  Server(const ServerOptions& options, UniqueFd listener, UniqueFd signals)
      : options_(options), listener_(std::move(listener)), signals_(std::move(signals)), buffer_(options.read_buffer) {}

  /// Returns when the program was told to end, and all connections are done or the grace is over.
  void run() {
    const Task accepting = accept_all();
    const Task ending = end_when_told();
    while (!overdue() && (listener_ || !clients_.empty())) {
      loop_.turn();
      flush_broadcasts();
      close_finished();
    }
    clients_.clear();
  }

  const Counters& counters() const { return counters_; }

 private:
  Task accept_all() {
    Gate gate{loop_, listener_.get()};
    while (true) {
      Accepted next = accept_one(listener_.get(), true);
      if (next.status == AcceptStatus::accepted) {
        add(std::move(next.fd));
      } else if (next.status == AcceptStatus::try_again) {
        co_await gate.readable();
      } else if (next.status == AcceptStatus::exhausted) {
        co_await loop_.sleep(std::chrono::milliseconds{10});
      } else {
        co_return;
      }
    }
  }

  void add(UniqueFd fd) {
    set_nodelay(fd.get(), options_.nodelay);
    counters_.add_connection();
    auto client = std::make_unique<Connection>(std::move(fd), loop_, options_, counters_);
    if (!loop_.watch(client->fd(), Connection::watched_events, *client)) return;  // no room: this client is closed
    client->index = clients_.size();
    client->task = serve(*client);
    clients_.push_back(std::move(client));
  }

  /// One connection, from its first byte to its last. Effects are carried out here, as a coroutine of their own would
  /// allocate a frame per message.
  Task serve(Connection& client) {
    while (client.member && !client.broken()) {
      co_await client.input();
      receive(client);
      bool owes = false;
      for (const Effect& effect : client.effects) {
        if (client.broken()) break;
        switch (effect.kind) {
          case Effect::Kind::write:
            client.send(client.effects.bytes(effect));
            owes = true;
            break;
          case Effect::Kind::broadcast:
            broadcast(effect.frame, client);
            break;
          case Effect::Kind::wait:
            co_await loop_.sleep(effect.duration);
            break;
          case Effect::Kind::burn:
            co_await loop_.turn_for_long_work();
            if (!burn(effect.duration)) client.give_up();
            break;
          case Effect::Kind::close:
            client.member = false;
            owes = true;
            break;
        }
      }
      // Back-pressure: who does not take its replies is not read. Broadcasts are no replies: they fill the outbox.
      if (owes) co_await client.sent();
    }
    if (!client.broken()) end_stream(client.fd());
    finished_.push_back(&client);
  }

  /// One read, and what the session makes of it.
  void receive(Connection& client) {
    client.effects.clear();
    if (client.broken()) return;
    const ssize_t n = client.read(buffer_);
    if (n > 0) {
      client.session().receive({buffer_.data(), static_cast<std::size_t>(n)}, client.effects);
    } else if (n == 0) {
      client.session().end(client.effects);
    } else if (errno != EAGAIN && errno != EINTR) {
      client.give_up();
    }
  }

  void broadcast(const SharedFrame& frame, const Connection& sender) {
    for (const auto& client : clients_) {
      if (client.get() == &sender && options_.audience == Audience::others) continue;
      if (client->post(frame)) unflushed_.push_back(client.get());
    }
  }

  /// After a turn, so that what several senders broadcast in it leaves for a recipient in one writev.
  void flush_broadcasts() {
    for (Connection* client : unflushed_) client->flush();
    unflushed_.clear();
  }

  /// After a turn, as its events may name connections that finished in it.
  void close_finished() {
    for (const Connection* client : finished_) {
      const std::size_t index = client->index;
      clients_.back()->index = index;
      std::swap(clients_[index], clients_.back());
      clients_.pop_back();
    }
    finished_.clear();
  }

  Task end_when_told() {
    Gate gate{loop_, signals_.get()};
    co_await gate.readable();
    start_grace();
    listener_.reset();
    for (const auto& client : clients_) shutdown(client->fd(), SHUT_RD);  // each stream ends at what has arrived
    co_await loop_.sleep(end_by_ - Loop::Clock::now());                   // wakes run(), which looks at the time
  }

  void start_grace() { end_by_ = std::min(end_by_, Loop::Clock::now() + shutdown_grace); }
  bool overdue() const { return Loop::Clock::now() >= end_by_; }

  /// Holds up every other client, as there is one thread, and looks up only to see whether the program is told to end.
  /// False when it was cut short by that.
  bool burn(std::chrono::nanoseconds duration) {
    constexpr std::chrono::nanoseconds slice = std::chrono::milliseconds{10};
    for (; duration > slice; duration -= slice) {
      burn_cpu(slice);
      pollfd told{signals_.get(), POLLIN, 0};
      if (poll(&told, 1, 0) > 0) start_grace();
      if (overdue()) return false;
    }
    burn_cpu(duration);
    return true;
  }

  const ServerOptions& options_;
  Counters counters_;
  Loop loop_;
  UniqueFd listener_;
  UniqueFd signals_;
  std::vector<char> buffer_;  // shared: what a read brought is given to the session before anything waits
  std::vector<std::unique_ptr<Connection>> clients_;
  std::vector<Connection*> unflushed_;
  std::vector<Connection*> finished_;
  Loop::Clock::time_point end_by_ = Loop::Clock::time_point::max();  // known once the program is told to end
};

}  // namespace
}  // namespace netdyno

int main(int argc, char** argv) {
  using namespace netdyno;
  const ServerOptions options = parse_server_options(argc, argv, ThreadModel::one);
  UniqueFd signals = termination_signals();
  UniqueFd listener = listen_tcp(options, true);
  const Url endpoint = local_endpoint(listener.get());
  Server server{options, std::move(listener), std::move(signals)};
  announce_ready(endpoint);

  server.run();
  print_totals(server.counters().totals());
}
