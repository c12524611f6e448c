package netdyno

import (
	"errors"
	"math"
	"os"
	"path"
	"strconv"
	"strings"
	"time"
)

// Options are those that every server takes (the program contract): values mean what they mean in
// lib/server/options.cpp.
type Options struct {
	Host        string // without brackets
	Port        int
	Workload    string
	Threads     int
	Backlog     int
	NoDelay     bool
	ReadBuffer  int
	Split       bool // header and body in two writes
	ToAll       bool // a chat message reaches its sender too
	ServiceTime time.Duration
	ServiceKind Kind // Wait or Burn
	MaxFrame    int
	OutboxLimit int
}

const gib = 1 << 30

type option struct {
	name, values, byDefault, help string
	set                           func(options *Options, value string) error
}

// read sets the option; one of some words where its values are such.
func (o *option) read(options *Options, value string) error {
	if words := strings.Split(o.values, "|"); len(words) > 1 {
		known := false
		for _, word := range words {
			known = known || word == value
		}
		if !known {
			return errors.New("'" + value + "' is none of " + o.values)
		}
	}
	return o.set(options, value)
}

var known = []option{
	{"--listen", "URL", "tcp://127.0.0.1:0", "where to listen; port 0 picks a free one", setListen},
	{"--workload", "echo|lines|rpc|chat|http", "echo", "application protocol",
		word(func(o *Options, word string) { o.Workload = word })},
	{"--threads", "INT in [1 - 1024]", "1", "threads that serve",
		whole(1, 1024, func(o *Options) *int { return &o.Threads })},
	{"--backlog", "INT in [1 - 65535]", "4096", "listen(2) backlog",
		whole(1, 65535, func(o *Options) *int { return &o.Backlog })},
	{"--nodelay", "on|off", "on", "TCP_NODELAY",
		word(func(o *Options, word string) { o.NoDelay = word == "on" })},
	{"--read-buffer", "BYTES", "16KiB", "bytes asked for in one read",
		size(gib, func(o *Options) *int { return &o.ReadBuffer })},
	{"--write-mode", "gathered|split", "gathered", "header and body in one write or two",
		word(func(o *Options, word string) { o.Split = word == "split" })},
	{"--audience", "others|all", "others", "who gets a chat message",
		word(func(o *Options, word string) { o.ToAll = word == "all" })},
	{"--service-time", "DUR", "0", "service time of a request of rpc or http", setServiceTime},
	{"--service-kind", "wait|cpu", "wait", "spend the service time waiting or burning CPU",
		word(func(o *Options, word string) { o.ServiceKind = map[string]Kind{"wait": Wait, "cpu": Burn}[word] })},
	{"--max-frame", "BYTES", "1MiB", "longest message accepted",
		size(gib, func(o *Options) *int { return &o.MaxFrame })},
	{"--outbox-limit", "BYTES", "4MiB", "bytes that may wait for one reader before it is closed",
		size(1<<40, func(o *Options) *int { return &o.OutboxLimit })},
}

func program() string {
	return path.Base(os.Args[0])
}

// OptionsOrExit ends the program on --help (exit 0) and on an unknown option or a bad value (exit 2, one clear line on
// stderr).
func OptionsOrExit() *Options {
	for _, argument := range os.Args[1:] {
		if argument == "--help" || argument == "-h" {
			os.Stdout.WriteString(help())
			exit(0)
		}
	}
	options, err := ParseOptions(os.Args[1:])
	if err != nil {
		// Whatever is in an argument, the message about it stays one line and does nothing to a terminal.
		message := strings.Map(func(c rune) rune {
			if c < ' ' || c == 0x7f {
				return '?'
			}
			return c
		}, err.Error())
		os.Stderr.WriteString(program() + ": " + message + " (--help lists the options)\n")
		exit(2)
	}
	return options
}

func help() string {
	text := program() + ": netdyno contestant: see protocol/WIRE.md for what it speaks\n"
	for _, one := range known {
		words := one.name + " " + one.values
		for len(words) < 38 {
			words += " "
		}
		text += "  " + words + " " + one.help + " [" + one.byDefault + "]\n"
	}
	return text
}

// ParseOptions reads "--name value" and "--name=value".
func ParseOptions(arguments []string) (*Options, error) {
	options := &Options{}
	left := map[string]*option{}
	for i := range known {
		left[known[i].name] = &known[i]
		if err := known[i].read(options, known[i].byDefault); err != nil {
			return nil, err
		}
	}
	for len(arguments) > 0 {
		name, value, hasValue := strings.Cut(arguments[0], "=")
		arguments = arguments[1:]
		one := left[name]
		if one == nil {
			return nil, errors.New("unknown argument, or given twice: " + name)
		}
		delete(left, name)
		if !hasValue {
			if len(arguments) == 0 {
				return nil, errors.New(name + ": a value is missing")
			}
			value, arguments = arguments[0], arguments[1:]
		}
		if err := one.read(options, value); err != nil {
			return nil, errors.New(name + ": " + err.Error())
		}
	}
	return options, nil
}

// word sets one of those that the option's values name.
func word(set func(*Options, string)) func(*Options, string) error {
	return func(options *Options, value string) error {
		set(options, value)
		return nil
	}
}

func whole(low, high int, place func(*Options) *int) func(*Options, string) error {
	return func(options *Options, value string) error {
		number, err := strconv.Atoi(value)
		if err != nil {
			return errors.New("'" + value + "' is no whole number")
		}
		if number < low || number > high {
			return errors.New(value + " is not in [" + strconv.Itoa(low) + " - " + strconv.Itoa(high) + "]")
		}
		*place(options) = number
		return nil
	}
}

// size reads "16384", "16KiB", "1MiB", "1GiB" (powers of 1024; "16k" and "16KB" are refused as ambiguous), from 1 to
// most.
func size(most int, place func(*Options) *int) func(*Options, string) error {
	units := map[string]uint64{"": 1, "B": 1, "KiB": 1 << 10, "MiB": 1 << 20, "GiB": gib}
	return func(options *Options, value string) error {
		digits := len(value) - len(strings.TrimLeft(value, "0123456789"))
		unit := units[value[digits:]]
		if digits == 0 || unit == 0 {
			return errors.New("'" + value + "' is no size; want e.g. 512, 16KiB, 1MiB")
		}
		number, err := strconv.ParseUint(value[:digits], 10, 64)
		if err != nil || number == 0 || number > uint64(most)/unit {
			return errors.New("'" + value + "' is out of range")
		}
		*place(options) = int(number * unit)
		return nil
	}
}

// setServiceTime reads "250us", "5ms", "1.5s", "2m", "0". A bare number other than 0 has no unit and is refused.
func setServiceTime(options *Options, value string) error {
	units := map[string]float64{"ns": 1, "us": 1e3, "ms": 1e6, "s": 1e9, "m": 60e9}
	digits := len(value) - len(strings.TrimLeft(value, "0123456789."))
	number, err := strconv.ParseFloat(value[:digits], 64)
	unit, known := units[value[digits:]]
	if !known && value[digits:] == "" && number == 0 {
		known = true
	}
	if err != nil || !known || number*unit > 9e18 {
		return errors.New("'" + value + "' is no duration; want e.g. 250us, 5ms, 1s")
	}
	options.ServiceTime = time.Duration(math.Round(number * unit))
	return nil
}

// setListen reads tcp://host:port; an IPv6 host stands in brackets (RFC 3986, 3.2.2; with a zone, RFC 4007).
func setListen(options *Options, value string) error {
	refused := errors.New("'" + value + "' is no URL; want e.g. tcp://127.0.0.1:7000")
	transport, rest, good := strings.Cut(value, "://")
	if !good || transport == "" {
		return refused
	}
	place, _, _ := strings.Cut(rest, "?")
	colon := strings.LastIndexByte(place, ':')
	if colon < 0 {
		return refused
	}
	host, others := place[:colon], "._-"
	if strings.HasPrefix(host, "[") && strings.HasSuffix(host, "]") && strings.Contains(host, ":") {
		host, others = host[1:len(host)-1], ":.%_-"
	}
	port, err := strconv.ParseUint(place[colon+1:], 10, 16)
	if err != nil || !madeOf(host, others) {
		return refused
	}
	if transport != "tcp" {
		return errors.New("transport '" + transport + "' is not spoken here")
	}
	options.Host, options.Port = host, int(port)
	return nil
}

// madeOf: letters, digits and others: all that a host can be made of.
func madeOf(text, others string) bool {
	for _, c := range text {
		letter := '0' <= c && c <= '9' || 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z'
		if !letter && !strings.ContainsRune(others, c) {
			return false
		}
	}
	return text != ""
}
