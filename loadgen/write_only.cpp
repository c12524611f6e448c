#include "loadgen/write_only.hpp"

#include <netinet/in.h>
#include <sys/socket.h>

#include <cerrno>
#include <cstdint>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "lib/net/descriptor.hpp"
#include "lib/net/send.hpp"
#include "loadgen/codec/codec.hpp"
#include "loadgen/transport/socket_address.hpp"
#include "loadgen/transport/socket_poller.hpp"

namespace netdyno::load {
namespace {

constexpr Nanos before_the_first = 20'000'000;
/// Beyond this a client takes nothing more off its socket, as asyncio's StreamReader: twice its limit of 64 KiB. The
/// last read may take more. What it has not taken when it leaves resets the connection.
constexpr std::size_t most_taken = std::size_t{128} << 10;

struct Client {
  UniqueFd fd;
  bool connected = false;
  Nanos due = never;          // of its next write, of its end, or of its connect's timeout
  std::uint32_t written = 0;  // messages that the kernel has taken whole
  std::string rest;           // of a message that it has taken in part
  std::size_t taken = 0;      // bytes that were taken off the socket, and thrown away
};

class WriteOnlyLoad {
 public:
  explicit WriteOnlyLoad(const LoadPlan& plan)
      : plan_(plan), server_(resolve(plan.url.host, plan.url.port).front()), clients_(plan.connections) {}

  Measurement carry_out(Observer& observer) {
    const CpuTime before = thread_cpu();
    observer.on_window_start();
    began_ = now_ns();
    left_ = clients_.size();
    for (std::uint32_t number = 0; number < clients_.size(); ++number) connect(number);
    while (left_ > 0) {
      for (const epoll_event& event : poller_.wait(due_.empty() ? never : due_.begin()->first))
        if (!poller_.was_wake(event)) handle(static_cast<std::uint32_t>(event.data.u64), event.events);
      carry_out_due();
    }
    const Nanos ended = now_ns();
    observer.on_window_end();
    observer.on_finished();
    return collect(ended, thread_cpu() - before);
  }

 private:
  void connect(std::uint32_t number) {
    Client& client = clients_[number];
    client.fd.reset(socket(server_.storage.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
    if (!client.fd) return fail_connect(number, errno);
    set_nodelay(client.fd.get(), plan_.nodelay);
    const int error = ::connect(client.fd.get(), server_.get(), server_.size) == 0 ? 0 : errno;
    if (error != 0 && error != EINPROGRESS) return fail_connect(number, error);
    poller_.add(client.fd.get(), EPOLLIN | EPOLLOUT | EPOLLET, number);
    schedule(number, began_ + plan_.connect_timeout);
  }

  void handle(std::uint32_t number, std::uint32_t events) {
    Client& client = clients_[number];
    if (!client.fd) return;  // it has left since
    if (!client.connected) {
      const int error = socket_error(client.fd.get());
      if (error != 0) return fail_connect(number, error);
      note_connected(number);
    } else if ((events & (EPOLLERR | EPOLLHUP)) != 0) {
      return fail(number);
    }
    if ((events & EPOLLIN) != 0 && !throw_away(number)) return fail(number);
    if ((events & EPOLLOUT) != 0 && !client.rest.empty()) write_rest(number);
  }

  void note_connected(std::uint32_t number) {
    const Nanos now = now_ns();
    figures_.connect.record(now - began_);
    ++figures_.connections.established;
    clients_[number].connected = true;
    schedule(number, now + before_the_first);
  }

  /// Takes what has arrived off the socket, until that is more than `most_taken` or the server has closed its half,
  /// which breaks the next write. Returns false if the connection is broken.
  bool throw_away(std::uint32_t number) {
    Client& client = clients_[number];
    while (client.taken <= most_taken) {
      const ssize_t taken = recv(client.fd.get(), thrown_away_.data(), thrown_away_.size(), 0);
      if (taken < 0) return errno == EAGAIN || errno == EINTR;
      if (taken == 0) break;
      client.taken += static_cast<std::size_t>(taken);
    }
    poller_.modify(client.fd.get(), EPOLLOUT | EPOLLET, number);
    return true;
  }

  void carry_out_due() {
    const Nanos now = now_ns();
    while (!due_.empty() && due_.begin()->first <= now) {
      const std::uint32_t number = due_.begin()->second;
      Client& client = clients_[number];
      if (!client.connected) {
        fail_connect(number, ETIMEDOUT);
      } else if (client.written == plan_.messages_each) {
        ++finished_;
        leave(number);
      } else {
        client.rest.clear();
        codec_->encode({number, client.written}, client.rest);
        schedule(number, never);
        write_rest(number);
      }
    }
  }

  /// Writes what the kernel takes. Where that is not all, an event says when it takes more (epoll(7): EPOLLET).
  void write_rest(std::uint32_t number) {
    Client& client = clients_[number];
    const ssize_t sent = send(client.fd.get(), client.rest.data(), client.rest.size(), MSG_NOSIGNAL);
    if (sent < 0 && errno != EAGAIN && errno != EINTR) return fail(number);
    if (sent > 0) figures_.bytes.sent += static_cast<std::uint64_t>(sent);
    if (sent > 0) client.rest.erase(0, static_cast<std::size_t>(sent));
    if (!client.rest.empty()) return;
    ++client.written;
    ++figures_.messages.sent;
    schedule(number, now_ns() + plan_.every);
  }

  void fail_connect(std::uint32_t number, int error) {
    switch (connect_failure(error)) {
      case ConnectFailure::refused:
        ++figures_.connections.refused;
        break;
      case ConnectFailure::timed_out:
        ++figures_.connections.timed_out;
        break;
      case ConnectFailure::reset:
        ++figures_.connections.reset;
        break;
      case ConnectFailure::other:
        ++figures_.connections.other;
        figures_.other_connect_error = error;
        break;
    }
    leave(number);
  }

  void fail(std::uint32_t number) {
    ++figures_.errors.reset;
    leave(number);
  }

  void leave(std::uint32_t number) {
    schedule(number, never);
    clients_[number].fd.reset();
    --left_;
  }

  void schedule(std::uint32_t number, Nanos due) {
    Client& client = clients_[number];
    if (client.due != never) due_.erase({client.due, number});
    client.due = due;
    if (due != never) due_.insert({due, number});
  }

  Measurement collect(Nanos ended, const CpuTime& cpu) {
    Measurement result;
    figures_.messages.due = std::uint64_t{plan_.connections} * plan_.messages_each;
    result.figures = figures_;
    result.cpu = {cpu};
    result.max_rss_bytes = peak_rss_bytes();
    result.cores = usable_cores().size();
    result.began = began_;
    result.duration = ended - began_;
    result.interval = Timeline::interval_of(result.duration);
    result.longest_slice = result.duration;
    result.finished = finished_;
    return result;
  }

  const LoadPlan& plan_;
  const SocketAddress server_;
  const std::unique_ptr<Codec> codec_ = make_codec(plan_);
  SocketPoller poller_;
  std::vector<Client> clients_;
  std::vector<char> thrown_away_ = std::vector<char>(std::size_t{256} << 10);  // asyncio reads as much at once
  std::set<std::pair<Nanos, std::uint32_t>> due_;
  Figures figures_;
  Nanos began_ = 0;
  std::size_t left_ = 0;        // clients that have not left
  std::uint64_t finished_ = 0;  // that wrote all and met no error
};

}  // namespace

Measurement run_write_only(const LoadPlan& plan, Observer& observer) { return WriteOnlyLoad{plan}.carry_out(observer); }

}  // namespace netdyno::load
