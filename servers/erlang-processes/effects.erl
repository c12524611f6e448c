%% What a session wants done: {write, Bytes}, {broadcast, Frames}, {wait, Nanoseconds}, {burn, Nanoseconds} and close.
%% While they are collected, the last one is the first.
-module(effects).

-export([reply/4, broadcast/2, serve/3, close/1, order/1]).

-include("server.hrl").

%% Adds a reply of two parts. Gathered, it joins the write before it; split, each part is a write.
reply(Head, Body, #options{split = true}, Effects) ->
    write(Body, write(Head, Effects));
reply(Head, Body, _, [{write, Before} | Effects]) ->
    [{write, [Before, Head, Body]} | Effects];
reply(Head, Body, _, Effects) ->
    [{write, [Head, Body]} | Effects].

write(<<>>, Effects) -> Effects;
write(Bytes, Effects) -> [{write, Bytes} | Effects].

%% Adds a frame with its header for the audience; those that follow each other are one effect.
broadcast(Frame, [{broadcast, Frames} | Effects]) ->
    [{broadcast, [Frame | Frames]} | Effects];
broadcast(Frame, Effects) ->
    [{broadcast, [Frame]} | Effects].

%% Adds a service time of so many nanoseconds, or nothing for none.
serve(0, _, Effects) -> Effects;
serve(Duration, #options{burns = true}, Effects) -> [{burn, Duration} | Effects];
serve(Duration, _, Effects) -> [{wait, Duration} | Effects].

close(Effects) ->
    [close | Effects].

%% Returns them in the order in which they are to be carried out.
order(Effects) ->
    lists:reverse([order_frames(Effect) || Effect <- Effects]).

order_frames({broadcast, Frames}) -> {broadcast, lists:reverse(Frames)};
order_frames(Effect) -> Effect.
