%% From the first line of a server's life to its last.
-module(lifecycle).

-export([prepare/0, program/0, open_signals/0, listen/1, accept/1, announce_ready/1, finish/1, die/2]).

-include("server.hrl").

-define(SIGNALS, 3).
-define(STDOUT, 1).
-define(STDERR, 2).
-define(EXHAUSTED_PAUSE_MS, 10).

%% Loads what would else be loaded by the first client, or when no descriptor is left to do it. Stdout is for two
%% lines: the reports of the runtime go to stderr.
prepare() ->
    process_flag(trap_exit, true),
    {ok, Files} = file:list_dir(filename:dirname(code:which(?MODULE))),
    Own = [list_to_atom(filename:rootname(File)) || File <- Files],
    ok = code:ensure_modules_loaded([calendar, io_lib, io_lib_format | Own]),
    ok = logger:remove_handler(default),
    ok = logger:add_handler(default, logger_std_h, #{config => #{type => standard_error}}).

%% Returns the name of the contestant, whose folder this file is in.
program() ->
    filename:basename(filename:dirname(code:which(?MODULE))).

%% Opens the descriptor on which SIGTERM and SIGINT come as data (launch/signals.cpp): the runtime keeps SIGINT to
%% itself.
open_signals() ->
    open_port({fd, ?SIGNALS, ?SIGNALS}, [in, binary]).

%% Ends the program with a hint where it cannot.
listen(#options{host = Host, port = Port} = Options) ->
    Address = resolve(Host),
    case gen_tcp:listen(Port, [family(Address), {ip, Address} | list_socket_options(Options)]) of
        {ok, Listener} ->
            Listener;
        {error, Reason} ->
            die(1, ["cannot listen on ", format_url(Address, Port), hint(Reason), ": ", inet:format_error(Reason)])
    end.

list_socket_options(#options{backlog = Backlog, nodelay = NoDelay, read_buffer = ReadBuffer}) ->
    [
        binary,
        {active, false},
        {backlog, Backlog},
        {reuseaddr, true},
        {nodelay, NoDelay},
        %% What one read brings: it has no influence on the kernel's buffers.
        {buffer, ReadBuffer},
        %% A client that ends its stream still gets its replies; and a reset is no end.
        {exit_on_close, false},
        {show_econnreset, true},
        %% A send waits until all that the port queues is with the kernel (sending:send/2).
        {high_watermark, 1},
        {low_watermark, 0}
    ].

resolve(Host) ->
    Name = binary_to_list(Host),
    case inet:parse_address(Name) of
        {ok, Address} -> Address;
        {error, _} -> resolve(Name, [inet, inet6])
    end.

resolve(Name, [Family | Families]) ->
    case inet:getaddr(Name, Family) of
        {ok, Address} -> Address;
        {error, _} when Families =/= [] -> resolve(Name, Families);
        {error, Reason} -> die(1, ["cannot resolve '", Name, "': ", inet:format_error(Reason)])
    end.

family(Address) when tuple_size(Address) =:= 4 -> inet;
family(_) -> inet6.

hint(eaddrinuse) -> "; another program listens there: choose another port, or port 0 for a free one";
hint(eacces) -> "; ports below 1024 need rights: choose a higher one";
hint(eaddrnotavail) -> "; that address is not one of this machine's";
hint(_) -> "".

format_url(Address, Port) ->
    Host = inet:ntoa(Address),
    case family(Address) of
        inet -> ["tcp://", Host, $:, integer_to_list(Port)];
        inet6 -> ["tcp://[", Host, "]:", integer_to_list(Port)]
    end.

%% Returns `closed` once the listener is. While descriptors, ports of the runtime or memory lack, clients wait in the
%% queue.
accept(Listener) ->
    case gen_tcp:accept(Listener) of
        {ok, Socket} ->
            {ok, Socket};
        {error, closed} ->
            closed;
        {error, Reason} ->
            Scarce = [emfile, enfile, enobufs, enomem, system_limit],
            %% Other errors concern that peer alone.
            [timer:sleep(?EXHAUSTED_PAUSE_MS) || lists:member(Reason, Scarce)],
            accept(Listener)
    end.

%% Prints the one line that says the server accepts.
announce_ready(Listener) ->
    {ok, {Address, Port}} = inet:sockname(Listener),
    print(?STDOUT, ["{\"ready\":true,\"endpoint\":\"", format_url(Address, Port), "\",\"pid\":", os:getpid(), "}\n"]).

%% Prints the one line of totals and ends the program, whatever its processes still do.
finish(Totals) ->
    print(?STDOUT, [Totals, $\n]),
    end_program(0).

%% Whatever is in the message, it stays one line and does nothing to a terminal.
die(Code, Message) ->
    Text = unicode:characters_to_list([program(), ": ", Message]),
    print(?STDERR, unicode:characters_to_binary([[show(Character) || Character <- Text], $\n])),
    end_program(Code).

show(Character) when Character < $\s; Character >= 127, Character < 160 -> $?;
show(Character) -> Character.

%% Returns when the line is written, which another thread does. A port that has failed is gone: the process that started
%% the server does not read any more.
print(Descriptor, Line) ->
    Port = open_port({fd, Descriptor, Descriptor}, [out]),
    port_command(Port, Line),
    wait_written(Port).

wait_written(Port) ->
    case erlang:port_info(Port, queue_size) of
        {queue_size, Size} when Size > 0 ->
            timer:sleep(1),
            wait_written(Port);
        _ ->
            ok
    end.

%% Without waiting for any port: a client may never take what waits in its own.
end_program(Code) ->
    erlang:halt(Code, [{flush, false}]).
