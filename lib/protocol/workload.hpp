#pragma once

#include <map>
#include <string>
#include <string_view>

/// Workloads, and the ways of requesting them: the words of protocol/WIRE.md.
namespace netdyno {

enum class Workload { echo, lines, rpc, chat, http, web, grpc };

/// Those that clients speak: all of them, by the names that options and experiments have for them.
const std::map<std::string, Workload>& workloads();
/// Those that netdyno's own servers speak; of grpc, frameworks alone are servers.
const std::map<std::string, Workload>& served_workloads();
std::string_view to_string(Workload workload);
inline bool speaks_http(Workload workload) { return workload == Workload::http || workload == Workload::web; }

enum class WriteMode { gathered, split };
enum class DeliveryMode { joined, single };
enum class Audience { others, all };
enum class ServiceKind { wait, cpu, backend };

}  // namespace netdyno
