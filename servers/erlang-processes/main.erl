%% Erlang/OTP: a process for each connection, which calls gen_tcp and waits; in chat another that writes, and one
%% process for all, the room.
-module(main).

-export([start/0]).

-include("server.hrl").

-define(GRACE_MS, 2000).

%% The runtime calls it while it starts, and goes on when it returns.
start() ->
    spawn(fun run/0).

run() ->
    lifecycle:prepare(),
    Options = options:read_or_exit(init:get_plain_arguments()),
    Signals = lifecycle:open_signals(),
    Listener = lifecycle:listen(Options),
    Server = #server{options = Options, totals = totals:new(), main = self()},
    room:start(Server),
    spawn(connection, accept, [Listener, Server]),
    lifecycle:announce_ready(Listener),
    receive
        {Signals, {data, _}} -> stop(Listener, Server)
    end.

%% Stops accepting, ends every stream at what has arrived, and ends the program, at the latest when the grace is over.
stop(Listener, #server{totals = Totals}) ->
    Grace = erlang:start_timer(?GRACE_MS, self(), grace),
    gen_tcp:close(Listener),
    receive
        accepting_ended -> room:stop()
    end,
    receive
        room_empty -> ok;
        {timeout, Grace, grace} -> ok
    end,
    lifecycle:finish(totals:format(Totals)).
