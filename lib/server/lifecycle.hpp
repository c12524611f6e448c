#pragma once

#include <chrono>
#include <string>

#include "lib/cli/die.hpp"
#include "lib/cli/url.hpp"
#include "lib/net/accept.hpp"
#include "lib/net/bind.hpp"
#include "lib/net/send.hpp"
#include "lib/net/signals.hpp"
#include "lib/server/options.hpp"
#include "lib/session/counters.hpp"

/// From the first line of a server's life to its last, with what lib/net has for it.
namespace netdyno {

/// As the options say.
inline UniqueFd listen_tcp(const ServerOptions& options, bool nonblocking) {
  return listen_tcp(options.listen, options.backlog, nonblocking);
}

/// Prints the one line that says the server accepts: {"ready":true,"endpoint":…,"pid":…}.
void announce_ready(const Url& endpoint);

/// How long a server may still work on what is in flight after a shutdown signal.
inline constexpr std::chrono::seconds shutdown_grace{2};

/// Prints the one line of totals that ends a server's life.
void print_totals(const Totals& totals);
/// The same with one more entry: its value is the text `json`.
void print_totals(const Totals& totals, const std::string& name, const std::string& json);
/// The same of a server whose transport has no connections.
void print_totals_with_peers(const Totals& totals);
void print_totals_with_peers(const Totals& totals, const std::string& name, const std::string& json);

}  // namespace netdyno
