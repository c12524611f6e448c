%% Time that passes, and time that is worked. The runtime's timers count whole milliseconds.
-module(clock).

-export([deadline/1, left_ms/1, burn/1]).

-define(NS_PER_MS, 1_000_000).
-define(LONGEST_STEP_NS, 5_000).

%% Returns the moment after so many nanoseconds.
deadline(Duration) ->
    now_ns() + Duration.

%% Returns the milliseconds until then, rounded up.
left_ms(Deadline) ->
    max(0, (Deadline - now_ns() + ?NS_PER_MS - 1) div ?NS_PER_MS).

%% Keeps a core busy for so long. Erlang does not tell the CPU time of a thread: of each step between two readings of
%% the clock at most 5 us count, as the kernel or the runtime may have run something else in a longer one. The runtime
%% preempts it.
burn(Duration) ->
    burn(Duration, now_ns()).

burn(Left, Before) when Left > 0 ->
    Now = now_ns(),
    burn(Left - min(Now - Before, ?LONGEST_STEP_NS), Now);
burn(_, _) ->
    ok.

now_ns() ->
    erlang:monotonic_time(nanosecond).
