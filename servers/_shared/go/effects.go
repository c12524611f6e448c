package netdyno

import "time"

// Header is how many bytes a frame's length has.
const Header = 4

// FrameOverhead is what a frame that waits for a reader counts beside its bytes, in every server (protocol/WIRE.md): a
// frame of one byte takes far more than that to keep.
const FrameOverhead = 128

// Kind says what an Effect is.
type Kind int

const (
	Write     Kind = iota // send Effects.Bytes(effect) to this connection, in a write of its own
	Broadcast             // send Frame to the audience
	Wait                  // let Remaining() pass before the next effect, without holding up other connections
	Burn                  // keep a core busy for Duration (BurnCPU)
	Close                 // close this connection once the writes before it are sent
)

// Effect is one thing that a session asks of its server.
type Effect struct {
	Kind     Kind
	from, to int // Write: where the bytes are
	Duration time.Duration
	due      time.Time // Wait: until then, in place of the duration
	Frame    []byte    // complete, header included; shared by any number of recipients, so it is never changed
}

// Remaining says how long to wait from now on.
func (e Effect) Remaining() time.Duration {
	if e.due.IsZero() {
		return e.Duration
	}
	if left := time.Until(e.due); left > 0 {
		return left
	}
	return 0
}

// Effects is what a session wants done, in order: carry out one after the other, finish all of them before the next
// Session.Receive of the same connection, then Clear.
type Effects struct {
	List    []Effect
	split   bool
	storage []byte
}

// NewEffects makes them for the write mode of the options.
func NewEffects(options *Options) *Effects {
	return &Effects{split: options.Split}
}

// Bytes of a Write; valid until Clear.
func (e *Effects) Bytes(write Effect) []byte {
	return e.storage[write.from:write.to]
}

// Clear forgets all effects and keeps their memory.
func (e *Effects) Clear() {
	for i := range e.List {
		e.List[i].Frame = nil // or the collector would keep it
	}
	e.List = e.List[:0]
	e.storage = e.storage[:0]
}

// reply appends one of two parts (the first may be empty). Gathered: joins the write before it. Split: a write per part.
func (e *Effects) reply(header, body []byte) {
	e.write(header)
	e.write(body)
}

func (e *Effects) write(bytes []byte) {
	if len(bytes) == 0 {
		return
	}
	from := len(e.storage)
	e.storage = append(e.storage, bytes...)
	if last := len(e.List) - 1; !e.split && last >= 0 && e.List[last].Kind == Write {
		e.List[last].to = len(e.storage)
	} else {
		e.List = append(e.List, Effect{Kind: Write, from: from, to: len(e.storage)})
	}
}

// serve adds nothing for a duration of 0.
func (e *Effects) serve(kind Kind, duration time.Duration) {
	if duration > 0 {
		e.List = append(e.List, Effect{Kind: kind, Duration: duration})
	}
}

func (e *Effects) waitUntil(due time.Time) {
	e.List = append(e.List, Effect{Kind: Wait, due: due})
}

func (e *Effects) broadcast(frame []byte) {
	e.List = append(e.List, Effect{Kind: Broadcast, Frame: frame})
}
