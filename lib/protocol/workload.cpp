#include "lib/protocol/workload.hpp"

namespace netdyno {

const std::map<std::string, Workload>& served_workloads() {
  static const std::map<std::string, Workload> served{{"echo", Workload::echo}, {"lines", Workload::lines},
                                                      {"rpc", Workload::rpc},   {"chat", Workload::chat},
                                                      {"http", Workload::http}, {"web", Workload::web}};
  return served;
}

const std::map<std::string, Workload>& workloads() {
  static const std::map<std::string, Workload> all = [] {
    auto served = served_workloads();
    served.emplace("grpc", Workload::grpc);
    return served;
  }();
  return all;
}

std::string_view to_string(Workload workload) {
  for (const auto& [name, value] : workloads())
    if (value == workload) return name;
  return "?";
}

}  // namespace netdyno
