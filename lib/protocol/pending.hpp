#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace netdyno {

/// Bytes of a message that is not complete yet. They take memory as they arrive, whatever length was announced, and
/// what is long lies in pages of its own: growing copies nothing, and all goes back to the system with clear(), but for
/// 4 MiB at most that are kept for the next ones. A heap keeps whatever lies below anything that is in use.
class PendingBytes {
 public:
  PendingBytes() = default;
  ~PendingBytes() { unmap(); }
  PendingBytes(const PendingBytes&) = delete;
  PendingBytes& operator=(const PendingBytes&) = delete;

  bool empty() const { return size() == 0; }
  std::size_t size() const { return view().size(); }
  /// Valid until the next change.
  std::string_view view() const {
    return pages_ == nullptr ? std::string_view{short_} : std::string_view{pages_, used_};
  }

  void append(std::string_view bytes);
  /// Takes so many bytes off the front.
  void drop(std::size_t size);
  void clear() { drop(size()); }

 private:
  /// From here on pages of their own are worth the system calls: a few reads of the default size.
  static constexpr std::size_t longest_short = 64 << 10;

  bool make_room(std::size_t size);
  void begin(char* pages, std::size_t size);
  void unmap();

  std::string short_;
  char* pages_ = nullptr;
  std::size_t used_ = 0;
  std::size_t mapped_ = 0;
};

}  // namespace netdyno
