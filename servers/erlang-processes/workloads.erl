%% What bytes mean in each workload but http.
-module(workloads).

-export([take_echo/2, take_lines/3, finish_lines/1, consume_frames/3, close/2, fail/2]).

-include("server.hrl").

-define(HEADER, 4).
-define(MAX_WORKLOAD_US, 10_000_000).
-define(NS_PER_US, 1000).

%% Bytes as they come. What one read brought counts as one request: an echo server sees no messages.
take_echo(Bytes, Session) ->
    count_request(Session),
    {[{write, Bytes}], Session}.

%% Source D's `process`: what was read is split by line before it is echoed.
take_lines(<<>>, Effects, Session) ->
    {Effects, Session};
take_lines(Bytes, Effects, #session{options = #options{max_frame = MaxLine}, pending = Pending} = Session) ->
    {Kind, Piece, Rest} = cut_line(Bytes),
    case {pending:size(Pending) + byte_size(Piece) > MaxLine, Kind} of
        {true, _} ->
            fail(Effects, Session);
        {false, line} ->
            {More, Next} = echo_line(Piece, Effects, Session),
            take_lines(Rest, More, Next);
        {false, part} ->
            {Effects, Session#session{pending = pending:append(Piece, Pending)}}
    end.

cut_line(Bytes) ->
    case binary:match(Bytes, <<"\n">>) of
        {At, 1} ->
            <<Line:(At + 1)/binary, Rest/binary>> = Bytes,
            {line, Line, Rest};
        nomatch ->
            {part, Bytes, <<>>}
    end.

echo_line(Tail, Effects, #session{options = Options, pending = Pending} = Session) ->
    count_request(Session),
    case pending:size(Pending) of
        0 ->
            {effects:reply(<<>>, Tail, Options, Effects), Session};
        _ ->
            Line = pending:whole(pending:append(Tail, Pending)),
            {effects:reply(<<>>, Line, Options, Effects), Session#session{pending = pending:new()}}
    end.

finish_lines(#session{pending = Pending} = Session) ->
    case pending:size(Pending) of
        0 ->
            close([], Session);
        _ ->
            {Effects, Next} = echo_line(<<>>, [], Session),
            close(Effects, Next)
    end.

%% Takes complete frames off the front: {the rest, what is to be done, the session}.
consume_frames(<<Size:32, _/binary>>, Effects, #session{options = #options{max_frame = MaxFrame}} = Session) when
    Size =:= 0; Size > MaxFrame
->
    drop_rest(fail(Effects, Session));
consume_frames(<<Size:32, Body:Size/binary, Rest/binary>>, Effects, Session) ->
    case serve(Body, Effects, Session) of
        {More, #session{closed = false} = Next} -> consume_frames(Rest, More, Next);
        Failed -> drop_rest(Failed)
    end;
consume_frames(<<Size:32, _/binary>> = Rest, Effects, Session) ->
    {Rest, Effects, Session#session{wanted = ?HEADER + Size}};
consume_frames(Rest, Effects, Session) ->
    {Rest, Effects, Session#session{wanted = ?HEADER}}.

drop_rest({Effects, Session}) ->
    {<<>>, Effects, Session}.

%% Source A's request and response: Protobuf, parsed and serialised, with an optional service time.
serve(Body, Effects, #session{options = #options{workload = rpc} = Options} = Session) ->
    case protobuf:parse_request(Body) of
        {JobId, Workload, Stamp} when Workload >= 0, Workload =< ?MAX_WORKLOAD_US ->
            count_request(Session),
            Duration = Options#options.service_time + Workload * ?NS_PER_US,
            Response = protobuf:encode_response(JobId, Stamp),
            Header = <<(iolist_size(Response)):32>>,
            {effects:reply(Header, Response, Options, effects:serve(Duration, Options, Effects)), Session};
        _ ->
            fail(Effects, Session)
    end;
%% Each message becomes one frame that all recipients share; a copy, which does not keep the rest of what was read.
serve(Body, Effects, #session{options = #options{workload = chat}} = Session) ->
    count_request(Session),
    {effects:broadcast(<<(byte_size(Body)):32, Body/binary>>, Effects), Session}.

count_request(#session{totals = Totals}) ->
    totals:add(Totals, requests, 1).

close(Effects, Session) ->
    {effects:close(Effects), Session#session{closed = true, pending = pending:new()}}.

%% A protocol error.
fail(Effects, #session{totals = Totals} = Session) ->
    totals:add(Totals, protocol_errors, 1),
    close(Effects, Session).
