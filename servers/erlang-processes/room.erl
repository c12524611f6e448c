%% The one process that knows all connections. In chat every message goes through it, so that it meets every member
%% once.
-module(room).

-export([start/1, join/2, leave/0, broadcast/1, stop/0]).

-include("server.hrl").

%% What a frame that waits for a reader counts beside its bytes, in every server (protocol/WIRE.md): a frame of one
%% byte takes far more than that to keep.
-define(FRAME_OVERHEAD, 128).
-define(A_WHILE_MS, 1).
-define(SOL_SOCKET, 1).
-define(SO_LINGER, 13).

-record(member, {process, socket, outbox}).
%% `sockets` has every connection, by its process, until that has ended; `audience` the members that hear what is
%% said.
-record(room, {server, sockets = #{}, audience = [], stopping = false}).

start(Server) ->
    register(?MODULE, spawn(fun() -> serve(#room{server = Server}) end)).

%% Called by the process of the connection, as all of these are.
join(Socket, Outbox) ->
    ?MODULE ! {join, #member{process = self(), socket = Socket, outbox = Outbox}}.

leave() ->
    ?MODULE ! {leave, self()}.

%% Returns when all members have the frames in their outboxes: no more than what one read brought waits here for each
%% sender.
broadcast(Frames) ->
    ?MODULE ! {broadcast, Frames, self()},
    receive
        broadcast_done -> ok
    end.

%% Ends every stream at what has arrived, once no client joins any more; main gets `room_empty` when all have left.
stop() ->
    ?MODULE ! stop.

serve(#room{stopping = true, sockets = Sockets, server = #server{main = Main}}) when map_size(Sockets) =:= 0 ->
    Main ! room_empty;
serve(#room{sockets = Sockets, audience = Audience} = Room) ->
    receive
        {broadcast, Frames, Sender} ->
            Slow = post_to_all(Frames, Sender, Room),
            Sender ! broadcast_done,
            serve(Room#room{audience = Audience -- Slow});
        {join, #member{process = Process, socket = Socket} = Member} ->
            monitor(process, Process),
            serve(Room#room{sockets = Sockets#{Process => Socket}, audience = add(Member, Audience)});
        {leave, Process} ->
            serve(Room#room{audience = lists:keydelete(Process, #member.process, Audience)});
        {'DOWN', _, process, Process, _} ->
            serve(Room#room{sockets = maps:remove(Process, Sockets)});
        stop ->
            [gen_tcp:shutdown(Socket, read) || Socket <- maps:values(Sockets)],
            serve(Room#room{stopping = true})
    end.

add(#member{outbox = none}, Audience) -> Audience;
add(Member, Audience) -> [Member | Audience].

%% Returns the readers that were closed as they are slow.
post_to_all(Frames, Sender, #room{server = #server{options = Options, totals = Totals}, audience = Audience}) ->
    Size = lists:sum([byte_size(Frame) + ?FRAME_OVERHEAD || Frame <- Frames]),
    #options{to_all = ToAll, outbox_limit = Limit} = Options,
    [
        close_slow(Member, Totals)
     || #member{process = Process} = Member <- Audience,
        ToAll orelse Process =/= Sender,
        not post(Frames, Size, Member, Limit)
    ].

%% False, and nothing is posted, where more than the limit would wait for a reader whose socket takes nothing. One
%% frame may always wait.
post(Frames, Size, #member{outbox = Outbox, socket = Socket} = Member, Limit) ->
    Held = outbox:held(Outbox),
    IsTooMuch = Held + Size > Limit andalso (Held > 0 orelse length(Frames) > 1),
    case IsTooMuch andalso not sending:takes_more(Socket) of
        true ->
            false;
        false ->
            outbox:post(Frames, Size, Outbox),
            wait_while_behind(Member, Limit),
            true
    end.

%% Waits until there is room again, or the reader does not read: all senders wait here. A process that is late with
%% writing is not the reader's fault.
wait_while_behind(#member{outbox = Outbox, socket = Socket} = Member, Limit) ->
    case outbox:held(Outbox) > Limit div 2 andalso outbox:is_open(Outbox) andalso sending:takes_more(Socket) of
        true ->
            timer:sleep(?A_WHILE_MS),
            wait_while_behind(Member, Limit);
        false ->
            ok
    end.

%% Closes the port without waiting for its queue, which the reader does not take: so it does for a socket that does not
%% linger. As the kernel would then reset the connection, its own setting (SO_LINGER, socket(7)) is taken back.
close_slow(#member{socket = Socket} = Member, Totals) ->
    totals:add(Totals, slow_closed, 1),
    inet:setopts(Socket, [{linger, {true, 0}}]),
    inet:setopts(Socket, [{raw, ?SOL_SOCKET, ?SO_LINGER, <<0:64>>}]),
    catch erlang:port_close(Socket),
    Member.
