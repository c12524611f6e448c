%% WorkMessage of protocol/work.proto by hand, from https://protobuf.dev/programming-guides/encoding/ alone.
-module(protobuf).

-export([parse_request/1, encode_response/2]).

-define(VARINT, 0).
-define(FIXED64, 1).
-define(LENGTH, 2).
-define(START_GROUP, 3).
-define(END_GROUP, 4).
-define(FIXED32, 5).
%% As Google's parsers have it: nested groups must not exhaust the stack.
-define(MAX_DEPTH, 100).
%% Of 7 bits each.
-define(MAX_NUMBER_BYTES, 10).
-define(MAX_LENGTH_BYTES, 5).

-define(EMPTY, {0, 0, <<>>}).

%% Returns {job_id, workload, stamp} of the WorkRequest of a WorkMessage, `none` where it has none, or `malformed`. A
%% repeated message is merged, and the last member of the oneof counts.
parse_request(Body) ->
    try
        read_message(Body, none)
    catch
        malformed -> malformed
    end.

read_message(<<>>, Request) ->
    Request;
read_message(Bytes, Request) ->
    case read_field(Bytes, 0) of
        {1, ?LENGTH, Inner, Rest} when Request =:= none -> read_message(Rest, read_request(Inner, ?EMPTY));
        {1, ?LENGTH, Inner, Rest} -> read_message(Rest, read_request(Inner, Request));
        %% A response must parse too.
        {2, ?LENGTH, Inner, Rest} -> read_message(Rest, skip_fields(Inner));
        {_, _, _, Rest} -> read_message(Rest, Request)
    end.

%% Merges the fields of a WorkRequest. A number keeps its lower 32 bits.
read_request(<<>>, Request) ->
    Request;
read_request(Bytes, {JobId, Workload, Stamp} = Request) ->
    case read_field(Bytes, 1) of
        {1, ?VARINT, Value, Rest} ->
            read_request(Rest, {Value band 16#FFFFFFFF, Workload, Stamp});
        {2, ?VARINT, Value, Rest} ->
            <<Signed:32/signed>> = <<Value:32>>,
            read_request(Rest, {JobId, Signed, Stamp});
        {3, ?LENGTH, Value, Rest} ->
            read_request(Rest, {JobId, Workload, Value});
        {_, _, _, Rest} ->
            read_request(Rest, Request)
    end.

skip_fields(<<>>) ->
    none;
skip_fields(Bytes) ->
    {_, _, _, Rest} = read_field(Bytes, 1),
    skip_fields(Rest).

%% Returns {number, kind, value, the rest}. Throws `malformed`.
read_field(Bytes, Depth) ->
    {Number, Kind, AfterTag} = read_tag(Bytes),
    {Value, Rest} = read_value(Kind, Number, AfterTag, Depth),
    {Number, Kind, Value, Rest}.

read_tag(Bytes) ->
    case read_varint(Bytes, ?MAX_LENGTH_BYTES) of
        {Tag, Rest} when Tag >= 8, Tag < 1 bsl 32 -> {Tag bsr 3, Tag band 7, Rest};
        _ -> throw(malformed)
    end.

read_value(?VARINT, _, Bytes, _) ->
    read_varint(Bytes, ?MAX_NUMBER_BYTES);
read_value(?FIXED64, _, <<Value:8/binary, Rest/binary>>, _) ->
    {Value, Rest};
read_value(?FIXED32, _, <<Value:4/binary, Rest/binary>>, _) ->
    {Value, Rest};
read_value(?LENGTH, _, Bytes, _) ->
    case read_varint(Bytes, ?MAX_LENGTH_BYTES) of
        {Size, AfterSize} when Size =< byte_size(AfterSize) ->
            <<Value:Size/binary, Rest/binary>> = AfterSize,
            {Value, Rest};
        _ ->
            throw(malformed)
    end;
read_value(?START_GROUP, Number, Bytes, Depth) when Depth < ?MAX_DEPTH ->
    {<<>>, skip_group(Number, Bytes, Depth + 1)};
%% Cut off, too deep, the end of a group that never began, or a kind that there is not.
read_value(_, _, _, _) ->
    throw(malformed).

skip_group(Group, Bytes, Depth) ->
    case read_tag(Bytes) of
        {Group, ?END_GROUP, Rest} ->
            Rest;
        {Number, Kind, AfterTag} ->
            {_, Rest} = read_value(Kind, Number, AfterTag, Depth),
            skip_group(Group, Rest, Depth)
    end.

read_varint(Bytes, MaxBytes) ->
    read_varint(Bytes, 0, 7 * MaxBytes, 0).

read_varint(<<0:1, Bits:7, Rest/binary>>, Shift, End, Value) when Shift < End ->
    {Value bor (Bits bsl Shift), Rest};
read_varint(<<1:1, Bits:7, Rest/binary>>, Shift, End, Value) when Shift < End ->
    read_varint(Rest, Shift + 7, End, Value bor (Bits bsl Shift));
read_varint(_, _, _, _) ->
    throw(malformed).

%% Returns WorkMessage{WorkResponse{job_id, is_complete: true, stamp}} as an iolist.
encode_response(JobId, Stamp) ->
    Fields = [encode_job(JobId), <<(tag(2, ?VARINT)), 1>>, encode_stamp(Stamp)],
    [tag(2, ?LENGTH), encode_varint(iolist_size(Fields)) | Fields].

encode_job(0) -> [];
encode_job(JobId) -> [tag(1, ?VARINT) | encode_varint(JobId)].

encode_stamp(<<>>) -> [];
encode_stamp(Stamp) -> [tag(3, ?LENGTH), encode_varint(byte_size(Stamp)), Stamp].

tag(Number, Kind) ->
    Number bsl 3 bor Kind.

encode_varint(Value) when Value < 128 -> [Value];
encode_varint(Value) -> [Value band 127 bor 128 | encode_varint(Value bsr 7)].
