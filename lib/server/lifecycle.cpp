#include "lib/server/lifecycle.hpp"

#include <unistd.h>

#include <cstdio>
#include <nlohmann/json.hpp>

namespace netdyno {
namespace {

void print_line(const nlohmann::ordered_json& json) {
  std::printf("%s\n", json.dump().c_str());
  std::fflush(stdout);
}

nlohmann::ordered_json totals_json(const Totals& totals) {
  return {{"requests", totals.requests},
          {"bytes_in", totals.bytes_in},
          {"bytes_out", totals.bytes_out},
          {"connections", totals.connections},
          {"protocol_errors", totals.protocol_errors},
          {"slow_closed", totals.slow_closed},
          {"memory_closed", totals.memory_closed}};
}

nlohmann::ordered_json totals_with_peers(const Totals& totals) {
  auto json = totals_json(totals);
  json["oversized"] = totals.oversized;
  json["peers_refused"] = totals.peers_refused;
  json["peers_expired"] = totals.peers_expired;
  json["strangers"] = totals.strangers;
  json["send_dropped"] = totals.send_dropped;
  json["receive_dropped"] = totals.receive_dropped;
  return json;
}

}  // namespace

void announce_ready(const Url& endpoint) {
  print_line({{"ready", true}, {"endpoint", format_url(endpoint)}, {"pid", getpid()}});
}

void print_totals(const Totals& totals) { print_line(totals_json(totals)); }

void print_totals(const Totals& totals, const std::string& name, const std::string& json) {
  auto all = totals_json(totals);
  all[name] = nlohmann::ordered_json::parse(json);
  print_line(all);
}

void print_totals_with_peers(const Totals& totals) { print_line(totals_with_peers(totals)); }

void print_totals_with_peers(const Totals& totals, const std::string& name, const std::string& json) {
  auto all = totals_with_peers(totals);
  all[name] = nlohmann::ordered_json::parse(json);
  print_line(all);
}

}  // namespace netdyno
