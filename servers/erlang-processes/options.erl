%% The options of every server, as the launcher hands them over: protocol/WIRE.md, "Options".
-module(options).

-export([read_or_exit/1, read/1]).

-include("server.hrl").

%% Ends the program with exit 2 where it was not started by the launcher.
read_or_exit(Arguments) ->
    try
        [Resolved] = Arguments,
        read(unicode:characters_to_binary(Resolved))
    catch
        error:_ ->
            Help = "wants its resolved options as one JSON argument: ./netdyno serve ",
            lifecycle:die(2, [Help, lifecycle:program()])
    end.

%% Reads one JSON object.
read(Resolved) ->
    Given = resolved_json:read(Resolved),
    #options{
        host = maps:get(<<"host">>, Given),
        port = maps:get(<<"port">>, Given),
        workload = read_workload(maps:get(<<"workload">>, Given)),
        backlog = maps:get(<<"backlog">>, Given),
        nodelay = maps:get(<<"nodelay">>, Given),
        read_buffer = maps:get(<<"read_buffer">>, Given),
        split = maps:get(<<"write_mode">>, Given) =:= <<"split">>,
        to_all = maps:get(<<"audience">>, Given) =:= <<"all">>,
        single = maps:get(<<"deliveries">>, Given) =:= <<"single">>,
        service_time = maps:get(<<"service_time_ns">>, Given),
        burns = maps:get(<<"service_kind">>, Given) =:= <<"cpu">>,
        max_frame = maps:get(<<"max_frame">>, Given),
        outbox_limit = maps:get(<<"outbox_limit">>, Given)
    }.

read_workload(<<"echo">>) -> echo;
read_workload(<<"lines">>) -> lines;
read_workload(<<"rpc">>) -> rpc;
read_workload(<<"chat">>) -> chat;
read_workload(<<"http">>) -> http.
