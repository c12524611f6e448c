%% The counts of what a server did. Any process may add; each scheduler has counters of its own.
-module(totals).

-export([new/0, add/3, get/2, format/1]).

-define(NAMES, [requests, bytes_in, bytes_out, connections, protocol_errors, slow_closed]).

new() ->
    counters:new(length(?NAMES), [write_concurrency]).

add(Totals, Name, Count) ->
    counters:add(Totals, index(Name), Count).

get(Totals, Name) ->
    counters:get(Totals, index(Name)).

%% Returns the one line that ends a server's life. Exact once nothing is counted any more; a lower bound before.
format(Totals) ->
    Members = [io_lib:format("\"~s\":~b", [Name, get(Totals, Name)]) || Name <- ?NAMES],
    ["{", lists:join(",", Members), "}"].

index(requests) -> 1;
index(bytes_in) -> 2;
index(bytes_out) -> 3;
index(connections) -> 4;
index(protocol_errors) -> 5;
index(slow_closed) -> 6.
