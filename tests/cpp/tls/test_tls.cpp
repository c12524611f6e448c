// A session of lib/session/tls.cpp and a client of OpenSSL, without sockets between them.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <memory>
#include <new>
#include <string>
#include <string_view>
#include <thread>
#include <utility>

#include "lib/net/tls/openssl.hpp"
#include "lib/session/session.hpp"
#include "lib/session/tls.hpp"

namespace netdyno {
namespace {

// --- memory that runs out ------------------------------------------------------------------------------------------

constexpr int endless = -1;
/// How many allocations of this thread succeed before all others fail.
thread_local int allocations_left = endless;

bool has_memory() {
  if (allocations_left == endless) return true;
  if (allocations_left == 0) return false;
  --allocations_left;
  return true;
}

/// Before OpenSSL takes memory for the first time.
const bool openssl_is_watched =
    CRYPTO_set_mem_functions(
        [](std::size_t size, const char*, int) { return has_memory() ? std::malloc(size) : nullptr; },
        [](void* old, std::size_t size, const char*, int) { return has_memory() ? std::realloc(old, size) : nullptr; },
        [](void* gone, const char*, int) { std::free(gone); }) == 1;

}  // namespace
}  // namespace netdyno

void* operator new(std::size_t size) {
  void* const made = netdyno::has_memory() ? std::malloc(size) : nullptr;
  if (made == nullptr) throw std::bad_alloc{};
  return made;
}
void operator delete(void* gone) noexcept { std::free(gone); }
void operator delete(void* gone, std::size_t) noexcept { std::free(gone); }

namespace netdyno {
namespace {

// --- both sides ----------------------------------------------------------------------------------------------------

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

/// A session that gets at most `slice` bytes at a time and has so many allocations, and its client.
class Conversation {
 public:
  explicit Conversation(std::size_t slice = whole, int version = TLS1_3_VERSION, int allocations = endless)
      : peer{version}, slice_(slice), left_(allocations) {
    send();  // which is the handshake
  }

  /// Sends what the client has to send, and what it answers, until neither has more to say.
  void send() {
    while (!peer.unsent().empty()) {
      const std::string segment = std::exchange(peer.unsent(), {});
      for (std::size_t at = 0; at < segment.size(); at += std::min(slice_, segment.size() - at)) {
        with_memory([&] { session_->receive(std::string_view{segment}.substr(at, slice_), effects_); });
        carry_out();
      }
    }
  }

  void end() {
    with_memory([&] { session_->end(effects_); });
    carry_out();
  }

  /// From here on the session has so many allocations left.
  void limit_memory(int allocations) { left_ = allocations; }

  Totals totals() const { return counters_.totals(); }

  Peer peer;
  bool is_closed = false;

 private:
  template <typename Serve>
  void with_memory(Serve serve) {
    allocations_left = left_;
    serve();
    left_ = std::exchange(allocations_left, endless);
  }

  void carry_out() {
    for (const Effect& effect : effects_) {
      ASSERT_FALSE(is_closed) << "something follows a close";
      if (effect.kind == Effect::Kind::write) peer.receive(effects_.bytes(effect));
      is_closed = effect.kind == Effect::Kind::close;
    }
    effects_.clear();
  }

  const std::size_t slice_;
  int left_;
  Counters counters_;
  std::unique_ptr<Session> session_ = make_session(lines_over_tls(), counters_);
  Effects effects_{WriteMode::gathered};
};

// --- tests ---------------------------------------------------------------------------------------------------------

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

// --- without memory ------------------------------------------------------------------------------------------------

struct MemoryTest {
  /// What the client has received before memory may run out, and with enough of it.
  std::string before;
  std::string after;
  bool knows_reason = true;  // OpenSSL says each time that it lacked memory
};

/// Has `run` go through a conversation with ever more allocations, until they are enough. In each before, the client is
/// closed and counted, and nothing else is done. In threads of their own, which keep no room of an earlier call.
template <typename Run>
void run_out_of_memory(const MemoryTest& test, Run run) {
  ASSERT_TRUE(openssl_is_watched);
  constexpr int most = 20'000;
  int left = 0;
  for (bool is_enough = false; !is_enough && left < most && !testing::Test::HasFailure(); ++left) {
    std::thread([&] {
      const std::unique_ptr<Conversation> conversation = run(left);
      const Totals totals = conversation->totals();
      is_enough = conversation->peer.received == test.after && conversation->peer.is_ended;
      EXPECT_EQ(totals.memory_closed + totals.protocol_errors, is_enough ? 0U : 1U) << left;
      EXPECT_TRUE(totals.protocol_errors == 0 || !test.knows_reason) << left;
      EXPECT_TRUE(conversation->is_closed) << left;
      EXPECT_TRUE(is_enough || conversation->peer.received == test.before) << left;
    }).join();
  }
  EXPECT_GT(left, 1) << "it takes no memory";
  EXPECT_LT(left, most);
}

/// More than the handshake has left room for.
const std::string long_text(40'000, 'x');

TEST(WithoutMemory, TheEndOfAStreamClosesOnlyThat) {
  run_out_of_memory({.before = "one\n", .after = "one\n" + long_text}, [](int left) {
    auto conversation = std::make_unique<Conversation>();
    conversation->peer.write("one\n" + long_text);
    conversation->send();
    conversation->limit_memory(left);
    conversation->end();
    return conversation;
  });
}

TEST(WithoutMemory, TheEndOfAStreamWithoutRepliesClosesOnlyThat) {
  run_out_of_memory({.before = "one\n", .after = "one\n"}, [](int left) {
    auto conversation = std::make_unique<Conversation>();
    conversation->peer.write("one\n");
    conversation->send();
    conversation->limit_memory(left);
    conversation->end();
    return conversation;
  });
}

TEST(WithoutMemory, APipeThrowsNothingThroughOpenSsl) {
  tls::Pipe pipe;
  const tls::Method method = tls::make_method();
  const tls::Bio bio{BIO_new(method.get())};
  BIO_set_data(bio.get(), &pipe);
  BIO_set_init(bio.get(), 1);
  bool has_thrown = false;
  int written = 0;
  allocations_left = 0;
  try {
    written = BIO_write(bio.get(), long_text.data(), static_cast<int>(long_text.size()));
  } catch (const std::bad_alloc&) {
    has_thrown = true;
  }
  allocations_left = endless;
  EXPECT_FALSE(has_thrown);
  EXPECT_LT(written, 0);
  EXPECT_TRUE(pipe.is_out_of_memory);
  EXPECT_FALSE(BIO_should_retry(bio.get()));
}

TEST(WithoutMemory, ARecordClosesOnlyItsClient) {
  run_out_of_memory({.before = "one\n", .after = "one\n" + long_text + "\n"}, [](int left) {
    auto conversation = std::make_unique<Conversation>();
    conversation->peer.write("one\n");
    conversation->send();
    conversation->limit_memory(left);
    conversation->peer.write(long_text + "\n");
    conversation->peer.announce_end();
    conversation->send();
    return conversation;
  });
}

/// A server that accepts has nothing around it that would close that client alone.
TEST(WithoutMemory, ASessionIsMadeBeforeOpenSslNeedsAny) {
  const SessionOptions options = lines_over_tls();
  Counters counters;
  Effects effects{WriteMode::gathered};
  const auto make = [&]() -> std::unique_ptr<Session> {
    try {
      return make_session(options, counters);
    } catch (const std::bad_alloc&) {
      return nullptr;
    }
  };
  constexpr int of_a_session = 8;
  allocations_left = of_a_session;
  const std::unique_ptr<Session> session = make();
  allocations_left = endless;
  ASSERT_TRUE(session);
  session->end(effects);
  EXPECT_FALSE(effects.empty());
}

TEST(WithoutMemory, AHandshakeClosesOnlyItsClient) {
  const Conversation first;  // OpenSSL takes memory for all that follow
  run_out_of_memory({.before = "", .after = "one\n", .knows_reason = false}, [](int left) {
    auto conversation = std::make_unique<Conversation>(whole, TLS1_3_VERSION, left);
    if (conversation->is_closed) return conversation;
    conversation->peer.write("one\n");
    conversation->peer.announce_end();
    conversation->send();
    return conversation;
  });
}

}  // namespace
}  // namespace netdyno
