#include "loadgen/codec/codecs.hpp"

namespace netdyno::load {
namespace {

/// Cuts at every newline: no stamp holds one, so the next message is found again after one that was cut short.
class LineDecoder final : public Decoder {
 public:
  explicit LineDecoder(std::size_t size) : size_(size) {}

  bool receive(std::string_view bytes, ReplySink& sink) override {
    while (!bytes.empty()) {
      const auto newline = bytes.find('\n');
      const bool complete = newline != std::string_view::npos;
      const auto piece = bytes.substr(0, complete ? newline + 1 : newline);
      bytes.remove_prefix(piece.size());
      if (complete) {
        finish(piece, sink);
      } else {
        keep(piece, sink);
      }
    }
    return true;
  }
  bool at_boundary() const override { return pending_.empty() && !overlong_; }

 private:
  void finish(std::string_view tail, ReplySink& sink) {
    if (overlong_) {
      overlong_ = false;
    } else if (pending_.empty()) {
      check(tail, sink);
    } else {
      pending_.append(tail);
      check(pending_, sink);
      pending_.clear();
    }
  }

  void check(std::string_view line, ReplySink& sink) const {
    check_stamp(line.substr(0, line.size() - 1), size_ - 1, line.size(), sink);
  }

  /// A line longer than a message is reported once, and skipped to its end.
  void keep(std::string_view piece, ReplySink& sink) {
    if (overlong_) return;
    if (pending_.size() + piece.size() < size_) {
      pending_.append(piece);
      return;
    }
    overlong_ = true;
    pending_.clear();
    sink.on_corrupt();
  }

  std::size_t size_;
  std::string pending_;
  bool overlong_ = false;
};

/// `echo` and `lines`: a stamp and a newline.
class LineCodec final : public Codec {
 public:
  explicit LineCodec(std::size_t size) : size_(size) {}

  std::size_t encode(const Stamp& stamp, std::string& out) override {
    append_stamp(stamp, size_ - 1, out);
    out.push_back('\n');
    return 0;
  }
  std::optional<std::size_t> reply_size(const Stamp&) const override { return size_; }
  std::unique_ptr<Decoder> make_decoder() const override { return std::make_unique<LineDecoder>(size_); }

 private:
  std::size_t size_;
};

}  // namespace

std::unique_ptr<Codec> make_line_codec(const LoadPlan& plan) { return std::make_unique<LineCodec>(plan.size); }

}  // namespace netdyno::load
