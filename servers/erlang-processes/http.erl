%% HTTP/1.1 GET and HEAD with keep-alive and pipelining (RFC 9112); the reply's body is the request target. By hand,
%% as the contract is about bytes: erlang:decode_packet takes more than these, and refuses in its own way.
-module(http).

-export([consume/3]).

-include("server.hrl").

-define(MAX_HEAD, (16 bsl 10)).
-define(END_OF_LINE, <<"\r\n">>).
-define(END_OF_HEAD, <<"\r\n\r\n">>).
-define(END_OF_HEAD_SIZE, 4).
-define(OK, <<"200 OK">>).
-define(BAD_REQUEST, <<"400 Bad Request">>).
-define(NOT_IMPLEMENTED, <<"501 Not Implemented">>).

-define(IS_TOKEN(Byte), Byte >= $a, Byte =< $z; Byte >= $A, Byte =< $Z; Byte >= $0, Byte =< $9; Byte =:= $-;
    Byte =:= $.; Byte =:= $_; Byte =:= $!; Byte =:= $#; Byte =:= $$; Byte =:= $%; Byte =:= $&; Byte =:= $'; Byte =:= $*;
    Byte =:= $+; Byte =:= $^; Byte =:= $`; Byte =:= $|; Byte =:= $~).

%% `connection` is what a reply says of it, or nothing where it stays open by default.
-record(request, {status = ?OK, target = <<>>, wants_body = false, connection = <<>>}).
%% What the headers of a request say.
-record(headers, {hosts = 0, has_body = false, tokens = []}).

%% Takes complete requests off the front: {the rest, what is to be done, the session}.
consume(<<"\r\n", Rest/binary>>, Effects, Session) ->
    %% RFC 9112, 2.2
    consume(Rest, Effects, Session);
consume(Bytes, Effects, #session{options = #options{max_frame = MaxFrame}} = Session) ->
    MaxHead = min(?MAX_HEAD, MaxFrame),
    case binary:match(Bytes, ?END_OF_HEAD) of
        %% The last bytes of an incomplete head may be the beginning of its end, which does not count.
        nomatch when byte_size(Bytes) < MaxHead + ?END_OF_HEAD_SIZE ->
            {Bytes, Effects, Session};
        {End, _} when End =< MaxHead ->
            <<Head:End/binary, _:?END_OF_HEAD_SIZE/binary, Rest/binary>> = Bytes,
            case serve(parse_head(Head), Effects, Session) of
                {More, #session{closed = false} = Next} -> consume(Rest, More, Next);
                {More, Next} -> {<<>>, More, Next}
            end;
        _ ->
            {More, Next} = refuse(?BAD_REQUEST, Effects, Session),
            {<<>>, More, Next}
    end.

serve(#request{status = ?OK, target = Target, connection = Connection} = Request, Effects, Session) ->
    #session{options = Options, totals = Totals} = Session,
    totals:add(Totals, requests, 1),
    Served = effects:serve(Options#options.service_time, Options, Effects),
    {More, Next} = respond(Request, Target, Served, Session),
    case Connection of
        <<"close">> -> workloads:close(More, Next);
        _ -> {More, Next}
    end;
serve(#request{status = Status}, Effects, Session) ->
    refuse(Status, Effects, Session).

refuse(Status, Effects, Session) ->
    {More, Next} = respond(#request{status = Status, connection = <<"close">>}, <<>>, Effects, Session),
    workloads:fail(More, Next).

respond(#request{status = Status, wants_body = WantsBody, connection = Connection}, Body, Effects, Session) ->
    #session{options = Options, date = {_, Date}} = Dated = update_date(erlang:system_time(second), Session),
    Head = [
        <<"HTTP/1.1 ">>,
        Status,
        <<"\r\nDate: ">>,
        Date,
        <<"\r\nContent-Type: text/plain\r\nContent-Length: ">>,
        integer_to_binary(byte_size(Body)),
        format_connection(Connection)
    ],
    Sent =
        case WantsBody of
            true -> Body;
            false -> <<>>
        end,
    {effects:reply(Head, Sent, Options, Effects), Dated}.

format_connection(<<>>) -> ?END_OF_HEAD;
format_connection(Connection) -> [<<"\r\nConnection: ">>, Connection, ?END_OF_HEAD].

%% Formats the time as a header has it (RFC 9110, 5.6.7), once a second.
update_date(Second, #session{date = {Second, _}} = Session) ->
    Session;
update_date(Second, Session) ->
    {{Year, Month, Day} = Date, {Hour, Minute, OfMinute}} = calendar:system_time_to_universal_time(Second, second),
    Weekday = element(calendar:day_of_the_week(Date), {"Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun"}),
    Months = {"Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"},
    Values = [Weekday, Day, element(Month, Months), Year, Hour, Minute, OfMinute],
    Text = io_lib:format("~s, ~2..0w ~s ~4..0w ~2..0w:~2..0w:~2..0w GMT", Values),
    Session#session{date = {Second, iolist_to_binary(Text)}}.

%% Reads what of a head, without the empty line that ends it, matters here.
parse_head(Head) ->
    [Line | Lines] = binary:split(Head, ?END_OF_LINE, [global]),
    case binary:split(Line, <<" ">>, [global]) of
        [Method, Target, <<"HTTP/1.", Minor>>] when Minor =:= $1; Minor =:= $0 ->
            case is_token(Method) andalso is_graphic(Target) andalso read_headers(Lines, #headers{}) of
                false -> #request{status = ?BAD_REQUEST};
                Headers -> judge(Method, Target, Minor =:= $1, Headers)
            end;
        _ ->
            #request{status = ?BAD_REQUEST}
    end.

judge(_, _, IsNew, #headers{hosts = Hosts}) when Hosts > 1; Hosts =:= 0, IsNew ->
    #request{status = ?BAD_REQUEST};
judge(Method, _, _, _) when Method =/= <<"GET">>, Method =/= <<"HEAD">> ->
    %% RFC 9110, 9.1: also with a body
    #request{status = ?NOT_IMPLEMENTED};
judge(_, _, _, #headers{has_body = true}) ->
    #request{status = ?BAD_REQUEST};
judge(Method, Target, IsNew, #headers{tokens = Tokens}) ->
    #request{target = Target, wants_body = Method =:= <<"GET">>, connection = choose_connection(IsNew, Tokens)}.

choose_connection(IsNew, Tokens) ->
    case {lists:member(<<"close">>, Tokens), IsNew, lists:member(<<"keep-alive">>, Tokens)} of
        {true, _, _} -> <<"close">>;
        {false, true, _} -> <<>>;
        {false, false, true} -> <<"keep-alive">>;
        {false, false, false} -> <<"close">>
    end.

%% False where a line is malformed.
read_headers([], Headers) ->
    Headers;
read_headers([Line | Lines], Headers) ->
    case binary:split(Line, <<":">>) of
        [Name, Value] ->
            case is_token(Name) andalso is_value(Value) of
                true -> read_headers(Lines, read_header(Name, Value, Headers));
                false -> false
            end;
        [_] ->
            false
    end.

%% Only names of these lengths matter.
read_header(<<_:4/binary>> = Name, Value, Headers) -> read_known(lower(Name), Value, Headers);
read_header(<<_:10/binary>> = Name, Value, Headers) -> read_known(lower(Name), Value, Headers);
read_header(<<_:14/binary>> = Name, Value, Headers) -> read_known(lower(Name), Value, Headers);
read_header(<<_:17/binary>> = Name, Value, Headers) -> read_known(lower(Name), Value, Headers);
read_header(_, _, Headers) -> Headers.

read_known(<<"host">>, _, #headers{hosts = Hosts} = Headers) ->
    Headers#headers{hosts = Hosts + 1};
read_known(<<"connection">>, Value, #headers{tokens = Tokens} = Headers) ->
    Items = [lower(trim(Item)) || Item <- binary:split(Value, <<",">>, [global])],
    Headers#headers{tokens = Items ++ Tokens};
read_known(<<"content-length">>, Value, Headers) ->
    Headers#headers{has_body = Headers#headers.has_body orelse trim(Value) =/= <<"0">>};
read_known(<<"transfer-encoding">>, _, Headers) ->
    Headers#headers{has_body = true};
read_known(_, _, Headers) ->
    Headers.

is_token(<<>>) -> false;
is_token(Bytes) -> are_token(Bytes).

are_token(<<Byte, Rest/binary>>) when ?IS_TOKEN(Byte) -> are_token(Rest);
are_token(Rest) -> Rest =:= <<>>.

is_graphic(<<>>) -> false;
is_graphic(Bytes) -> are_graphic(Bytes).

are_graphic(<<Byte, Rest/binary>>) when Byte > $\s, Byte < 127 -> are_graphic(Rest);
are_graphic(Rest) -> Rest =:= <<>>.

is_value(<<Byte, Rest/binary>>) when Byte =/= 0, Byte =/= $\r, Byte =/= $\n -> is_value(Rest);
is_value(Rest) -> Rest =:= <<>>.

%% Takes away the blanks and tabs around a text, and nothing else.
trim(<<Byte, Rest/binary>>) when Byte =:= $\s; Byte =:= $\t ->
    trim(Rest);
trim(Text) ->
    case byte_size(Text) > 0 andalso binary:last(Text) of
        Byte when Byte =:= $\s; Byte =:= $\t -> trim(binary:part(Text, 0, byte_size(Text) - 1));
        _ -> Text
    end.

%% Of ASCII: what is not is no name.
lower(Text) ->
    <<<<(lower_byte(Byte))>> || <<Byte>> <= Text>>.

lower_byte(Byte) when Byte >= $A, Byte =< $Z -> Byte + 32;
lower_byte(Byte) -> Byte.
