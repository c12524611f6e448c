%% The frames that wait for one reader in chat: the messages of a process that writes, and a count of what they hold,
%% which is of the frames being sent as well.
-module(outbox).

-export([start/2, held/1, is_open/1, post/3, finish/1, write/4]).

-include("server.hrl").

-define(HEADER, 4).

-record(outbox, {writer, held}).

%% Returns `none` where the workload has no frames.
start(Socket, #server{options = #options{workload = chat} = Options, totals = Totals}) ->
    Held = atomics:new(1, []),
    #outbox{writer = spawn(?MODULE, write, [Socket, Held, Options, Totals]), held = Held};
start(_, _) ->
    none.

held(#outbox{held = Held}) ->
    atomics:get(Held, 1).

%% Whether what waits will still be sent.
is_open(#outbox{writer = Writer}) ->
    is_process_alive(Writer).

%% Puts frames into the outbox, which hold so much.
post(Frames, Size, #outbox{writer = Writer, held = Held}) ->
    atomics:add(Held, 1, Size),
    Writer ! {frames, Frames, Size}.

%% Returns when all that waits is sent, or cannot be.
finish(#outbox{writer = Writer}) ->
    Monitor = monitor(process, Writer),
    Writer ! finish,
    receive
        {'DOWN', Monitor, process, Writer, _} -> ok
    end.

%% The process that writes: what came while it was sending leaves in one write; split, each part in its own; single,
%% each frame.
write(Socket, Held, Options, Totals) ->
    receive
        {frames, Frames, Size} ->
            {All, Taken} = take_more([Frames], Size),
            case send(Socket, All, Options, Totals) of
                ok ->
                    atomics:sub(Held, 1, Taken),
                    write(Socket, Held, Options, Totals);
                {error, _} ->
                    %% The process that reads finds the socket closed.
                    ok
            end;
        finish ->
            ok
    end.

take_more(Taken, Size) ->
    receive
        {frames, Frames, More} -> take_more([Frames | Taken], Size + More)
    after 0 -> {lists:append(lists:reverse(Taken)), Size}
    end.

send(Socket, Frames, #options{split = true}, Totals) ->
    Parts = [Part || <<Header:?HEADER/binary, Body/binary>> <- Frames, Part <- [Header, Body]],
    send_each(Socket, Parts, Totals);
send(Socket, Frames, #options{single = true}, Totals) ->
    send_each(Socket, Frames, Totals);
send(Socket, Frames, _, Totals) ->
    send_each(Socket, [Frames], Totals).

send_each(Socket, [Bytes | Rest], Totals) ->
    case sending:send(Socket, Bytes) of
        ok ->
            totals:add(Totals, bytes_out, iolist_size(Bytes)),
            send_each(Socket, Rest, Totals);
        Error ->
            Error
    end;
send_each(_, [], _) ->
    ok.
