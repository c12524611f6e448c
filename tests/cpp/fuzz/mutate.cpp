#include <algorithm>
#include <array>

#include "tests/cpp/fuzz/fuzz.hpp"

namespace netdyno::fuzz {
namespace {

using namespace std::string_view_literals;

constexpr std::size_t longest = 4096;
constexpr std::size_t longest_once = 40'000;  // above the 16 KiB of a head, seldom

constexpr std::array pieces{"\0\0\0\0"sv,
                            "\0\0\0\1"sv,
                            "\xff\xff\xff\xff"sv,
                            "\x80\x80\x80\x80"sv,
                            "\0\x10\0\0"sv,
                            "\0\x10\0\1"sv,
                            "HELO"sv,
                            "BYE!"sv,
                            "\r\n\r\n"sv,
                            "\r\n"sv,
                            "\n"sv,
                            "GET / HTTP/1.1\r\n\r\n"sv,
                            "HTTP/1.0"sv,
                            "HTTP/1.1 200 "sv,
                            "Connection: close\r\n"sv,
                            "Content-Length: "sv,
                            "Transfer-Encoding:"sv,
                            "18446744073709551616"sv,
                            "-1"sv,
                            " "sv,
                            ","sv,
                            ":"sv,
                            "\x0a\x02\x08\x01"sv,
                            "\x10\x80\x80\x80\x05"sv};

void change_once(std::string& bytes, const std::vector<std::string>& corpus, Chance& chance) {
  const std::size_t position = chance.below(bytes.size() + 1);
  const std::size_t size = std::min(bytes.size() - position, std::size_t{1} << chance.below(7));
  switch (chance.below(10)) {
    case 0:
      if (size > 0) bytes[position] = static_cast<char>(bytes[position] ^ (1 << chance.below(8)));
      break;
    case 1:
      if (size > 0) bytes[position] = static_cast<char>(chance.next());
      break;
    case 2:
      if (size > 0) bytes[position] = static_cast<char>(bytes[position] + static_cast<char>(chance.below(9)) - 4);
      break;
    case 3:
      bytes.erase(position, size);
      break;
    case 4:
      bytes.insert(position, bytes.substr(position, size));
      break;
    case 5: {
      const auto piece = pieces[chance.below(pieces.size())];
      if (chance.below(2) == 0) {
        bytes.insert(position, piece);
      } else {
        bytes.replace(position, std::min(piece.size(), bytes.size() - position), piece);
      }
      break;
    }
    case 6:
      bytes.insert(position, chance.below(50) == 0 ? longest_once / 2 : size, static_cast<char>(chance.next()));
      break;
    case 7: {
      const std::string& other = corpus[chance.below(corpus.size())];
      const std::size_t from = chance.below(other.size() + 1);
      bytes.insert(position, other, from, std::size_t{1} << chance.below(9));
      break;
    }
    case 8: {
      const std::string& other = corpus[chance.below(corpus.size())];
      bytes.resize(position);
      bytes.append(other, chance.below(other.size() + 1));
      break;
    }
    default:
      if (!bytes.empty()) bytes[0] = static_cast<char>(chance.next());
  }
}

}  // namespace

void mutate(std::string& bytes, const std::vector<std::string>& corpus, Chance& chance) {
  for (std::size_t left = std::size_t{1} << chance.below(4); left > 0; --left) change_once(bytes, corpus, chance);
  const std::size_t most = chance.below(100) == 0 ? longest_once : longest;
  if (bytes.size() > most) bytes.resize(most);
}

}  // namespace netdyno::fuzz
