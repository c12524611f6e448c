/// The workload grpc by gRPC's C++ library: its callback API, on threads of its own.

#include <absl/synchronization/mutex.h>
#include <grpc.grpc.pb.h>
#include <grpcpp/alarm.h>
#include <grpcpp/grpcpp.h>

#include <algorithm>
#include <chrono>
#include <ctime>
#include <fstream>
#include <iterator>
#include <memory>
#include <string>

using netdyno::unary::Reply;
using netdyno::unary::Request;
using netdyno::unary::Work;
using std::chrono::microseconds;

/// Keeps the thread busy, by its CPU clock.
void burn(microseconds duration) {
  const auto used = [] {
    timespec now{};
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return std::chrono::seconds{now.tv_sec} + std::chrono::nanoseconds{now.tv_nsec};
  };
  for (const auto end = used() + duration; used() < end;) {
  }
}

class Service final : public Work::CallbackService {
  grpc::ServerUnaryReactor* Answer(grpc::CallbackServerContext* context, const Request* request,
                                   Reply* reply) override {
    auto* const reactor = context->DefaultReactor();
    const auto answer = [=] {
      if (request->cpu_us() > 0) burn(microseconds{request->cpu_us()});
      *reply->mutable_body() = request->stamp();
      reply->mutable_body()->resize(std::max<std::size_t>(request->stamp().size(), request->size()), 'x');
      reactor->Finish(grpc::Status::OK);
    };
    if (request->wait_us() == 0) {
      answer();
    } else {
      auto timer = std::make_shared<grpc::Alarm>();
      timer->Set(std::chrono::system_clock::now() + microseconds{request->wait_us()},
                 [timer, answer](bool) { answer(); });
    }
    return reactor;
  }
};

std::shared_ptr<grpc::ServerCredentials> make_credentials(const std::string& file) {
  if (file.empty()) return grpc::InsecureServerCredentials();
  std::ifstream stream{file};
  const std::string pem{std::istreambuf_iterator<char>{stream}, {}};
  grpc::SslServerCredentialsOptions options;
  options.pem_key_cert_pairs.push_back({pem, pem});
  return grpc::SslServerCredentials(options);
}

int main(int, char** argv) {
  // A library with assertions, such as Debian's, would look for deadlocks at each lock.
  absl::SetMutexDeadlockDetectionMode(absl::OnDeadlockCycle::kIgnore);
  Service service;
  grpc::ServerBuilder builder;
  builder.AddListeningPort(argv[1], make_credentials(argv[2]));
  builder.RegisterService(&service);
  const auto server = builder.BuildAndStart();
  if (!server) return 1;
  server->Wait();
}
