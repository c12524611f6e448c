#include "lib/protocol/pending.hpp"

#include <sys/mman.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstring>
#include <utility>

namespace netdyno {
namespace {

/// Pages that are kept for the next long messages of any connections, so that streams of them cost no system calls and
/// no zeroing. They begin with their size.
std::array<std::atomic<char*>, 32> spares;
std::atomic<std::size_t> spared = 0;  // their sizes together
constexpr std::size_t most_spared = 4 << 20;

std::size_t size_of(const char* kept) {
  std::size_t size = 0;
  std::memcpy(&size, kept, sizeof size);
  return size;
}

char* take_spare() {
  for (auto& place : spares) {
    if (place.load(std::memory_order_relaxed) == nullptr) continue;
    if (char* const pages = place.exchange(nullptr)) {
      spared -= size_of(pages);
      return pages;
    }
  }
  return nullptr;
}

void keep_or_unmap(char* pages, std::size_t size) {
  if ((spared += size) <= most_spared) {
    std::memcpy(pages, &size, sizeof size);
    for (auto& place : spares) {
      char* none = nullptr;
      if (place.load(std::memory_order_relaxed) == none && place.compare_exchange_strong(none, pages)) return;
    }
  }
  spared -= size;
  munmap(pages, size);
}

/// A greater mapping with what is in this one; MAP_FAILED where there is none, and this one stays.
void* grown(char* pages, std::size_t from, std::size_t to) {
#ifdef __SANITIZE_THREAD__
  // ThreadSanitizer does not follow mremap(2): it takes an address that another thread has left for shared.
  void* const moved = mmap(nullptr, to, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (moved == MAP_FAILED) return moved;
  std::memcpy(moved, pages, from);
  munmap(pages, from);
  return moved;
#else
  return mremap(pages, from, to, MREMAP_MAYMOVE);
#endif
}

}  // namespace

void PendingBytes::append(std::string_view bytes) {
  if (bytes.empty()) return;  // it may have no address, which memcpy must not be given
  const std::size_t size = this->size() + bytes.size();
  if ((pages_ == nullptr && size <= longest_short) || !make_room(size)) {
    short_.append(bytes);
    return;
  }
  std::memcpy(pages_ + used_, bytes.data(), bytes.size());
  used_ = size;
}

void PendingBytes::drop(std::size_t size) {
  if (pages_ == nullptr) {
    short_.erase(0, size);
    return;
  }
  const std::string rest{view().substr(size)};  // of a read at most, as messages are taken as soon as they are complete
  unmap();
  append(rest);
}

/// False where the system has no more mappings (vm.max_map_count); then the heap must do. Pages that are not written to
/// take no memory, so the mapping may double.
bool PendingBytes::make_room(std::size_t size) {
  if (size <= mapped_) return true;
  const std::size_t needed = std::max(size, 2 * std::max(mapped_, longest_short));
  if (pages_ == nullptr) {
    if (char* const kept = take_spare()) {
      const std::size_t kept_size = size_of(kept);
      // The heap may have had to do for more than that already.
      kept_size >= short_.size() ? begin(kept, kept_size) : keep_or_unmap(kept, kept_size);
    }
    if (size <= mapped_) return true;
  }
  void* const pages = pages_ == nullptr
                          ? mmap(nullptr, needed, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0)
                          : grown(pages_, mapped_, needed);
  if (pages == MAP_FAILED) {
    if (pages_ != nullptr) short_.assign(pages_, used_);
    unmap();
    return false;
  }
  if (pages_ == nullptr) {
    begin(static_cast<char*>(pages), needed);
  } else {
    pages_ = static_cast<char*>(pages);
    mapped_ = needed;
  }
  return true;
}

/// Moves what there is so far.
void PendingBytes::begin(char* pages, std::size_t size) {
  pages_ = pages;
  mapped_ = size;
  used_ = short_.size();
  std::memcpy(pages_, short_.data(), used_);
  short_ = {};
}

void PendingBytes::unmap() {
  if (pages_ != nullptr) keep_or_unmap(std::exchange(pages_, nullptr), mapped_);
  used_ = mapped_ = 0;
}

}  // namespace netdyno
