#include "lib/session/session.hpp"

#include <cstdlib>
#include <utility>

#include "lib/session/sessions.hpp"
#include "lib/session/tls.hpp"

namespace netdyno {
namespace {

std::unique_ptr<Session> make_plain_session(const SessionOptions& options, Counters& counters) {
  switch (options.workload) {
    case Workload::echo:
      return make_echo_session(counters);
    case Workload::lines:
      return make_lines_session(options, counters);
    case Workload::rpc:
      return make_rpc_session(options, counters);
    case Workload::chat:
      return make_chat_session(options, counters);
    case Workload::http:
      return make_http_session(options, counters);
    case Workload::web:
      return make_web_session(options, counters);
    case Workload::grpc:  // is in no option of a server
      break;
  }
  std::abort();  // the enumeration is closed; options are parsed once
}

}  // namespace

std::unique_ptr<Session> make_session(const SessionOptions& options, Counters& counters) {
  std::unique_ptr<Session> plain = make_plain_session(options, counters);
  return options.tls ? make_tls_session(std::move(plain), options, counters) : std::move(plain);
}

}  // namespace netdyno
