%% The work of one connection without any I/O, by protocol/WIRE.md: bytes in, effects out; what
%% lib/session/session.hpp is to the C++ servers.
-module(session).

-export([new/1, take/2, finish/1, pending_size/1]).

-include("server.hrl").

new(#server{options = Options, totals = Totals}) ->
    #session{options = Options, totals = Totals, pending = pending:new()}.

%% Takes the next bytes of the stream, in any slicing; returns what is to be done. After a close they are ignored.
take(Bytes, #session{totals = Totals, closed = Closed} = Session) ->
    totals:add(Totals, bytes_in, byte_size(Bytes)),
    case Closed of
        true -> {[], Session};
        false -> end_step(take_open(Bytes, Session))
    end.

%% The peer has ended its stream: returns what is still pending, and a close.
finish(#session{closed = true} = Session) ->
    {[], Session};
finish(#session{options = #options{workload = lines}} = Session) ->
    end_step(workloads:finish_lines(Session));
finish(Session) ->
    %% A stream must not end inside a message.
    case pending_size(Session) of
        0 -> end_step(workloads:close([], Session));
        _ -> end_step(workloads:fail([], Session))
    end.

%% Returns how many bytes of an incomplete message it holds.
pending_size(#session{pending = Pending}) ->
    pending:size(Pending).

take_open(Bytes, #session{options = #options{workload = echo}} = Session) ->
    workloads:take_echo(Bytes, Session);
take_open(Bytes, #session{options = #options{workload = lines}} = Session) ->
    workloads:take_lines(Bytes, [], Session);
take_open(Bytes, #session{pending = Pending, wanted = Wanted} = Session) ->
    case pending:size(Pending) of
        0 ->
            consume(Bytes, Session);
        _ ->
            More = pending:append(Bytes, Pending),
            case pending:size(More) < Wanted of
                true -> {[], Session#session{pending = More}};
                false -> consume(pending:whole(More), Session#session{pending = pending:new()})
            end
    end.

%% Takes complete messages off the front, and keeps the rest until more comes.
consume(Bytes, #session{options = #options{workload = Workload}} = Session) ->
    {Rest, Effects, Consumed} =
        case Workload of
            http -> http:consume(Bytes, [], Session);
            _ -> workloads:consume_frames(Bytes, [], Session)
        end,
    {Effects, keep(Rest, Consumed)}.

keep(_, #session{closed = true} = Session) -> Session;
keep(<<>>, Session) -> Session;
keep(Rest, #session{pending = Pending} = Session) -> Session#session{pending = pending:append(Rest, Pending)}.

end_step({Effects, Session}) ->
    {effects:order(Effects), Session}.
