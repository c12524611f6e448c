// Package netdyno is what every server in Go shares: options, the work of a connection, totals, the first and the last
// line. It starts no goroutine that serves.
package netdyno

// flow is how a stream goes on after what was read.
type flow int

const (
	open flow = iota
	ended
	failed
)

// work is what bytes mean in one workload.
type work interface {
	// receive takes the next bytes of the stream, in any slicing.
	receive(bytes []byte, effects *Effects) flow
	// end is called when the peer has ended its stream: what is still pending.
	end(effects *Effects) flow
	// discard lets go of what waits for the rest of a message.
	discard()
}

// Session is the work of one connection without any I/O, by protocol/WIRE.md: bytes in, effects out; what
// lib/session/session.hpp is to the C++ servers. One goroutine at a time may call it.
type Session struct {
	work   work
	counts *Shard
	closed bool
}

// NewSession makes that of the workload that the options name.
func NewSession(options *Options, counts *Shard) *Session {
	return &Session{work: workloads[options.Workload](options, counts), counts: counts}
}

var workloads = map[string]func(*Options, *Shard) work{
	"echo":  func(_ *Options, counts *Shard) work { return &echo{counts} },
	"lines": func(options *Options, counts *Shard) work { return &lines{counts: counts, maxLine: options.MaxFrame} },
	"rpc":   newRPC,
	"chat":  newChat,
	"http":  newHTTP,
	"web":   newWeb,
}

// Receive takes the next bytes of the stream, in any slicing, and appends what is to be done. After a Close further
// bytes are ignored.
func (s *Session) Receive(bytes []byte, effects *Effects) {
	if !s.closed {
		s.goOn(s.work.receive(bytes, effects), effects)
	}
}

// End appends what is still pending when the peer has ended its stream, and Close.
func (s *Session) End(effects *Effects) {
	if !s.closed {
		s.goOn(s.work.end(effects), effects)
	}
}

// Fail is called where what has come cannot be given to Receive: a protocol error, and Close.
func (s *Session) Fail(effects *Effects) {
	if !s.closed {
		s.goOn(failed, effects)
	}
}

// Discard is called when the connection is over, however it ended.
func (s *Session) Discard() {
	s.closed = true
	s.work.discard()
}

func (s *Session) goOn(how flow, effects *Effects) {
	if how == failed {
		s.counts.ProtocolErrors.Add(1)
	}
	if how != open {
		s.closed = true
		effects.List = append(effects.List, Effect{Kind: Close})
	}
}
