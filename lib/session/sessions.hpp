#pragma once

#include <memory>

#include "lib/session/session.hpp"

/// One maker per workload; only make_session calls them.
namespace netdyno {

std::unique_ptr<Session> make_echo_session(Counters& counters);
std::unique_ptr<Session> make_lines_session(const SessionOptions& options, Counters& counters);
std::unique_ptr<Session> make_rpc_session(const SessionOptions& options, Counters& counters);
std::unique_ptr<Session> make_chat_session(const SessionOptions& options, Counters& counters);
std::unique_ptr<Session> make_http_session(const SessionOptions& options, Counters& counters);
std::unique_ptr<Session> make_web_session(const SessionOptions& options, Counters& counters);

}  // namespace netdyno
