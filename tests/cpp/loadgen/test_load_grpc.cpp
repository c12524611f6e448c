// Whole runs of the generator against a server of gRPC that answers well or badly, in known ways.
#include <gmock/gmock.h>

#if __has_include(<nghttp2/nghttp2.h>)

#include <nghttp2/nghttp2.h>

#include <memory>
#include <optional>

#include "grpc.pb.h"
#include "loadgen/codec/codec.hpp"
#include "loadgen/codec/grpc_message.hpp"
#include "loadgen/plan/built_with.hpp"
#include "tests/cpp/loadgen/fake_server.hpp"
#include "tests/cpp/loadgen/load_run.hpp"

namespace netdyno::load {
namespace {

using testing::HasSubstr;

struct GrpcAnswer {
  std::string reply;  // with its prefix
  std::string http_status = "200";
  std::string grpc_status = "0";
  std::string grpc_message = "";
  std::uint32_t reset = 0;  // instead: RST_STREAM with this code
  bool goes_away = false;   // instead: GOAWAY, in which this request is not carried out
  bool overtaken = false;   // by the answer to the next request
};
/// Gets the number of the request on its connection, and its message with the prefix.
using GrpcBehaviour = std::function<GrpcAnswer(int request, const std::string& message)>;

/// The server's half of one connection: bytes in, bytes out.
class GrpcPeer {
 public:
  GrpcPeer(GrpcBehaviour behaviour, std::uint32_t most_streams) : behaviour_(std::move(behaviour)) {
    nghttp2_session_callbacks* callbacks = nullptr;
    nghttp2_session_callbacks_new(&callbacks);
    nghttp2_session_callbacks_set_on_data_chunk_recv_callback(
        callbacks, [](nghttp2_session*, std::uint8_t, std::int32_t stream, const std::uint8_t* data, std::size_t size,
                      void* self) {
          static_cast<GrpcPeer*>(self)->requests_[stream].append(reinterpret_cast<const char*>(data), size);
          return 0;
        });
    nghttp2_session_callbacks_set_on_frame_recv_callback(
        callbacks, [](nghttp2_session*, const nghttp2_frame* frame, void* self) {
          const bool ends = frame->hd.type == NGHTTP2_DATA && (frame->hd.flags & NGHTTP2_FLAG_END_STREAM) != 0;
          if (ends) static_cast<GrpcPeer*>(self)->take(frame->hd.stream_id);
          return 0;
        });
    nghttp2_session_server_new(&session_, callbacks, this);
    nghttp2_session_callbacks_del(callbacks);
    const nghttp2_settings_entry settings{NGHTTP2_SETTINGS_MAX_CONCURRENT_STREAMS, most_streams};
    nghttp2_submit_settings(session_, NGHTTP2_FLAG_NONE, &settings, 1);
  }
  GrpcPeer(const GrpcPeer&) = delete;
  ~GrpcPeer() { nghttp2_session_del(session_); }

  std::string receive(const std::string& bytes) {
    nghttp2_session_mem_recv(session_, reinterpret_cast<const std::uint8_t*>(bytes.data()), bytes.size());
    std::string out;
    const std::uint8_t* data = nullptr;
    for (ssize_t size = 0; (size = nghttp2_session_mem_send(session_, &data)) > 0;)
      out.append(reinterpret_cast<const char*>(data), static_cast<std::size_t>(size));
    return out;
  }

 private:
  void take(std::int32_t stream) {
    GrpcAnswer answer = behaviour_(count_++, requests_[stream]);
    const bool waits = answer.overtaken;
    const auto waiting = std::exchange(overtaken_, waits ? stream : 0);
    answers_[stream] = std::move(answer);
    if (!waits) reply(stream);
    if (waiting != 0) reply(waiting);
  }

  void reply(std::int32_t stream) {
    const GrpcAnswer& answer = answers_[stream];
    if (answer.goes_away) {
      nghttp2_submit_goaway(session_, NGHTTP2_FLAG_NONE, stream - 2, NGHTTP2_ENHANCE_YOUR_CALM, nullptr, 0);
      return;
    }
    if (answer.reset != 0) {
      nghttp2_submit_rst_stream(session_, NGHTTP2_FLAG_NONE, stream, answer.reset);
      return;
    }
    const nghttp2_nv headers[] = {header(":status", answer.http_status), header("content-type", "application/grpc")};
    const nghttp2_data_provider body{{.ptr = this}, read};
    nghttp2_submit_response(session_, stream, headers, 2, &body);
  }

  static nghttp2_nv header(std::string_view name, std::string_view value) {
    const auto bytes = [](std::string_view text) {
      return const_cast<std::uint8_t*>(reinterpret_cast<const std::uint8_t*>(text.data()));
    };
    return {bytes(name), bytes(value), name.size(), value.size(), NGHTTP2_NV_FLAG_NONE};
  }

  static ssize_t read(nghttp2_session* session, std::int32_t stream, std::uint8_t* buffer, std::size_t room,
                      std::uint32_t* flags, nghttp2_data_source* source, void*) {
    GrpcAnswer& answer = static_cast<GrpcPeer*>(source->ptr)->answers_[stream];
    const std::size_t size = answer.reply.copy(reinterpret_cast<char*>(buffer), room);
    answer.reply.erase(0, size);
    if (answer.reply.empty()) {
      *flags |= NGHTTP2_DATA_FLAG_EOF | NGHTTP2_DATA_FLAG_NO_END_STREAM;
      const nghttp2_nv trailers[] = {header("grpc-status", answer.grpc_status),
                                     header("grpc-message", answer.grpc_message)};
      nghttp2_submit_trailer(session, stream, trailers, answer.grpc_message.empty() ? 1 : 2);
    }
    return static_cast<ssize_t>(size);
  }

  GrpcBehaviour behaviour_;
  nghttp2_session* session_ = nullptr;
  int count_ = 0;
  std::int32_t overtaken_ = 0;  // the stream whose answer waits
  std::map<std::int32_t, std::string> requests_;
  std::map<std::int32_t, GrpcAnswer> answers_;
};

FakeServer::Behaviour serve_grpc(const GrpcBehaviour& behaviour, std::uint32_t most_streams = 100) {
  using Peers = std::map<int, std::unique_ptr<GrpcPeer>>;
  return [peers = std::make_shared<Peers>(), behaviour, most_streams](int connection, int,
                                                                      const std::string& bytes) -> FakeServer::Answer {
    auto& peer = (*peers)[connection];
    if (!peer) peer = std::make_unique<GrpcPeer>(behaviour, most_streams);
    return {peer->receive(bytes)};
  };
}

std::size_t all_there_is(const std::string& bytes) { return bytes.size(); }

std::string with_prefix(const google::protobuf::MessageLite& message) {
  const auto length = encode_frame_header(message.ByteSizeLong());
  return std::string(1, '\0') + std::string{length.data(), length.size()} + message.SerializeAsString();
}

unary::Request parse_request(const std::string& message) {
  unary::Request request;
  EXPECT_TRUE(request.ParseFromString(message.substr(grpc_prefix_size)));
  return request;
}

GrpcAnswer answer_well(int, const std::string& message) {
  const unary::Request request = parse_request(message);
  unary::Reply reply;
  reply.set_body(request.stamp() + std::string(request.size() - request.stamp().size(), 'x'));
  return {with_prefix(reply)};
}

LoadPlan grpc_plan(const FakeServer& server, int messages) {
  LoadPlan plan = one_by_one(server.url(), messages);
  plan.workload = Workload::grpc;
  plan.size = 64;
  return plan;
}

class LoadGrpc : public testing::Test {
 protected:
  void SetUp() override {
    if (!built_with().http2) GTEST_SKIP() << "the generator is built without libnghttp2-dev";
  }

  /// A hundred messages, one a millisecond, to a server that behaves like this.
  Figures hundred(const GrpcBehaviour& behaviour) {
    const FakeServer server{serve_grpc(behaviour), false, all_there_is};
    plan_ = grpc_plan(server, 100);
    result_ = measure(*plan_);
    return result_.figures;
  }
  std::string words_of_only_fault() const {
    const auto& kinds = result_.figures.faults.kinds;
    return kinds.size() == 1 ? kinds.front().what : std::to_string(kinds.size()) + " faults";
  }

  std::optional<LoadPlan> plan_;
  Measurement result_;
};

TEST_F(LoadGrpc, VerifiesEachReply) {
  const Figures f = hundred(answer_well);
  EXPECT_EQ(f.messages.received, 100U);
  EXPECT_EQ(f.messages.corrupt + f.messages.unexpected + f.messages.reordered, 0U);
  EXPECT_EQ(f.bytes.received, f.bytes.expected);
  EXPECT_EQ(f.bytes.received, 100U * (grpc_prefix_size + 2 + 64));
  for (const char* name : {"verification", "bytes", "connections"}) EXPECT_TRUE(passed(audit(*plan_, result_), name));
}

TEST_F(LoadGrpc, AsksForSizeAndTimeInEachRequest) {
  std::vector<unary::Request> requests;
  const FakeServer server{serve_grpc([&](int number, const std::string& message) {
                            requests.push_back(parse_request(message));
                            return answer_well(number, message);
                          }),
                          false, all_there_is};
  for (const ServiceKind kind : {ServiceKind::wait, ServiceKind::cpu}) {
    LoadPlan plan = grpc_plan(server, 1);
    plan.service_us = 250;
    plan.service_kind = kind;
    measure(plan);
  }
  ASSERT_EQ(requests.size(), 2U);
  EXPECT_EQ(requests[0].size(), 64U);
  EXPECT_EQ(requests[0].wait_us(), 250U);
  EXPECT_EQ(requests[0].cpu_us(), 0U);
  EXPECT_EQ(requests[1].wait_us(), 0U);
  EXPECT_EQ(requests[1].cpu_us(), 250U);
}

TEST_F(LoadGrpc, AReplyMayOvertakeAnother) {
  const FakeServer server{serve_grpc([](int number, const std::string& message) {
                            GrpcAnswer answer = answer_well(number, message);
                            answer.overtaken = number % 2 == 0;
                            return answer;
                          }),
                          false, all_there_is};
  LoadPlan plan = grpc_plan(server, 100);
  plan.rate_hz.reset();
  plan.arrivals = Arrivals::closed;
  plan.depth = 2;
  plan.count = 100;
  const Figures f = measure(plan).figures;
  EXPECT_EQ(f.messages.received, 100U);
  EXPECT_EQ(f.messages.reordered + f.errors.timeout, 0U);
}

TEST_F(LoadGrpc, OpensNoMoreStreamsThanTheServerAllows) {
  constexpr std::uint32_t most_streams = 3;
  const FakeServer server{serve_grpc(answer_well, most_streams), false, all_there_is};
  LoadPlan plan = grpc_plan(server, 100);
  plan.rate_hz.reset();
  plan.arrivals = Arrivals::closed;
  plan.depth = 20;
  plan.count = 200;
  const Figures f = measure(plan).figures;
  EXPECT_EQ(f.messages.received, 200U);
  EXPECT_EQ(f.messages.unexpected, 0U);
  EXPECT_GT(f.blocked_lag.count(), 0U) << "what waits for a stream is not sent yet";
}

TEST_F(LoadGrpc, TellsAStatusFromAReply) {
  const Figures f = hundred([](int number, const std::string& message) {
    GrpcAnswer answer = answer_well(number, message);
    if (every_tenth(number)) answer.grpc_status = "14", answer.grpc_message = "busy";
    return answer;
  });
  EXPECT_EQ(f.messages.unexpected, 10U);
  EXPECT_EQ(f.messages.received, 90U);
  EXPECT_EQ(f.messages.lost(), 0);
  EXPECT_EQ(f.errors.timeout, 0U) << "its end is known at once";
  EXPECT_EQ(words_of_only_fault(), "grpc-status 14 UNAVAILABLE: busy");
  EXPECT_EQ(f.bytes.received, f.bytes.expected);
  EXPECT_FALSE(passed(audit(*plan_, result_), "verification"));
}

TEST_F(LoadGrpc, TellsAResetOfAStream) {
  const Figures f = hundred([](int number, const std::string& message) {
    GrpcAnswer answer = answer_well(number, message);
    if (every_tenth(number)) answer.reset = NGHTTP2_INTERNAL_ERROR;
    return answer;
  });
  EXPECT_EQ(f.messages.unexpected, 10U);
  EXPECT_EQ(f.messages.received, 90U);
  EXPECT_EQ(words_of_only_fault(), "the server resets the stream: INTERNAL_ERROR");
}

TEST_F(LoadGrpc, TellsThatTheServerGoesAway) {
  const Figures f = hundred([](int number, const std::string& message) {
    GrpcAnswer answer = answer_well(number, message);
    answer.goes_away = number == 50;
    return answer;
  });
  EXPECT_EQ(f.messages.received, 50U);
  EXPECT_GE(f.messages.unexpected, 1U);
  EXPECT_EQ(f.errors.closed_by_server, 1U);
  ASSERT_EQ(f.faults.kinds.size(), 2U);
  EXPECT_THAT(f.faults.kinds[0].what, HasSubstr("takes no more requests on this connection (GOAWAY)"));
  EXPECT_THAT(f.faults.kinds[1].what, HasSubstr("GOAWAY, ENHANCE_YOUR_CALM"));
  EXPECT_FALSE(passed(audit(*plan_, result_), "connections"));
}

TEST_F(LoadGrpc, TakesNoReplyToAnotherRequestForItsOwn) {
  const Figures f = hundred([first = std::string{}](int number, const std::string& message) mutable {
    GrpcAnswer answer = answer_well(number, message);
    if (number == 0) first = answer.reply;
    if (every_tenth(number)) answer.reply = first;
    return answer;
  });
  EXPECT_EQ(f.messages.unexpected, 10U);
  EXPECT_EQ(f.messages.duplicated, 0U);
  EXPECT_EQ(words_of_only_fault(), "its reply answers another request");
}

TEST_F(LoadGrpc, CountsAWrongBodyAsCorrupt) {
  const Figures f = hundred([](int number, const std::string& message) {
    GrpcAnswer answer = answer_well(number, message);
    if (every_tenth(number)) answer.reply.back() = 'y';
    return answer;
  });
  EXPECT_EQ(f.messages.corrupt, 10U);
  EXPECT_EQ(f.messages.received, 90U);
}

TEST_F(LoadGrpc, WantsOneMessageThatIsNotCompressed) {
  for (const bool compressed : {true, false}) {
    const Figures f = hundred([compressed](int number, const std::string& message) {
      GrpcAnswer answer = answer_well(number, message);
      if (every_tenth(number)) compressed ? answer.reply[0] = '\1' : (answer.reply += answer.reply)[0];
      return answer;
    });
    EXPECT_EQ(f.messages.unexpected, 10U);
    EXPECT_EQ(words_of_only_fault(), "its reply is not one uncompressed message");
  }
}

TEST_F(LoadGrpc, ReadsRepliesHoweverTheyAreCut) {
  struct SeenSequences final : ReplySink {
    void on_reply(const Stamp& stamp, std::size_t) override { sequences.push_back(stamp.sequence); }
    void on_corrupt() override { ADD_FAILURE(); }
    std::vector<std::uint64_t> sequences;
  } seen;
  LoadPlan plan;
  plan.workload = Workload::grpc;
  plan.size = 300;
  const auto codec = make_codec(plan);
  std::string replies;
  for (std::uint64_t sequence = 0; sequence < 3; ++sequence) {
    std::string request;
    codec->encode({0, sequence}, request);
    replies += answer_well(0, request).reply;
  }
  for (const std::size_t piece : {std::size_t{1}, std::size_t{7}, replies.size()}) {
    seen.sequences.clear();
    const auto decoder = codec->make_decoder();
    for (std::size_t at = 0; at < replies.size(); at += piece)
      ASSERT_TRUE(decoder->receive(std::string_view{replies}.substr(at, piece), seen));
    EXPECT_EQ(seen.sequences, (std::vector<std::uint64_t>{0, 1, 2}));
    EXPECT_TRUE(decoder->at_boundary());
  }
}

TEST_F(LoadGrpc, NamesAServerThatSpeaksNoHttp2) {
  const FakeServer server{[](int, int, const std::string&) -> FakeServer::Answer {
                            return {"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n"};
                          },
                          false, all_there_is};
  const Figures f = measure(grpc_plan(server, 10)).figures;
  EXPECT_EQ(f.connections.established, 0U);
  EXPECT_EQ(f.connections.other, 1U);
  ASSERT_EQ(f.faults.kinds.size(), 1U);
  EXPECT_EQ(f.faults.kinds[0].what, "what the server answers is no HTTP/2");
}

}  // namespace
}  // namespace netdyno::load

#endif
