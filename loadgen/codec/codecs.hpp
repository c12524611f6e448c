#pragma once

#include "loadgen/codec/codec.hpp"

/// One maker per kind of message; only make_codec calls them.
namespace netdyno::load {

std::unique_ptr<Codec> make_line_codec(const LoadPlan& plan);
std::unique_ptr<Codec> make_rpc_codec(const LoadPlan& plan);
std::unique_ptr<Codec> make_chat_codec(const LoadPlan& plan);
std::unique_ptr<Codec> make_http_codec(const LoadPlan& plan);
std::unique_ptr<Codec> make_web_codec(const LoadPlan& plan);
/// The decoder of the workload web where each reply is a stream of so many chunks, with so many bytes of data each.
std::unique_ptr<Decoder> make_stream_decoder(std::size_t chunks, std::size_t size);
std::unique_ptr<Codec> make_grpc_codec(const LoadPlan& plan);
std::unique_ptr<Codec> make_foreign_http_codec(const LoadPlan& plan);
std::unique_ptr<Codec> make_exchange_codec(const LoadPlan& plan);
std::unique_ptr<Codec> make_websocket_codec(const LoadPlan& plan);

/// Tells `sink` about one reply of `reply_size` bytes that carries `text` where the stamp belongs.
void check_stamp(std::string_view text, std::size_t stamp_size, std::size_t reply_size, ReplySink& sink);

}  // namespace netdyno::load
