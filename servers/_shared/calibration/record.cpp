#include "servers/_shared/calibration/record.hpp"

#include <nlohmann/json.hpp>

#include "lib/measure/distribution.hpp"

namespace netdyno::calibration {
namespace {

using Json = nlohmann::ordered_json;

}  // namespace

void Record::note_arrival(Clock::time_point moment) {
  if (arrived_++ == 0) first_ = moment;
  last_ = moment;
  if (arrivals_.size() < arrivals_kept_) arrivals_.push_back(moment);
}

void Record::note_read_lag(std::chrono::nanoseconds lag) {
  if (arrived_ >= warm_up_) read_lag_.record(lag.count());
}

void Record::note_answer(std::uint64_t number, AnswerFate fate, std::chrono::nanoseconds programmed,
                         std::chrono::nanoseconds actual) {
  if (fate == AnswerFate::lost) ++lost_;
  if (fate == AnswerFate::duplicated) ++duplicated_;
  if (fate == AnswerFate::corrupted) ++corrupted_;
  if (fate == AnswerFate::lost || fate == AnswerFate::corrupted || number <= warm_up_) return;
  programmed_.record(programmed.count());
  actual_.record(actual.count());
}

void Record::note_stall(const Stall& stall, Clock::time_point from, Clock::time_point to) {
  stalls_.push_back({stall, from, to});
}

std::string Record::json() const {
  const auto since_first = [this](Clock::time_point moment) { return (moment - first_).count(); };
  Json arrivals = Json::array();
  for (const auto arrival : arrivals_) arrivals.push_back(since_first(arrival));
  Json stalls = Json::array();
  for (const StallDone& done : stalls_) {
    stalls.push_back({{"programmed_ns", done.stall.duration.count()},
                      {"actual_ns", (done.to - done.from).count()},
                      {"began_ns", since_first(done.from)}});
    stalls.back()["connection"] = done.stall.connection ? Json(*done.stall.connection) : Json();
  }
  Json pauses = Json::array();
  for (const load::Witness::Pause& pause : pauses_)
    pauses.push_back(
        {{"core", pause.name}, {"began_ns", since_first(pause.from)}, {"ns", (pause.to - pause.from).count()}});
  return Json{{"arrived", arrived_},
              {"arrivals_span_ns", since_first(last_)},
              {"arrivals_ns", arrivals},
              {"lost", lost_},
              {"duplicated", duplicated_},
              {"corrupted", corrupted_},
              {"held_for_order", held_for_order_},
              {"delay_programmed_ns", distribution(programmed_)},
              {"delay_actual_ns", distribution(actual_)},
              {"read_lag_ns", distribution(read_lag_)},
              {"stalls", stalls},
              {"pauses", pauses},
              {"look_ns", load::Witness::usual.count()}}
      .dump();
}

}  // namespace netdyno::calibration
