%% Sending on a socket, for the one process that writes to it.
-module(sending).

-export([send/2, takes_more/1]).

%% SOL_SOCKET and SO_MEMINFO (socket(7)), whose numbers (linux/sock_diag.h) are native integers of 32 bits: the fourth
%% is the size of the send buffer, the sixth is what is queued in it.
-define(MEMORY, {raw, 1, 55, 9 * 4}).

%% Sends all of it. gen_tcp:send returns when the kernel has it, or when the port queues the rest of it; a second one
%% returns when that queue is empty (the watermarks of lifecycle:listen/1). So what is sent is with the kernel, and
%% can be counted.
send(Socket, Bytes) ->
    case gen_tcp:send(Socket, Bytes) of
        ok ->
            case erlang:port_info(Socket, queue_size) of
                {queue_size, 0} -> ok;
                _ -> gen_tcp:send(Socket, [])
            end;
        Error ->
            Error
    end.

%% Whether the kernel would take bytes now: the rule of poll(2) for TCP (sk_stream_is_writeable in linux/net/sock.h).
%% False for a socket that is closed. The port finds that out only when it is polled.
takes_more(Socket) ->
    case inet:getopts(Socket, [?MEMORY]) of
        {ok, [{raw, _, _, <<_:12/binary, Size:32/native, _:4/binary, Queued:32/native, _/binary>>}]} ->
            Size - Queued >= Queued div 2;
        _ ->
            false
    end.
