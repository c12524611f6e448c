#include "servers/_shared/datagram/socket.hpp"

#include <fmt/format.h>
#include <linux/filter.h>
#include <netinet/in.h>
#include <netinet/udp.h>
#include <poll.h>
#include <sys/socket.h>

#include <cerrno>
#include <cstring>

namespace netdyno {
namespace {

bool set_option(int fd, int level, int name, int value) {
  return setsockopt(fd, level, name, &value, sizeof value) == 0;
}

int get_option(int fd, int level, int name) {
  int value = 0;
  socklen_t size = sizeof value;
  return getsockopt(fd, level, name, &value, &size) == 0 ? value : 0;
}

/// Beyond the system's limit only with CAP_NET_ADMIN; without it the kernel would silently give less (socket(7)).
void set_buffer(int fd, int forced_name, int name, std::size_t bytes, const char* limit) {
  const int requested = static_cast<int>(bytes);
  if (set_option(fd, SOL_SOCKET, forced_name, requested)) return;
  set_option(fd, SOL_SOCKET, name, requested);
  // The kernel doubles what is asked, for its own bookkeeping, and does not go below a small minimum.
  if (get_option(fd, SOL_SOCKET, name) / 2 < requested)
    die(fmt::format("--socket-buffer: the system allows less than {} bytes: ask for less, or raise net.core.{}", bytes,
                    limit));
}

void set_buffers(int fd, const ServerOptions& options) {
  if (options.socket_buffer == 0) return;
  set_buffer(fd, SO_RCVBUFFORCE, SO_RCVBUF, options.socket_buffer, "rmem_max");
  set_buffer(fd, SO_SNDBUFFORCE, SO_SNDBUF, options.socket_buffer, "wmem_max");
}

constexpr int udp_type = SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK;

}  // namespace

UniqueFd bind_udp(const ServerOptions& options) {
  return bind_socket(options.listen, udp_type, [&](int fd) { set_buffers(fd, options); });
}

UniqueFd bind_udp_on_port_of(const UniqueFd& first, const ServerOptions& options) {
  // Only now: if it had been set when the first one was bound, another server of the same user could have had the port
  // already, and its clients would be split between the two.
  if (!set_option(first.get(), SOL_SOCKET, SO_REUSEPORT, 1)) die(std::string{"SO_REUSEPORT: "} + std::strerror(errno));
  return bind_socket(local_endpoint(first.get(), "udp"), udp_type, [&](int fd) {
    set_option(fd, SOL_SOCKET, SO_REUSEPORT, 1);
    set_buffers(fd, options);
  });
}

bool merge_arrivals(int fd) { return set_option(fd, IPPROTO_UDP, UDP_GRO, 1); }

void stop_arrivals(int fd) {
  sock_filter drop[]{BPF_STMT(BPF_RET | BPF_K, 0)};  // keep 0 bytes of every packet: packet(7), SO_ATTACH_FILTER
  const sock_fprog program{1, drop};
  if (setsockopt(fd, SOL_SOCKET, SO_ATTACH_FILTER, &program, sizeof program) != 0)
    die(std::string{"SO_ATTACH_FILTER: "} + std::strerror(errno));
}

bool has_arrivals(int fd) {
  pollfd readable{fd, POLLIN, 0};
  return poll(&readable, 1, 0) > 0 && (readable.revents & POLLIN) != 0;
}

}  // namespace netdyno
