package netdyno

import (
	"bytes"
	"encoding/binary"
	"time"
)

const maxWorkloadUs = 10_000_000

// echo: bytes as they come. What one read brought counts as one request: an echo server sees no messages.
type echo struct {
	counts *Shard
}

func (w *echo) receive(input []byte, effects *Effects) flow {
	w.counts.Requests.Add(1)
	effects.reply(nil, input)
	return open
}

func (w *echo) end(*Effects) flow { return ended }

func (w *echo) discard() {}

// lines: source D's `process`: what was read is split by line before it is echoed.
type lines struct {
	counts  *Shard
	maxLine int
	pending pendingBytes
}

func (w *lines) receive(input []byte, effects *Effects) flow {
	for len(input) > 0 {
		piece := input
		newline := bytes.IndexByte(input, '\n')
		if newline >= 0 {
			piece = input[:newline+1]
		}
		input = input[len(piece):]
		if w.pending.len()+len(piece) > w.maxLine {
			return failed
		}
		if newline < 0 {
			w.pending.append(piece)
		} else {
			w.echoLine(piece, effects)
		}
	}
	return open
}

func (w *lines) echoLine(tail []byte, effects *Effects) {
	w.counts.Requests.Add(1)
	if w.pending.len() == 0 {
		effects.reply(nil, tail)
		return
	}
	w.pending.append(tail)
	effects.reply(nil, w.pending.view())
	w.pending.clear()
}

func (w *lines) end(effects *Effects) flow {
	if w.pending.len() > 0 {
		w.echoLine(nil, effects)
	}
	return ended
}

func (w *lines) discard() { w.pending.clear() }

// messages are cut out of a stream, whatever the slicing. Bytes are copied only while a message is incomplete.
type messages struct {
	pending pendingBytes
}

// receive calls consume with all that is there; it takes complete messages off the front, and says how the stream goes
// on and how many bytes they were.
func (m *messages) receive(input []byte, consume func([]byte) (flow, int)) flow {
	if m.pending.len() == 0 {
		how, consumed := consume(input)
		m.pending.append(input[consumed:])
		return how
	}
	m.pending.append(input)
	how, consumed := consume(m.pending.view())
	if consumed > 0 {
		m.pending.drop(consumed)
	}
	return how
}

// end: a stream must not end inside a message.
func (m *messages) end(*Effects) flow {
	if m.pending.len() > 0 {
		return failed
	}
	return ended
}

func (m *messages) discard() { m.pending.clear() }

// frames calls take with each complete frame of input, its header included, until one does not leave the stream open.
func frames(input []byte, maxFrame int, take func(frame []byte) flow) (flow, int) {
	at := 0
	for len(input)-at >= Header {
		size := int(binary.BigEndian.Uint32(input[at:]))
		if size == 0 || size > maxFrame {
			return failed, at
		}
		if len(input)-at < Header+size {
			break
		}
		frame := input[at : at+Header+size]
		at += len(frame)
		if how := take(frame); how != open {
			return how, at
		}
	}
	return open, at
}

// rpc: source A's request and response: Protobuf, parsed and serialised, with an optional service time.
type rpc struct {
	messages
	options *Options
	counts  *Shard
	reply   []byte // reused
}

func newRPC(options *Options, counts *Shard) work {
	return &rpc{options: options, counts: counts}
}

func (w *rpc) receive(input []byte, effects *Effects) flow {
	return w.messages.receive(input, func(rest []byte) (flow, int) {
		return frames(rest, w.options.MaxFrame, func(frame []byte) flow { return w.serve(frame[Header:], effects) })
	})
}

func (w *rpc) serve(body []byte, effects *Effects) flow {
	request, good := parseRequest(body)
	if !good || request.workload < 0 || request.workload > maxWorkloadUs {
		return failed
	}
	w.counts.Requests.Add(1)
	effects.serve(w.options.ServiceKind, w.options.ServiceTime+time.Duration(request.workload)*time.Microsecond)
	w.reply = appendResponse(append(w.reply[:0], 0, 0, 0, 0), &request)
	binary.BigEndian.PutUint32(w.reply, uint32(len(w.reply)-Header))
	effects.reply(w.reply[:Header], w.reply[Header:])
	return open
}

// chat: each message becomes one frame that all recipients share.
type chat struct {
	messages
	options *Options
	counts  *Shard
}

func newChat(options *Options, counts *Shard) work {
	return &chat{options: options, counts: counts}
}

func (w *chat) receive(input []byte, effects *Effects) flow {
	return w.messages.receive(input, func(rest []byte) (flow, int) {
		return frames(rest, w.options.MaxFrame, func(frame []byte) flow {
			w.counts.Requests.Add(1)
			effects.broadcast(append([]byte(nil), frame...))
			return open
		})
	})
}
