#include "loadgen/codec/websocket_handshake.hpp"

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>

#include "lib/measure/bytes.hpp"

namespace netdyno::load {
namespace {

constexpr std::size_t block_size = 64;

/// One of the 80 steps of a block: how it mixes three words of the state, and what it adds.
std::uint32_t mix_words(std::size_t step, std::uint32_t b, std::uint32_t c, std::uint32_t d) {
  if (step < 20) return ((b & c) | (~b & d)) + 0x5a827999;
  if (step < 40) return (b ^ c ^ d) + 0x6ed9eba1;
  if (step < 60) return ((b & c) | (b & d) | (c & d)) + 0x8f1bbcdc;
  return (b ^ c ^ d) + 0xca62c1d6;
}

/// SHA-1 (RFC 3174), which the handshake prescribes; no secret depends on it. The function of Beast is private to it.
/// OpenSSL is not in every build, and its first hash would cost 1.2 ms of CPU, a sixth of a start of netdyno-load.
std::string hash_with_sha1(std::string text) {
  const std::uint64_t bits = 8 * text.size();
  text += '\x80';
  text.resize((text.size() + sizeof bits + block_size - 1) / block_size * block_size - sizeof bits);
  append_big_endian(text, bits);
  std::array<std::uint32_t, 5> state{0x67452301, 0xefcdab89, 0x98badcfe, 0x10325476, 0xc3d2e1f0};
  for (std::size_t begin = 0; begin < text.size(); begin += block_size) {
    std::array<std::uint32_t, 80> words{};
    for (std::size_t i = 0; i < block_size; ++i)
      words[i / 4] = words[i / 4] << 8 | static_cast<unsigned char>(text[begin + i]);
    for (std::size_t i = 16; i < words.size(); ++i)
      words[i] = std::rotl(words[i - 3] ^ words[i - 8] ^ words[i - 14] ^ words[i - 16], 1);
    auto [a, b, c, d, e] = state;
    for (std::size_t i = 0; i < words.size(); ++i) {
      const std::uint32_t next = std::rotl(a, 5) + mix_words(i, b, c, d) + e + words[i];
      e = d;
      d = c;
      c = std::rotl(b, 30);
      b = a;
      a = next;
    }
    state = {state[0] + a, state[1] + b, state[2] + c, state[3] + d, state[4] + e};
  }
  std::string hash;
  for (const std::uint32_t word : state) append_big_endian(hash, word);
  return hash;
}

}  // namespace

std::string draw_websocket_key(std::mt19937& random) {
  std::string bytes;
  for (int i = 0; i < 4; ++i) append_big_endian(bytes, static_cast<std::uint32_t>(random()));
  return encode_base64(bytes);
}

std::string compute_websocket_accept(std::string_view key) {
  return encode_base64(hash_with_sha1(std::string{key} + "258EAFA5-E914-47DA-95CA-C5AB0DC85B11"));
}

}  // namespace netdyno::load
