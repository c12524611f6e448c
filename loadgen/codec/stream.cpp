#include <algorithm>
#include <charconv>

#include "loadgen/codec/codecs.hpp"

/// Reads the streams of the workload web: each of their chunks is a server-sent event, however it is cut into chunks of
/// HTTP (RFC 9112, 7.1).
namespace netdyno::load {
namespace {

/// Whether a head says that its reply is a whole one in chunks.
bool begins_chunks(std::string_view head) {
  std::string lower{head};
  std::ranges::transform(lower, lower.begin(),
                         [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; });
  return lower.starts_with("http/1.1 200") && lower.find("\r\ntransfer-encoding: chunked") != std::string::npos;
}

class StreamDecoder final : public Decoder {
 public:
  StreamDecoder(std::size_t chunks, std::size_t size) : chunks_(chunks), size_(size) {}

  bool receive(std::string_view bytes, ReplySink& sink) override {
    pending_.append(bytes);
    std::string_view rest{pending_};
    bool good = true;
    while (good && take_piece(rest, sink, good)) {
    }
    pending_.erase(0, pending_.size() - rest.size());
    return good;
  }
  bool at_boundary() const override { return pending_.empty() && expected_ == Piece::head; }

 private:
  static constexpr std::size_t max_head = 16 << 10;
  static constexpr std::size_t longest_size_line = 1 << 10;
  static constexpr std::string_view end_of_head = "\r\n\r\n";
  static constexpr std::string_view end_of_line = "\r\n";
  static constexpr std::string_view data = "data: ";
  static constexpr std::string_view end_of_event = "\n\n";
  static constexpr std::size_t number_size = 4;

  enum class Piece { head, chunk, end };

  /// Takes a head, a chunk or the end off the front of `rest`; false where none is whole, or (not `good`) readable.
  bool take_piece(std::string_view& rest, ReplySink& sink, bool& good) {
    const std::size_t before = rest.size();
    switch (expected_) {
      case Piece::head:
        good = take_head(rest);
        break;
      case Piece::chunk:
        good = take_chunk(rest, sink);
        break;
      case Piece::end:
        if (rest.size() < end_of_line.size()) return false;
        good = rest.starts_with(end_of_line);
        rest.remove_prefix(end_of_line.size());
        whole_ += before - rest.size();
        end_stream(sink);
        return good;
    }
    whole_ += before - rest.size();
    return good && rest.size() < before;
  }

  bool take_head(std::string_view& rest) {
    const auto end = rest.find(end_of_head);
    if (end == std::string_view::npos) return rest.size() < max_head;
    if (!begins_chunks(rest.substr(0, end))) return false;
    rest.remove_prefix(end + end_of_head.size());
    expected_ = Piece::chunk;
    return true;
  }

  bool take_chunk(std::string_view& rest, ReplySink& sink) {
    const auto line = rest.find(end_of_line);
    if (line == std::string_view::npos) return rest.size() < longest_size_line;
    std::size_t length = 0;
    const auto [parsed, error] = std::from_chars(rest.data(), rest.data() + line, length, 16);
    if (error != std::errc{} || length > longest() || (parsed != rest.data() + line && *parsed != ';')) return false;
    if (length == 0) {
      rest.remove_prefix(line + end_of_line.size());
      expected_ = Piece::end;
      return true;
    }
    const std::size_t whole = line + end_of_line.size() + length + end_of_line.size();
    if (rest.size() < whole) return true;
    if (rest.substr(whole - end_of_line.size(), end_of_line.size()) != end_of_line) return false;
    events_.append(rest.substr(line + end_of_line.size(), length));
    rest.remove_prefix(whole);
    return take_events(sink);
  }

  /// The bytes of all events together.
  std::size_t longest() const { return chunks_ * (data.size() + size_ + end_of_event.size()); }

  bool take_events(ReplySink& sink) {
    const std::size_t whole = data.size() + size_ + end_of_event.size();
    std::string_view rest{events_};
    for (; rest.size() >= whole; rest.remove_prefix(whole)) check(rest.substr(0, whole), sink);
    events_.erase(0, events_.size() - rest.size());
    return events_.size() < whole;
  }

  void check(std::string_view event, ReplySink& sink) {
    const std::string_view text = event.substr(data.size(), size_);
    std::uint64_t number = 0;
    const auto* const digits = text.data() + min_stamp_size;
    const auto [parsed, error] = std::from_chars(digits, digits + number_size, number);
    const auto stamp = read_stamp(text.substr(0, min_stamp_size));
    const bool filled = text.substr(min_stamp_size + number_size).find_first_not_of('x') == std::string_view::npos;
    const bool right = stamp && error == std::errc{} && parsed == digits + number_size && number == next_ && filled &&
                       event.starts_with(data) && event.ends_with(end_of_event) && (next_ == 0 || *stamp == stamp_);
    good_ = good_ && right;
    if (!right) return;
    stamp_ = *stamp;
    ++next_;
    sink.on_chunk(stamp_, number);
  }

  void end_stream(ReplySink& sink) {
    good_&& next_ == chunks_&& events_.empty() ? sink.on_reply(stamp_, whole_) : sink.on_corrupt();
    expected_ = Piece::head;
    events_.clear();
    whole_ = next_ = 0;
    good_ = true;
  }

  const std::size_t chunks_;
  const std::size_t size_;
  Piece expected_ = Piece::head;
  std::string pending_;    // the beginning of what is not whole yet
  std::string events_;     // the beginning of an event
  std::size_t whole_ = 0;  // bytes of this reply so far
  std::size_t next_ = 0;   // the number of the next event
  bool good_ = true;       // all events so far
  Stamp stamp_{};
};

}  // namespace

std::unique_ptr<Decoder> make_stream_decoder(std::size_t chunks, std::size_t size) {
  return std::make_unique<StreamDecoder>(chunks, size);
}

}  // namespace netdyno::load
