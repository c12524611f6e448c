// The loop: each target gets inputs that are changed by chance, in this process, until the number or the time is up. An
// input that reaches new code is kept and changed further. The first that breaks anything is shown, and ends it.
#include <fmt/format.h>
#include <malloc.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <new>
#include <utility>

#include "lib/cli/command_line.hpp"
#include "tests/cpp/fuzz/fuzz.hpp"

namespace netdyno::fuzz {
namespace {

constexpr std::size_t most_kept = 4096;
constexpr std::uint64_t looks_at_clock = 1024;

const Input* running = nullptr;
std::string_view running_name;
std::size_t in_use = 0;
std::size_t peak = 0;
bool is_new = false;

std::vector<const Target*>& registered() {
  static std::vector<const Target*> list;
  return list;
}

void say(std::string_view text) { [[maybe_unused]] const auto n = write(2, text.data(), text.size()); }

/// Only calls what a signal handler may.
void show_input(int signal) {
  constexpr std::string_view digits = "0123456789abcdef";
  say("\ntarget ");
  say(running_name);
  say(", input in hex (its cuts are after it):\n");
  if (running != nullptr) {
    for (const char c : running->bytes) {
      const auto byte = static_cast<unsigned char>(c);
      const char hex[] = {digits[byte >> 4], digits[byte & 15]};
      say({hex, 2});
    }
    say(" ");
    for (int shift = 60; shift >= 0; shift -= 4) say(digits.substr(running->cuts >> shift & 15, 1));
  }
  say("\n");
  std::signal(signal, SIG_DFL);
  std::raise(signal);
}

struct Tried {
  std::uint64_t executions = 0;
  std::vector<std::string> kept;  // beside what was given
};

Tried fuzz(const Target& target, std::uint64_t seed, std::uint64_t executions, std::chrono::seconds time,
           const std::vector<std::string>& known) {
  Chance chance{seed};
  std::vector<std::string> corpus = target.seeds();
  corpus.emplace_back();
  corpus.insert(corpus.end(), known.begin(), known.end());
  const std::size_t given = corpus.size();
  Input input;
  running = &input;
  running_name = target.name;
  for (const std::string& seed_bytes : corpus) {
    input = {seed_bytes, chance.next()};
    target.run(input);
  }
  reached_new_code();
  Tried tried{given, {}};
  const auto end = std::chrono::steady_clock::now() + time;
  const auto is_over = [&] {
    if (executions > 0) return tried.executions >= executions;
    return tried.executions % looks_at_clock == 0 && std::chrono::steady_clock::now() >= end;
  };
  for (; !is_over(); ++tried.executions) {
    input.bytes = corpus[chance.below(corpus.size())];
    input.cuts = chance.next();
    mutate(input.bytes, corpus, chance);
    target.run(input);
    if (reached_new_code() && corpus.size() < most_kept) corpus.push_back(input.bytes);
  }
  running = nullptr;
  tried.kept.assign(corpus.begin() + static_cast<std::ptrdiff_t>(given), corpus.end());
  return tried;
}

}  // namespace

Target::Target(std::string_view its_name, std::vector<std::string> (*its_seeds)(), void (*its_run)(const Input&))
    : name(its_name), seeds(its_seeds), run(its_run) {
  registered().push_back(this);
}

const std::vector<const Target*>& targets() { return registered(); }

void must(bool holds, std::string_view what) {
  if (holds) return;
  say("does not hold: ");
  say(what);
  std::abort();
}

std::size_t heap_in_use() { return in_use; }
std::size_t heap_peak() { return std::max(peak, in_use); }
void forget_peak() { peak = in_use; }
bool reached_new_code() { return std::exchange(is_new, false); }

}  // namespace netdyno::fuzz

// --- the heap is counted, and the compiler says where a branch leads ----------------------------------------------

void* operator new(std::size_t size) {
  void* const made = std::malloc(size);
  if (made == nullptr) throw std::bad_alloc{};
  using namespace netdyno::fuzz;
  in_use += malloc_usable_size(made);
  peak = std::max(peak, in_use);
  return made;
}
void operator delete(void* gone) noexcept {
  netdyno::fuzz::in_use -= malloc_usable_size(gone);
  std::free(gone);
}
void operator delete(void* gone, std::size_t) noexcept { operator delete(gone); }

extern "C" {
/// A reply of http says what time it is. Here it stands still, so that an input does the same each time.
std::time_t time(std::time_t* out) noexcept {
  constexpr std::time_t now = 1'800'000'000;
  if (out != nullptr) *out = now;
  return now;
}
/// GCC's -fsanitize-coverage=trace-pc calls it at each edge of the code that is built so.
void __sanitizer_cov_trace_pc() {
  static std::array<bool, 1 << 18> known;
  static std::uintptr_t before = 0;
  const auto here = reinterpret_cast<std::uintptr_t>(__builtin_return_address(0));
  bool& seen = known[(here ^ before) % known.size()];
  before = here >> 1;
  if (!seen) seen = netdyno::fuzz::is_new = true;
}
const char* __asan_default_options() { return "abort_on_error=1"; }
const char* __ubsan_default_options() { return "abort_on_error=1:print_stacktrace=1"; }
}

namespace {

constexpr std::size_t longest_kept = 512;  // longer ones seldom reach what no short one does

std::string of_hex(std::string_view hex) {
  std::string bytes;
  for (std::size_t i = 0; i + 1 < hex.size(); i += 2)
    bytes += static_cast<char>(std::stoi(std::string{hex.substr(i, 2)}, nullptr, 16));
  return bytes;
}

std::string as_hex(const std::string& bytes) {
  std::string hex;
  for (const char c : bytes) hex += fmt::format("{:02x}", static_cast<unsigned char>(c));
  return hex;
}

/// A file for each target, an input a line. Ends the program where a line is none.
std::vector<std::string> read_corpus(const std::filesystem::path& path) {
  std::vector<std::string> inputs;
  std::ifstream file{path};
  for (std::string line; std::getline(file, line);) {
    if (line.size() % 2 == 1 || line.find_first_not_of("0123456789abcdef") != std::string::npos) {
      fmt::print(stderr, "{}: a line is no input in hex\n", path.string());
      std::exit(2);
    }
    inputs.push_back(of_hex(line));
  }
  return inputs;
}

void add_to_corpus(const std::filesystem::path& path, const std::vector<std::string>& inputs) {
  std::ofstream file{path, std::ios::app};
  for (const std::string& input : inputs)
    if (input.size() <= longest_kept) file << as_hex(input) << '\n';
  if (file.flush()) return;
  fmt::print(stderr, "{}: cannot be written\n", path.string());
  std::exit(2);
}

/// Reads what show_input has shown: bytes and cuts in hex.
netdyno::fuzz::Input shown_input(const std::string& bytes, const std::string& cuts) {
  netdyno::fuzz::Input input;
  input.bytes = of_hex(bytes);
  input.cuts = cuts.empty() ? 0 : std::stoull(cuts, nullptr, 16);
  return input;
}

}  // namespace

int main(int argc, char** argv) {
  using namespace netdyno::fuzz;
  std::vector<std::string> names;
  std::size_t seed = 1;
  std::size_t executions = 0;
  std::size_t seconds = 0;
  std::string bytes, cuts, folder;
  netdyno::CommandLine line{"Inputs by chance for whatever reads bytes of others.", argv[0]};
  line.add_texts("--targets", names, "these and no others");
  line.add_number<std::size_t>("--seed", seed, 0, SIZE_MAX, "of all that is done by chance");
  line.add_number<std::size_t>("--executions", executions, 0, SIZE_MAX, "of each target; 0: until the time is up");
  line.add_number<std::size_t>("--seconds", seconds, 0, 86'400, "of each target");
  line.add_text("--input", bytes, "try this input alone, in hex");
  line.add_text("--cuts", cuts, "how it is cut, in hex");
  line.add_text("--corpus", folder, "begin with the inputs there, and keep there what reaches new code");
  line.parse(argc, argv);

  for (const int signal : {SIGABRT, SIGSEGV, SIGBUS, SIGFPE, SIGILL}) std::signal(signal, show_input);
  std::uint64_t all = 0;
  for (const Target* target : targets()) {
    if (!names.empty() && std::ranges::find(names, target->name) == names.end()) continue;
    const auto begin = std::chrono::steady_clock::now();
    Tried tried{1, {}};
    std::string begun;
    if (line.given("--input")) {
      const Input input = shown_input(bytes, cuts);
      running = &input;
      running_name = target->name;
      target->run(input);
      running = nullptr;
    } else {
      const std::filesystem::path path = std::filesystem::path{folder} / target->name;
      const std::vector<std::string> known = folder.empty() ? std::vector<std::string>{} : read_corpus(path);
      tried = fuzz(*target, seed, executions, std::chrono::seconds{seconds}, known);
      if (!folder.empty()) begun = fmt::format(" and {} of the corpus", known.size());
      if (!folder.empty() && !tried.kept.empty()) add_to_corpus(path, tried.kept);
    }
    const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begin;
    fmt::print("{}: {} inputs{} in {:.1f} s, {} kept\n", target->name, tried.executions, begun, took.count(),
               tried.kept.size());
    std::fflush(stdout);
    all += tried.executions;
  }
  if (all == 0) netdyno::usage_error(line.program(), "--targets: no such target");
  fmt::print("all: {} inputs\n", all);
  return 0;
}
