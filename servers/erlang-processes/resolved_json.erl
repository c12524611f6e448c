%% The JSON of resolved options: an object of texts without escapes, whole numbers, true and false. OTP 25 has no
%% JSON.
-module(resolved_json).

-export([read/1]).

-define(IS_DIGIT(Character), Character >= $0, Character =< $9).

%% Returns a map from the names. Raises an error for anything else.
read(<<"{", Rest/binary>>) ->
    read_member(Rest, #{}).

read_member(<<"\"", Rest/binary>>, Members) ->
    {Name, <<":", AfterName/binary>>} = read_text(Rest),
    {Value, AfterValue} = read_value(AfterName),
    Read = Members#{Name => Value},
    case AfterValue of
        <<",", Next/binary>> -> read_member(Next, Read);
        <<"}">> -> Read
    end.

read_value(<<"\"", Rest/binary>>) -> read_text(Rest);
read_value(<<"true", Rest/binary>>) -> {true, Rest};
read_value(<<"false", Rest/binary>>) -> {false, Rest};
read_value(<<Digit, _/binary>> = Number) when ?IS_DIGIT(Digit) -> read_number(Number, 0).

read_number(<<Digit, Rest/binary>>, Number) when ?IS_DIGIT(Digit) -> read_number(Rest, Number * 10 + Digit - $0);
read_number(Rest, Number) -> {Number, Rest}.

read_text(Bytes) ->
    [Text, Rest] = binary:split(Bytes, <<"\"">>),
    nomatch = binary:match(Text, <<"\\">>),
    {Text, Rest}.
