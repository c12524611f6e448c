#include "loadgen/match/message_reader.hpp"

namespace netdyno::load {

void MessageReader::receive(std::string_view message, ReplySink& sink) {
  stamp_.reset();
  size_ = 0;
  only_replies_ = true;
  const bool readable = decoder_->receive(message, *this);
  if (readable && only_replies_ && stamp_ && size_ == message.size()) return sink.on_reply(*stamp_, size_);
  decoder_ = codec_.make_decoder();  // this one may hold the beginning of a reply that has no end
  sink.on_corrupt();
}

void MessageReader::on_reply(const Stamp& stamp, std::size_t size) {
  if (stamp_) only_replies_ = false;  // a message is one reply
  stamp_ = stamp;
  size_ += size;
}

}  // namespace netdyno::load
