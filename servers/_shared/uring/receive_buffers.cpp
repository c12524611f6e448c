#include "servers/_shared/uring/receive_buffers.hpp"

#include <sys/mman.h>

#include <algorithm>
#include <bit>
#include <cerrno>

#include "lib/cli/die.hpp"

namespace netdyno {
namespace {

/// So much in all, as 256 of the usual 16 KiB, but neither so few that they soon run out nor more than a turn needs.
constexpr std::size_t memory_in_all = 4 << 20;
constexpr std::size_t fewest = 16;
constexpr std::size_t most = 1024;

std::size_t count_of(std::size_t size) { return std::bit_floor(std::clamp(memory_in_all / size, fewest, most)); }

/// Maps pages that take memory only when they are written to, as it is unknown how much of a --read-buffer is needed.
void* map(std::size_t size) {
  void* memory = mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED) die_errno("no memory for receive buffers; ask for a smaller --read-buffer", errno);
  return memory;
}

}  // namespace

ReceiveBuffers::ReceiveBuffers(Ring& ring, std::size_t size)
    : size_(size),
      count_(count_of(size)),
      free_(static_cast<io_uring_buf_ring*>(map(count_ * sizeof(io_uring_buf)))),
      memory_(static_cast<char*>(map(count_ * size))) {
  io_uring_buf_reg registration{};
  registration.ring_addr = reinterpret_cast<std::uintptr_t>(free_);
  registration.ring_entries = static_cast<std::uint32_t>(count_);
  registration.bgid = group;
  const int error = -io_uring_register_buf_ring(ring.get(), &registration, 0);
  if (error != 0) die_errno("io_uring_register_buf_ring (raise ulimit -l where memory is short)", error);
  io_uring_buf_ring_init(free_);
  for (std::size_t id = 0; id < count_; ++id) add(static_cast<std::uint16_t>(id));
}

ReceiveBuffers::~ReceiveBuffers() {
  munmap(free_, count_ * sizeof(io_uring_buf));
  munmap(memory_, count_ * size_);
}

std::string_view ReceiveBuffers::bytes(Completion completion) const {
  const auto id = static_cast<std::uint16_t>(completion.flags >> IORING_CQE_BUFFER_SHIFT);
  return {address(id), static_cast<std::size_t>(completion.result)};
}

void ReceiveBuffers::give_back(Completion completion) {
  if ((completion.flags & IORING_CQE_F_BUFFER) != 0)
    add(static_cast<std::uint16_t>(completion.flags >> IORING_CQE_BUFFER_SHIFT));
}

void ReceiveBuffers::add(std::uint16_t id) {
  io_uring_buf_ring_add(free_, address(id), static_cast<unsigned>(size_), id, static_cast<int>(count_ - 1), 0);
  io_uring_buf_ring_advance(free_, 1);
}

}  // namespace netdyno
