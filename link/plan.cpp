#include "link/plan.hpp"

#include <net/if.h>

#include "lib/cli/option_values.hpp"

namespace netdyno::link {
namespace {

constexpr const char* description =
    R"(netdyno-link: a link with delay, loss and a rate between two network namespaces, for kernels without netem.

It makes a TAP device in each namespace and carries Ethernet frames between the two. The addresses are yours to give, and
the interfaces yours to bring up. SIGTERM ends it with a line of totals.

Example, as root:
  ip netns add here; ip netns add there
  netdyno-link /run/netns/here /run/netns/there --delay 20ms --loss 0.01 --rate 100mbit
)";

constexpr std::chrono::seconds most_delay{10};

void check(const std::string& program, const LinkPlan& plan) {
  if (plan.terms.delay > most_delay) usage_error(program, "--delay: want at most 10s");
  if (plan.interface.empty() || plan.interface.size() >= IFNAMSIZ)
    usage_error(program, "--interface: '" + plan.interface + "' is no name of an interface; want 1 to 15 characters");
}

}  // namespace

LinkPlan parse_plan(int argc, const char* const* argv) {
  LinkPlan plan;
  Terms& terms = plan.terms;
  CommandLine line{description, argv[0]};
  line.add_text("a", plan.namespaces[0], "network namespace of one end: /proc/PID/ns/net or /run/netns/NAME")
      .required()
      .type_name("FILE");
  line.add_text("b", plan.namespaces[1], "network namespace of the other end").required().type_name("FILE");
  line.add_text("--interface", plan.interface, "name of the device in each of them").type_name("NAME");
  add_duration(line, "--delay", terms.delay, "time from one end to the other (default 0, at most 10s)");
  add_share(line, "--loss", terms.loss, "share of the frames that never arrive, each by itself (default 0)");
  add_bit_rate(line, "--rate", terms.rate_hz, "bits per second in each direction, such as 10mbit (default: no limit)");
  add_bytes(line, "--queue", terms.queue_bytes, {1, 1ULL << 40}, "what waits for the rate before more is dropped");
  line.add_number("--limit", terms.limit, std::size_t{1}, std::size_t{1} << 20,
                  "frames on the link at a time, waiting or under way, each way")
      .type_name("FRAMES");
  add_whole_number(line, "--seed", terms.seed, "of the losses (default 1)");
  line.add_version("netdyno-link " NETDYNO_VERSION);
  line.parse(argc, argv);
  check(line.program(), plan);
  return plan;
}

}  // namespace netdyno::link
