#include "loadgen/connect/descriptors.hpp"

#include <fmt/format.h>
#include <sys/resource.h>

#include <cerrno>
#include <cstring>

#include "lib/cli/command_line.hpp"
#include "lib/cli/die.hpp"
#include "loadgen/transport/multicast.hpp"
#include "loadgen/transport/zmq.hpp"

namespace netdyno::load {

void ensure_descriptors(const LoadPlan& plan) {
  const bool zmq = plan.url.transport == "zmq+tcp";
  const rlim_t per_connection = zmq ? zmq_descriptors_per_connection : in_a_group(plan) ? 2 : 1;
  const rlim_t per_thread = 2 + (zmq ? zmq_descriptors_per_thread : 0);  // epoll, wake-up
  constexpr rlim_t spare = 16;                                           // standard streams, files, the resolver
  const rlim_t needed = per_connection * plan.connections + per_thread * plan.threads + spare;
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0) die(fmt::format("getrlimit: {}", std::strerror(errno)));
  if (limit.rlim_cur >= needed) return;
  if (limit.rlim_max < needed)
    usage_error(program_invocation_short_name,
                fmt::format("{} connections need {} file descriptors, and the hard limit is {}: raise it (as root: "
                            "ulimit -n {}; for good: nofile in /etc/security/limits.conf)",
                            plan.connections, needed, limit.rlim_max, needed));
  limit.rlim_cur = limit.rlim_max;
  if (setrlimit(RLIMIT_NOFILE, &limit) != 0)
    usage_error(program_invocation_short_name,
                fmt::format("cannot raise the limit of open files to {}: {}; run: ulimit -n {}", limit.rlim_max,
                            std::strerror(errno), needed));
}

}  // namespace netdyno::load
