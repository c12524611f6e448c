%% What the session of servers in Erlang makes of a stream, for test_erlang.py. A line of input is a connection: its
%% options, `ends` or `stays`, and its slices in hexadecimal digits. Each effect is a line, and the totals are the last
%% line of a connection.
-module(golden_sessions).

-export([start/0]).

-include("server.hrl").

start() ->
    Input = open_port({fd, 0, 0}, [in, binary, eof]),
    Lines = binary:split(read(Input, []), <<"\n">>, [global, trim]),
    io:put_chars([serve(binary:split(Line, <<"\t">>, [global])) || Line <- Lines]),
    halt(0).

read(Input, Before) ->
    receive
        {Input, {data, Bytes}} -> read(Input, [Bytes | Before]);
        {Input, eof} -> iolist_to_binary(lists:reverse(Before))
    end.

serve([Resolved, Ending | Slices]) ->
    Options = options:read(Resolved),
    Totals = totals:new(),
    Session = session:new(#server{options = Options, totals = Totals}),
    {Words, Last} = lists:mapfoldl(fun(Slice, Before) -> take(Slice, Before, Options) end, Session, Slices),
    End = finish(Ending, Last, Options),
    Counts = [integer_to_list(totals:get(Totals, Name)) || Name <- [requests, protocol_errors]],
    [Words, End, "totals ", lists:join(" ", Counts), "\n"].

take(Slice, Session, Options) ->
    {Effects, Next} = session:take(binary:decode_hex(Slice), Session),
    {[format(Effect, Options) || Effect <- Effects], Next}.

finish(<<"ends">>, Session, Options) ->
    {Effects, _} = session:finish(Session),
    [format(Effect, Options) || Effect <- Effects];
finish(<<"stays">>, _, _) ->
    [].

format({write, Bytes}, _) -> ["write ", encode(iolist_to_binary(Bytes)), "\n"];
format({broadcast, Frames}, Options) -> [["broadcast ", format_frame(Frame, Options), "\n"] || Frame <- Frames];
format({Kind, Duration}, _) -> io_lib:format("~s ~b~n", [Kind, Duration]);
format(close, _) -> "close\n".

format_frame(<<Header:4/binary, Body/binary>>, #options{split = true}) -> [encode(Header), " ", encode(Body)];
format_frame(Frame, _) -> encode(Frame).

encode(Bytes) ->
    string:lowercase(binary:encode_hex(Bytes)).
