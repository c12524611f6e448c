%% One client, and the process that serves it: read converse/2. It calls gen_tcp:recv, and does not ask for messages
%% with {active, once}: it waits for nothing else, a read takes a call and a message either way, and the timeout of recv
%% is the wait of a service that notices a reset.
-module(connection).

-export([accept/2]).

-include("server.hrl").

-define(LINGER_NS, 1_000_000_000).
-define(LARGE, (128 bsl 10)).

%% `ahead` is the input that came while a service time passed.
-record(client, {socket, outbox, totals, ahead = none}).

%% Accepts a client and serves it, while the next process accepts.
accept(Listener, #server{main = Main} = Server) ->
    case lifecycle:accept(Listener) of
        {ok, Socket} ->
            Client = join(Socket, Server),
            spawn(?MODULE, accept, [Listener, Server]),
            serve(Client, session:new(Server));
        closed ->
            Main ! accepting_ended
    end.

join(Socket, #server{totals = Totals} = Server) ->
    totals:add(Totals, connections, 1),
    Outbox = outbox:start(Socket, Server),
    room:join(Socket, Outbox),
    #client{socket = Socket, outbox = Outbox, totals = Totals}.

serve(#client{socket = Socket, outbox = Outbox} = Client, Session) ->
    try converse(Client, Session) of
        ended ->
            ok;
        closed ->
            end_chat(Outbox),
            linger(Client)
    catch
        %% The peer has reset the connection, or was closed as a slow reader, which concerns no other client.
        gone -> ok
    after
        end_chat(Outbox),
        gen_tcp:close(Socket)
    end.

end_chat(none) ->
    ok;
end_chat(Outbox) ->
    room:leave(),
    outbox:finish(Outbox).

%% Returns which side ends the stream: `ended` where the peer has ended it, `closed` where the session does. Throws
%% `gone`.
converse(Client, Session) ->
    {Input, Client1} = take_input(Client),
    {Effects, Session1} =
        case Input of
            {ok, Bytes} -> session:take(Bytes, Session);
            ended -> session:finish(Session)
        end,
    case carry_out(Effects, Client1) of
        {open, Client2} ->
            free_large(session:pending_size(Session), session:pending_size(Session1)),
            converse(Client2, Session1);
        close when Input =:= ended -> ended;
        close -> closed
    end.

take_input(#client{ahead = none} = Client) -> {read(Client, infinity), Client};
take_input(#client{ahead = Input} = Client) -> {Input, Client#client{ahead = none}}.

%% A stream has ended if its socket is still there; if not, the process that writes has found a reset, or the room has
%% closed a slow reader.
read(#client{socket = Socket}, Timeout) ->
    case gen_tcp:recv(Socket, 0, Timeout) of
        {ok, Bytes} -> {ok, Bytes};
        {error, timeout} -> timeout;
        {error, closed} -> check_end(inet:sockname(Socket));
        {error, _} -> throw(gone)
    end.

check_end({ok, _}) -> ended;
check_end({error, _}) -> throw(gone).

carry_out([{write, Bytes} | Effects], Client) ->
    write(Bytes, Client),
    carry_out(Effects, Client);
carry_out([{broadcast, Frames} | Effects], Client) ->
    room:broadcast(Frames),
    carry_out(Effects, Client);
carry_out([{wait, Duration} | Effects], Client) ->
    carry_out(Effects, wait(clock:deadline(Duration), Client));
carry_out([{burn, Duration} | Effects], Client) ->
    clock:burn(Duration),
    carry_out(Effects, Client);
carry_out([close], _) ->
    close;
carry_out([], Client) ->
    {open, Client}.

write(Bytes, #client{socket = Socket, totals = Totals}) ->
    case sending:send(Socket, Bytes) of
        ok -> totals:add(Totals, bytes_out, iolist_size(Bytes));
        {error, _} -> throw(gone)
    end.

%% Lets the time pass. As only a read reports a reset, it reads meanwhile, once.
wait(Deadline, Client) ->
    case {clock:left_ms(Deadline), Client} of
        {0, _} ->
            Client;
        {Left, #client{ahead = none}} ->
            case read(Client, Left) of
                timeout -> wait(Deadline, Client);
                Input -> wait(Deadline, Client#client{ahead = Input})
            end;
        {Left, _} ->
            timer:sleep(Left),
            wait(Deadline, Client)
    end.

%% Collects garbage when a large message is complete: the process may be idle from now on, and what it has received is
%% not on its own heap, which is small.
free_large(Before, After) when Before > ?LARGE, After < Before ->
    erlang:garbage_collect();
free_large(_, _) ->
    ok.

%% Only our stream is ended, and what still comes is read: a close with unread bytes resets the connection, and the
%% peer would lose the replies that are on their way (RFC 9112, 9.6).
linger(#client{socket = Socket} = Client) ->
    gen_tcp:shutdown(Socket, write),
    catch read_on(Client, clock:deadline(?LINGER_NS)).

read_on(#client{totals = Totals} = Client, Deadline) ->
    case clock:left_ms(Deadline) of
        0 ->
            ok;
        Left ->
            case read(Client, Left) of
                {ok, Bytes} ->
                    totals:add(Totals, bytes_in, byte_size(Bytes)),
                    read_on(Client, Deadline);
                _ ->
                    ok
            end
    end.
