#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <iterator>
#include <optional>
#include <random>
#include <variant>
#include <vector>

#include "loadgen/codec/codecs.hpp"
#include "loadgen/plan/split_mix.hpp"

/// Sends bytes from the command line, and separates replies by a mark or their size.
namespace netdyno::load {
namespace {

constexpr std::size_t longest_reply = 64 << 20;
constexpr std::size_t least_kept = 60;

class ExchangeDecoder final : public Decoder {
 public:
  explicit ExchangeDecoder(const Exchange& exchange)
      : until_(exchange.until),
        length_(exchange.length),
        head_(length_ ? length_->offset + length_->width : exchange.size),
        kept_(std::max({least_kept, exchange.expect.size(), length_ ? head_ : 0})),
        size_(head_) {}

  bool receive(std::string_view bytes, ReplySink& sink) override {
    while (!bytes.empty()) {
      const bool up_to_a_mark = head_ == 0;
      const std::size_t piece = !up_to_a_mark ? std::min(size_ - taken_, bytes.size()) : length_to_mark(bytes);
      if (begin_.size() < kept_) begin_.append(bytes.substr(0, std::min(piece, kept_ - begin_.size())));
      taken_ += piece;
      bytes.remove_prefix(piece);
      if (length_ && taken_ == head_ && !read_length(sink)) return false;
      if (up_to_a_mark ? marked_ : taken_ == size_) {
        PlainReply reply;
        reply.size = reply.length = taken_;
        reply.body = begin_;
        sink.on_plain(reply);
        begin_.clear();
        taken_ = 0;
        size_ = head_;
        marked_ = false;
        tail_.clear();
      } else if (taken_ > longest_reply) {
        sink.on_broken("the reply does not end: " + excerpt(begin_));
        return false;
      }
    }
    return true;
  }
  std::string begun() const override { return excerpt(begin_); }
  bool at_boundary() const override { return taken_ == 0; }

 private:
  /// Reads the length of the reply whose head has come. False where it is impossible.
  bool read_length(ReplySink& sink) {
    std::uint64_t value = 0;
    for (std::size_t i = 0; i < length_->width; ++i) {
      const std::size_t position = length_->offset + (length_->little_endian ? length_->width - 1 - i : i);
      value = value << 8U | static_cast<unsigned char>(begin_[position]);
    }
    const auto follow = static_cast<std::int64_t>(std::min<std::uint64_t>(value, longest_reply + 1)) + length_->more;
    size_ = head_ + static_cast<std::size_t>(std::max<std::int64_t>(follow, 0));
    if (follow >= 0 && size_ <= longest_reply) return true;
    sink.on_broken(fmt::format("the reply says that its length is {}", value));
    return false;
  }

  /// Up to the end of the mark, which may have begun before, or all. The last bytes that came are kept for that.
  std::size_t length_to_mark(std::string_view bytes) {
    const std::size_t before = tail_.size();
    tail_.append(bytes.substr(0, std::min(bytes.size(), until_.size() - 1)));
    if (const auto mark = tail_.find(until_); mark != std::string::npos) {
      marked_ = true;
      return mark + until_.size() - before;
    }
    if (const auto mark = bytes.find(until_); mark != std::string_view::npos) {
      marked_ = true;
      return mark + until_.size();
    }
    tail_.resize(before);
    tail_.append(bytes.substr(bytes.size() - std::min(bytes.size(), until_.size())));
    if (tail_.size() >= until_.size()) tail_.erase(0, tail_.size() - (until_.size() - 1));
    return bytes.size();
  }

  const std::string until_;
  const std::optional<LengthField> length_;
  const std::size_t head_;  // bytes up to the end of the length, or all; 0: the reply ends with a mark
  const std::size_t kept_;
  std::size_t size_;       // of the reply that is coming, as far as that is known
  std::size_t taken_ = 0;  // of it
  bool marked_ = false;    // the mark has come
  std::string begin_;      // of the reply
  std::string tail_;       // its last bytes, fewer than the mark has
};

class ExchangeCodec final : public Codec {
 public:
  explicit ExchangeCodec(const LoadPlan& plan) : exchange_(*plan.exchange), seed_(plan.seed) {
    std::string_view text = exchange_.send;
    while (!text.empty()) {
      const auto close = text.find('}');
      if (close == std::string_view::npos) break;
      const auto open = std::min(text.rfind('{', close), close);
      const auto place = place_of(text.substr(open, close - open));
      if (place) {
        parts_.emplace_back(std::string{text.substr(0, open)});
        parts_.emplace_back(*place);
      } else {
        parts_.emplace_back(std::string{text.substr(0, close + 1)});
      }
      text.remove_prefix(close + 1);
    }
    parts_.emplace_back(std::string{text});
  }

  std::size_t encode(const Stamp& stamp, std::string& out) override {
    // Chance that belongs to the message: the same whenever that is written, and another's in every thread.
    const auto of_client = SplitMix64{SplitMix64{seed_}(), stamp.client}();
    SplitMix64 random{SplitMix64{of_client, stamp.sequence}()};
    for (const Part& part : parts_) {
      if (const auto* text = std::get_if<std::string>(&part)) {
        out.append(*text);
        continue;
      }
      const Placeholder& place = std::get<Placeholder>(part);
      if (place.what == Placeholder::What::sequence) fmt::format_to(std::back_inserter(out), "{}", stamp.sequence);
      if (place.what == Placeholder::What::connection) fmt::format_to(std::back_inserter(out), "{}", stamp.client);
      if (place.what == Placeholder::What::random)
        fmt::format_to(std::back_inserter(out), "{}", std::uniform_int_distribution{0ULL, place.below - 1}(random));
    }
    return 0;
  }

  std::optional<std::size_t> reply_size(const Stamp&) const override { return std::nullopt; }

  std::string fault_of(const PlainReply& reply, const Stamp&) override {
    if (reply.body.starts_with(exchange_.expect)) return {};
    return fmt::format("the reply begins with '{}', not with '{}'", excerpt(reply.body), excerpt(exchange_.expect));
  }

  std::unique_ptr<Decoder> make_decoder() const override { return std::make_unique<ExchangeDecoder>(exchange_); }

 private:
  struct Placeholder {
    enum class What { sequence, connection, random } what;
    unsigned long long below = 0;
  };
  using Part = std::variant<std::string, Placeholder>;

  static std::optional<Placeholder> place_of(std::string_view name) {
    if (!name.starts_with('{')) return std::nullopt;
    name.remove_prefix(1);
    constexpr std::string_view random = "random:";
    if (name == "sequence") return Placeholder{Placeholder::What::sequence};
    if (name == "connection") return Placeholder{Placeholder::What::connection};
    if (!name.starts_with(random)) return std::nullopt;
    unsigned long long below = 0;
    const char* const end = name.data() + name.size();
    const auto [read_to, error] = std::from_chars(name.data() + random.size(), end, below);
    if (error != std::errc{} || read_to != end || below == 0) return std::nullopt;
    return Placeholder{Placeholder::What::random, below};
  }

  const Exchange exchange_;
  std::vector<Part> parts_;
  std::uint64_t seed_;
};

}  // namespace

std::unique_ptr<Codec> make_exchange_codec(const LoadPlan& plan) { return std::make_unique<ExchangeCodec>(plan); }

}  // namespace netdyno::load
