%% Bytes of a message that is not complete yet: {their number, full blocks with the last one first, the block that is
%% being filled}. The runtime doubles a binary that is appended to, so a full block is copied, and nothing else is
%% when more comes.
-module(pending).

-export([new/0, size/1, append/2, whole/1]).

-define(BLOCK, (64 bsl 10)).

new() ->
    {0, [], <<>>}.

size({Size, _, _}) ->
    Size.

%% Copies the bytes: they may be a part of what a read brought, which would be kept with them.
append(Bytes, {Size, Blocks, Last}) when byte_size(Last) >= ?BLOCK ->
    append(Bytes, {Size, [binary:copy(Last) | Blocks], <<>>});
append(Bytes, {Size, Blocks, Last}) ->
    {Size + byte_size(Bytes), Blocks, <<Last/binary, Bytes/binary>>}.

%% Returns all of them.
whole({_, [], Last}) ->
    Last;
whole({_, Blocks, Last}) ->
    iolist_to_binary(lists:reverse(Blocks, [Last])).
