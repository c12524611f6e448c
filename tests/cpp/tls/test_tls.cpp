// A session of lib/session/tls.cpp and a client of OpenSSL, without sockets between them.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "lib/net/tls/openssl.hpp"
#include "lib/session/session.hpp"
#include "lib/session/tls.hpp"

namespace netdyno {
namespace {

constexpr std::size_t whole = std::string_view::npos;
constexpr std::string_view unsealed{"\x17\x03\x03\x00\x20 a record that no key has sealed.", 5 + 32};

/// A client that shakes hands by itself; what it has to send waits in `unsent`.
class Peer {
 public:
  explicit Peer(int version) {
    SSL_CTX_set_min_proto_version(context_.get(), version);
    SSL_CTX_set_max_proto_version(context_.get(), version);
    ssl_.reset(SSL_new(context_.get()));
    BIO* const bio = BIO_new(method_.get());
    BIO_set_data(bio, &pipe_);
    BIO_set_init(bio, 1);
    SSL_set_bio(ssl_.get(), bio, bio);
    SSL_set_connect_state(ssl_.get());
    receive({});
  }

  void receive(std::string_view bytes) {
    ERR_clear_error();
    pipe_.input = bytes;
    int taken = 0;
    do {
      std::array<char, SSL3_RT_MAX_PLAIN_LENGTH> plain;
      taken = SSL_read(ssl_.get(), plain.data(), static_cast<int>(plain.size()));
      if (taken > 0) received.append(plain.data(), static_cast<std::size_t>(taken));
    } while (taken > 0);
    pipe_.input = {};
    const int error = SSL_get_error(ssl_.get(), taken);
    is_ended = is_ended || error == SSL_ERROR_ZERO_RETURN;
    is_broken = is_broken || (error != SSL_ERROR_WANT_READ && error != SSL_ERROR_ZERO_RETURN);
  }

  /// In a record of its own.
  void write(std::string_view plain) {
    ASSERT_EQ(SSL_write(ssl_.get(), plain.data(), static_cast<int>(plain.size())), static_cast<int>(plain.size()));
  }
  void announce_end() { SSL_shutdown(ssl_.get()); }
  /// The next record is sealed by a new key, and so is to be what the server sends (RFC 8446, 4.6.3).
  void change_keys() { ASSERT_EQ(SSL_key_update(ssl_.get(), SSL_KEY_UPDATE_REQUESTED), 1); }
  bool changes_keys() const { return SSL_get_key_update_type(ssl_.get()) != SSL_KEY_UPDATE_NONE; }

  std::string& unsent() { return pipe_.output; }

  std::string received;
  bool is_ended = false;   // by close_notify
  bool is_broken = false;  // by an alert

 private:
  tls::Pipe pipe_;
  tls::Method method_ = tls::make_method();
  tls::Context context_{SSL_CTX_new(TLS_client_method())};
  tls::Ssl ssl_;
};

std::shared_ptr<TlsLayer> make_layer() { return load_tls_layer(NETDYNO_BINARY_DIR "/tls/server.pem"); }

SessionOptions lines_over_tls() {
  static const std::shared_ptr<TlsLayer> layer = make_layer();
  SessionOptions options;
  options.workload = Workload::lines;
  options.tls = layer;
  return options;
}

/// A session that gets at most `slice` bytes at a time, and its client.
class Conversation {
 public:
  explicit Conversation(std::size_t slice = whole, int version = TLS1_3_VERSION) : peer{version}, slice_(slice) {
    send();
  }

  /// Sends what the client has to send, and what it answers, until neither has more to say.
  void send() {
    while (!peer.unsent().empty()) {
      const std::string segment = std::exchange(peer.unsent(), {});
      for (std::size_t at = 0; at < segment.size(); at += std::min(slice_, segment.size() - at)) {
        session_->receive(std::string_view{segment}.substr(at, slice_), effects_);
        carry_out();
      }
    }
  }

  void end() {
    session_->end(effects_);
    carry_out();
  }

  Totals totals() const { return counters_.totals(); }

  Peer peer;
  bool is_closed = false;

 private:
  void carry_out() {
    for (const Effect& effect : effects_) {
      ASSERT_FALSE(is_closed) << "something follows a close";
      if (effect.kind == Effect::Kind::write) peer.receive(effects_.bytes(effect));
      is_closed = effect.kind == Effect::Kind::close;
    }
    effects_.clear();
  }

  const std::size_t slice_;
  Counters counters_;
  std::unique_ptr<Session> session_ = make_session(lines_over_tls(), counters_);
  Effects effects_{WriteMode::gathered};
};

class Versions : public testing::TestWithParam<int> {
 protected:
  /// Slices of every length that a record of these tests has, and all in one.
  template <typename Run>
  void for_each_slicing(Run run) {
    constexpr std::size_t longest = 80;
    for (std::size_t slice = 1; slice <= longest && !HasFailure(); ++slice) run(slice);
    run(whole);
  }
};

INSTANTIATE_TEST_SUITE_P(Tls, Versions, testing::Values(TLS1_2_VERSION, TLS1_3_VERSION));

TEST_P(Versions, SlicingChangesNothing) {
  for_each_slicing([](std::size_t slice) {
    Conversation conversation{slice, GetParam()};
    for (const char* text : {"one\ntwo\n", "thr", "ee\nrest"}) conversation.peer.write(text);
    conversation.peer.announce_end();
    conversation.send();
    EXPECT_EQ(conversation.peer.received, "one\ntwo\nthree\nrest") << slice;
    EXPECT_TRUE(conversation.is_closed) << slice;
    EXPECT_TRUE(conversation.peer.is_ended) << slice;
    EXPECT_EQ(conversation.totals().protocol_errors, 0U) << slice;
    EXPECT_EQ(conversation.totals().requests, 4U) << slice;
  });
}

TEST_P(Versions, WhatComesBeforeABadRecordIsAnswered) {
  for_each_slicing([](std::size_t slice) {
    Conversation conversation{slice, GetParam()};
    for (const char* text : {"one\n", "two\nthree\n", "never ended"}) conversation.peer.write(text);
    conversation.peer.unsent() += unsealed;
    conversation.send();
    EXPECT_EQ(conversation.peer.received, "one\ntwo\nthree\n") << slice;
    EXPECT_TRUE(conversation.is_closed) << slice;
    EXPECT_TRUE(conversation.peer.is_broken) << slice;
    EXPECT_EQ(conversation.totals().protocol_errors, 1U) << slice;
  });
}

TEST_P(Versions, WhatComesBeforeAnEndIsAnswered) {
  Conversation conversation{whole, GetParam()};
  conversation.peer.write("one\nrest");
  conversation.send();
  EXPECT_EQ(conversation.peer.received, "one\n");
  conversation.end();
  EXPECT_EQ(conversation.peer.received, "one\nrest");
  EXPECT_TRUE(conversation.is_closed);
  EXPECT_TRUE(conversation.peer.is_ended);
  EXPECT_EQ(conversation.totals().protocol_errors, 0U);
}

TEST_P(Versions, AMessageOfManyRecordsIsAnsweredByMany) {
  for (const std::size_t slice : {std::size_t{1000}, std::size_t{1} << 16, whole}) {
    Conversation conversation{slice, GetParam()};
    const std::string line = std::string(300'000, 'x') + "\n";
    conversation.peer.write(line);
    conversation.send();
    EXPECT_TRUE(conversation.peer.received == line) << slice;
  }
}

TEST(TlsSession, AnEndInsideTheHandshakeIsNoError) {
  Counters counters;
  Effects effects{WriteMode::gathered};
  const auto session = make_session(lines_over_tls(), counters);
  session->receive("\x16", effects);
  session->end(effects);
  ASSERT_EQ(effects.end() - effects.begin(), 1);
  EXPECT_EQ(effects.begin()->kind, Effect::Kind::close);
  EXPECT_EQ(counters.totals().protocol_errors, 0U);
}

TEST(TlsSession, ALayerLivesAsLongAsASession) {
  Counters counters;
  SessionOptions options = lines_over_tls();
  options.tls = make_layer();
  const std::weak_ptr<TlsLayer> layer = options.tls;
  std::unique_ptr<Session> session = make_session(options, counters);
  options.tls.reset();
  EXPECT_FALSE(layer.expired());
  session.reset();
  EXPECT_TRUE(layer.expired());
}

TEST(TlsSession, TheClientMayChangeItsKeys) {
  Conversation conversation;
  for (const char* text : {"one\n", "two\n", "three\n"}) {
    conversation.peer.change_keys();
    conversation.peer.write(text);
    conversation.send();
    EXPECT_FALSE(conversation.peer.changes_keys());
  }
  EXPECT_EQ(conversation.peer.received, "one\ntwo\nthree\n");
  EXPECT_EQ(conversation.totals().protocol_errors, 0U);
}

}  // namespace
}  // namespace netdyno
