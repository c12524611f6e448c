%% What the modules of the server hand each other.

%% The options of every server (protocol/WIRE.md): bytes and nanoseconds.
-record(options, {
    host,
    port,
    workload,
    backlog,
    nodelay,
    read_buffer,
    split,
    to_all,
    single,
    service_time,
    burns,
    max_frame,
    outbox_limit
}).

%% What all connections share.
-record(server, {options, totals, main}).

%% The work of one connection. `pending` is the beginning of a message (pending.erl), and with less than `wanted`
%% bytes of it there is nothing to do. `date` is a second, and how it stands in a header.
-record(session, {options, totals, pending, wanted = 0, closed = false, date = {none, <<>>}}).
